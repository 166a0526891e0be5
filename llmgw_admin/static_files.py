"""Static files addressed by their content, without a step that collects them first."""

import hashlib
from functools import cache
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage


class VersionedStaticFiles(StaticFilesStorage):
    """Adds ``?v=<hash of the content>`` to an address, so that a browser's copy never outlives an upgrade."""

    def url(self, name: str | None) -> str:
        address = super().url(name)
        version = "" if settings.DEBUG or not name else _version(name)
        return f"{address}?v={version}" if version else address


@cache
def _version(name: str) -> str:
    path = finders.find(name)
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12] if path and Path(path).is_file() else ""
