"""The product's settings with one more route: an empty view to compare with."""

from llmgw_admin.settings import *  # noqa: F403

ROOT_URLCONF = "benchmarks.http_urls"
THROTTLE = 10**9
