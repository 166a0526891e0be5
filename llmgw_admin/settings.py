"""Django's settings, all from the environment: see ``environment.py`` for what each may be."""

import sys
from pathlib import Path
from typing import Any

from kombu import Queue

from llmgw_admin.environment import read_environment
from llmgw_admin.given import WrongSetting
from llmgw_admin.log_lines import without_traceback_of_refusals

BASE_DIR = Path(__file__).resolve().parent.parent

try:
    ENVIRONMENT = read_environment(BASE_DIR)
except WrongSetting as wrong:
    print(f"wrong setting: {wrong}", file=sys.stderr)
    raise SystemExit(2) from None

DATA_DIR = ENVIRONMENT.data_dir
DEBUG = ENVIRONMENT.debug
SECRET_KEY = ENVIRONMENT.secret_key
ALLOWED_HOSTS = ENVIRONMENT.allowed_hosts
CSRF_TRUSTED_ORIGINS = ENVIRONMENT.csrf_trusted_origins

# The desk's own settings
PORT = ENVIRONMENT.port
THROTTLE = ENVIRONMENT.throttle  # requests a minute, for a signed-in caller
ENDPOINT_NETWORKS = ENVIRONMENT.endpoint_networks  # where replicas may be reached
ENDPOINT_KEYS_DIR = ENVIRONMENT.endpoint_keys_dir
WEB_WORKERS = ENVIRONMENT.web_workers
WEB_THREADS = ENVIRONMENT.web_threads
WORKER_PROCESSES = ENVIRONMENT.worker_processes
REFRESH_LEASE_S = ENVIRONMENT.refresh_lease_s  # a run without a sign of life for so long has lost its worker
POOL_LABEL = ENVIRONMENT.pool_label  # of nodes, whose replicas are measured by workers near them; or empty
MEASUREMENTS_KEPT_DAYS = ENVIRONMENT.measurements_kept_days  # 0: for ever
ANSWERS_KEPT_DAYS = ENVIRONMENT.answers_kept_days  # 0: none is kept
TOKEN_USES_BY_THREAD = True  # whether a thread writes when tokens were used last; tests do it by hand
ANSWERS_AT_ONCE = False  # whether an answer waits until it is stored; for tests
BENCH = ENVIRONMENT.bench
KUBERNETES = ENVIRONMENT.kubernetes  # the cluster that the inventory follows

INSTALLED_APPS = [
    "sizing.admin_config.DeskAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "knox",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "sizing",
]

MIDDLEWARE = [
    "llmgw_admin.request_log.RequestLog",  # first: all that follows happens within a request that has an id
    "llmgw_admin.middleware.ClientAddress",
    "django.middleware.security.SecurityMiddleware",
    "llmgw_admin.middleware.SecurityHeaders",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "llmgw_admin.middleware.AdminWithoutSlash",
    "llmgw_admin.middleware.DatabaseAway",
    "llmgw_admin.middleware.NoSuchValue",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "llmgw_admin.middleware.BodyLimit",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "llmgw_admin.urls"
WSGI_APPLICATION = "llmgw_admin.wsgi.application"
APPEND_SLASH = False  # every path works with and without the slash, without a redirect

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {"default": ENVIRONMENT.database}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CACHES: dict[str, dict[str, Any]]
if ENVIRONMENT.cache_url.startswith("locmem"):
    CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
            "OPTIONS": {"MAX_ENTRIES": 10_000},  # so that a flood of names does not push out the counters
        }
    }
else:
    CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": ENVIRONMENT.cache_url,
            "KEY_PREFIX": "llmgw-admin",
            # No request waits long for its count: one that hangs is one that is away.
            "OPTIONS": {"socket_connect_timeout": 1, "socket_timeout": 1},
        }
    }

# Sign-in
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
CSRF_FAILURE_VIEW = "llmgw_admin.errors.csrf_failure"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_AGE = ENVIRONMENT.session_hours * 3600  # from the sign-in on, however much it is used
PROXIES = ENVIRONMENT.proxies  # in front, each of which adds to X-Forwarded-For

if ENVIRONMENT.https:
    # A proxy in front speaks HTTPS, sets X-Forwarded-Proto, and takes it off what clients send.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    SECURE_REDIRECT_EXEMPT = [r"^(healthz(/live|/ready)?|metrics)/?$"]  # asked from inside, by plain HTTP
    SECURE_HSTS_SECONDS = 365 * 24 * 3600
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = True
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True
    # Browsers take a cookie of such a name from this host alone, by HTTPS, for every path.
    SESSION_COOKIE_NAME = "__Host-sessionid"
    CSRF_COOKIE_NAME = "__Host-csrftoken"

# An inventory document may be as large as this; a body above it is refused.
DATA_UPLOAD_MAX_MEMORY_SIZE = 100 * 1024 * 1024

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
FORMAT_MODULE_PATH = "llmgw_admin.formats"  # the language's own formats go before settings of that name

# Static files come straight from the code: nothing has to be collected before the first start.
STATIC_URL = "/static/"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "llmgw_admin.static_files.VersionedStaticFiles"},
}
WHITENOISE_USE_FINDERS = True
WHITENOISE_ALLOW_ALL_ORIGINS = False
WHITENOISE_MAX_AGE = 0 if DEBUG else 3600

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "sizing.api.authentication.BearerAuthentication",  # first: it gives a 401 its WWW-Authenticate
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["sizing.api.permissions.ModelPermissions"],
    "DEFAULT_THROTTLE_CLASSES": [
        "sizing.api.throttling.SignedInThrottle",
        "sizing.api.throttling.AnonymousThrottle",
    ],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_PAGINATION_CLASS": "sizing.api.paging.Pages",
    "DEFAULT_FILTER_BACKENDS": [
        "django_filters.rest_framework.DjangoFilterBackend",
        "rest_framework.filters.SearchFilter",
        "rest_framework.filters.OrderingFilter",
    ],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "sizing.api.errors.exception_handler",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
    "URL_FORMAT_OVERRIDE": None,
    "NUM_PROXIES": 0,  # X-Forwarded-For is whatever the caller says
}

KNOX_TOKEN_MODEL = "sizing.ApiToken"
# Its own table is swapped for ours; its migrations would make it all the same, in nobody's hands.
MIGRATION_MODULES = {"knox": None}
REST_KNOX = {
    "AUTH_HEADER_PREFIX": "Bearer",
    "TOKEN_PREFIX": "llmgw_",
    "TOKEN_TTL": None,  # create_token says how long a token lives
    "AUTO_REFRESH": False,
}

SPECTACULAR_SETTINGS = {
    "TITLE": "llmgw-admin",
    "DESCRIPTION": "How many replicas a wish in tokens per second needs, whether they fit, and why not.",
    "VERSION": "1.0.0",
    "LICENSE": {"name": "Apache-2.0"},
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
    "COMPONENT_SPLIT_REQUEST": True,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "ENUM_NAME_OVERRIDES": {
        "ImportStateEnum": "sizing.models.BenchImport.State",
        "ImportTriggerEnum": "sizing.models.BenchImport.Trigger",
        "TriggerEnum": "sizing.models.Refresh.Trigger",
    },
}

# Background work: the rows say what is to be done, a message only wakes a worker.
CELERY_BROKER_URL = ENVIRONMENT.broker_url
TASK_SOFT_LIMIT_S = BENCH.budget_s + 3600
TASK_HARD_LIMIT_S = TASK_SOFT_LIMIT_S + 120
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {}
# A message says until when it is worth something by its sender's clock; the reader may be on another host.
CLOCKS_DIFFER_S = 0 if CELERY_BROKER_URL.startswith("filesystem") else 3900
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# RabbitMQ closes the channel of a worker that is at one message for half an hour, as a measurement may be.
CELERY_BROKER_CHANNEL_ERROR_RETRY = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # however long the broker is away, its workers come back to it
if CELERY_BROKER_URL.startswith("filesystem"):
    CELERY_BROKER_TRANSPORT = "llmgw_admin.file_broker:Transport"
    CELERY_BROKER_TRANSPORT_OPTIONS = {"folder": str(DATA_DIR / "queue"), "polling_interval": 0.25}
    CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
elif CELERY_BROKER_URL.startswith("redis"):
    CELERY_BROKER_TRANSPORT = "llmgw_admin.redis_broker:Transport"
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "visibility_timeout": TASK_HARD_LIMIT_S + 600,  # else a long task would be given out twice
        "unacked_restore_interval": 10,
        "unacked_restore_throttle": 1,
        # A broker that hangs, or whose host is gone, is one that is away.
        "socket_connect_timeout": 2,
        "socket_timeout": 5,
        "socket_keepalive": True,
    }
else:
    # RabbitMQ: a message that it has not taken is an error here, not a loss.
    CELERY_BROKER_TRANSPORT_OPTIONS = {"confirm_publish": True}
# What takes long has a queue of its own: a worker for it alone leaves the sweep free to run.
CELERY_TASK_DEFAULT_QUEUE = "desk"
CELERY_TASK_QUEUES = (Queue("desk"), Queue("measuring"), Queue("sync"))
CELERY_TASK_ROUTES = {
    "sizing.tasks.run_refresh": {"queue": "measuring"},
    "sizing.tasks.sync_cluster": {"queue": "sync"},
}
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SOFT_TIME_LIMIT = TASK_SOFT_LIMIT_S
CELERY_TASK_TIME_LIMIT = TASK_HARD_LIMIT_S
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CONCURRENCY = WORKER_PROCESSES
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = TIME_ZONE
CELERY_BEAT_SCHEDULER = "llmgw_admin.steady_schedule:SteadyScheduler"
# A message that waited longer than this is worth nothing: the next one says the same.
CELERY_BEAT_SCHEDULE = {
    "sweep refreshes": {
        "task": "sizing.tasks.sweep_refreshes",
        "schedule": min(60.0, REFRESH_LEASE_S / 2),
        "options": {"expires": 55 + CLOCKS_DIFFER_S},
    },
    "request due refreshes": {
        "task": "sizing.tasks.request_due_refreshes",
        "schedule": 60.0,
        "options": {"expires": 55 + CLOCKS_DIFFER_S},
    },
    "look at engines": {
        "task": "sizing.tasks.look_at_engines",
        "schedule": 600.0,
        "options": {"expires": 590 + CLOCKS_DIFFER_S},
    },
    "mark stale measurements": {
        "task": "sizing.tasks.mark_stale_measurements",
        "schedule": 300.0,
        "options": {"expires": 290 + CLOCKS_DIFFER_S},
    },
}
if KUBERNETES.on:
    CELERY_BEAT_SCHEDULE["sync cluster"] = {
        "task": "sizing.tasks.sync_cluster",
        "schedule": 15.0,
        "options": {"expires": 14 + CLOCKS_DIFFER_S},
    }

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"desk": {"()": "llmgw_admin.log_lines.formatter_of", "kind": ENVIRONMENT.log_format}},
    "filters": {"refusals": {"()": lambda: without_traceback_of_refusals}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "desk", "filters": ["refusals"]},
    },
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        # Django's own handlers print in DEBUG alone and mail otherwise; the root's do it always.
        "django": {"handlers": [], "level": "INFO", "propagate": True},
        "django.server": {"handlers": [], "level": "INFO", "propagate": True},
        "celery.app.trace": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        # The pool's own, which would go its own way to stderr.
        "multiprocessing": {"handlers": ["stderr"], "level": "ERROR", "propagate": False},
    },
}
