"""Django's settings, all from the environment: see ``environment.py`` for what each may be."""

import sys
from pathlib import Path
from typing import Any

from kombu import Queue

from llmgw_admin.environment import WrongSetting, read_environment
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

if ENVIRONMENT.https:
    # A proxy in front speaks HTTPS, sets X-Forwarded-Proto, and takes it off what clients send.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    SECURE_REDIRECT_EXEMPT = [r"^healthz/?$"]  # probes come from inside, by plain HTTP
    SECURE_HSTS_SECONDS = 365 * 24 * 3600
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = True
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True

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
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
if CELERY_BROKER_URL.startswith("filesystem"):
    CELERY_BROKER_TRANSPORT = "llmgw_admin.file_broker:Transport"
    CELERY_BROKER_TRANSPORT_OPTIONS = {"folder": str(DATA_DIR / "queue"), "polling_interval": 0.25}
    CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
elif CELERY_BROKER_URL.startswith("redis"):
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "visibility_timeout": TASK_HARD_LIMIT_S + 600,  # else a long task would be given out twice
        "unacked_restore_interval": 10,
        "unacked_restore_throttle": 1,
    }
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
CELERY_BEAT_SCHEDULER = "celery.beat:Scheduler"  # keeps no file, which a kill could break for good
# A message that waited longer than this is worth nothing: the next one says the same.
CELERY_BEAT_SCHEDULE = {
    "sweep refreshes": {
        "task": "sizing.tasks.sweep_refreshes",
        "schedule": min(60.0, REFRESH_LEASE_S / 2),
        "options": {"expires": 55},
    },
    "request due refreshes": {
        "task": "sizing.tasks.request_due_refreshes",
        "schedule": 60.0,
        "options": {"expires": 55},
    },
    "look at engines": {
        "task": "sizing.tasks.look_at_engines",
        "schedule": 600.0,
        "options": {"expires": 590},
    },
    "mark stale measurements": {
        "task": "sizing.tasks.mark_stale_measurements",
        "schedule": 300.0,
        "options": {"expires": 290},
    },
}
if KUBERNETES.on:
    CELERY_BEAT_SCHEDULE["sync cluster"] = {
        "task": "sizing.tasks.sync_cluster",
        "schedule": 15.0,
        "options": {"expires": 14},
    }

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "llmgw_admin.log_lines.OneLine"}},
    "filters": {"refusals": {"()": lambda: without_traceback_of_refusals}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["refusals"]},
    },
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        # Django's own handlers print in DEBUG alone and mail otherwise; the root's do it always.
        "django": {"handlers": [], "level": "INFO", "propagate": True},
        "django.server": {"handlers": [], "level": "INFO", "propagate": True},
        "celery.beat": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
    },
}
