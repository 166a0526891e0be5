"""What the environment says, checked: a wrong value is a :class:`WrongSetting` with one clear line."""

import ipaddress
import os
import secrets
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dj_database_url

from llmgw_admin import given
from llmgw_admin.given import WrongSetting

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

DATABASE_SCHEMES = ("postgres", "postgresql", "sqlite")
BROKER_SCHEMES = ("filesystem", "redis", "rediss", "amqp", "amqps")
CACHE_SCHEMES = ("locmem", "redis", "rediss")
GENERATORS = ("builtin", "guidellm")
LOG_FORMATS = ("line", "json")
CLUSTERS = ("off", "in-cluster", "kubeconfig")


@dataclass(frozen=True)
class Environment:
    """The settings that an operator gives, in the form that the code needs."""

    data_dir: Path
    debug: bool
    https: bool
    port: int
    secret_key: str
    allowed_hosts: list[str]
    csrf_trusted_origins: list[str]
    database: dict[str, Any]
    broker_url: str
    cache_url: str
    endpoint_networks: list[Network]
    endpoint_keys_dir: Path | None
    log_format: str
    throttle: int  # requests a minute, for a signed-in caller
    proxies: int  # in front, of which X-Forwarded-For tells
    session_hours: int
    web_workers: int  # processes
    web_threads: int  # in each of them
    worker_processes: int
    refresh_lease_s: int
    pool_label: str  # of nodes; empty: no pools
    measurements_kept_days: int  # 0: for ever
    answers_kept_days: int  # 0: none is kept
    bench: "BenchEnvironment"
    kubernetes: "KubernetesEnvironment"


@dataclass(frozen=True)
class BenchEnvironment:
    """How replicas are measured, where a measurement does not say otherwise."""

    generator: str
    guidellm_bin: str
    budget_s: int  # for a whole measurement
    level_s: int  # for one load level
    most_levels: int
    resolution: float  # of the load, as a share
    max_streams: int
    max_rate: float  # requests a second


@dataclass(frozen=True)
class KubernetesEnvironment:
    """The cluster that the inventory follows: none, the one that the desk runs in, or a kubeconfig's."""

    mode: str
    kubeconfig: str  # paths, several with a colon between them as kubectl takes them
    context: str  # of the kubeconfig; empty: its current one

    @property
    def on(self) -> bool:
        return self.mode != "off"


def read_environment(base_dir: Path) -> Environment:
    """Read every setting; *base_dir* holds the default data folder, ``var/``.

    Creates the data folder, and the secret key in it, where they are missing. Raises :class:`WrongSetting`.
    """
    data_dir = _data_dir(given.text("DATA_DIR") or str(base_dir / "var"))
    return Environment(
        data_dir=data_dir,
        debug=given.flag("DEBUG"),
        https=given.flag("HTTPS"),
        port=given.number("PORT", 0, 65535),
        secret_key=_secret_key(data_dir),
        allowed_hosts=given.items("ALLOWED_HOSTS", given.host),
        csrf_trusted_origins=given.items("CSRF_TRUSTED_ORIGINS", given.origin),
        database=_database(data_dir),
        broker_url=given.url("CELERY_BROKER_URL", BROKER_SCHEMES),
        cache_url=given.url("CACHE_URL", CACHE_SCHEMES),
        endpoint_networks=given.items("ENDPOINT_NETWORKS", ipaddress.ip_network),
        endpoint_keys_dir=given.folder("ENDPOINT_KEYS_DIR"),
        log_format=given.choice("LOG_FORMAT", LOG_FORMATS),
        throttle=given.number("THROTTLE", 1, 10**9),
        proxies=given.number("PROXIES", 0, 10),
        session_hours=given.number("SESSION_HOURS", 1, 8760),
        web_workers=given.number("WEB_WORKERS", 1, 64),
        web_threads=given.number("WEB_THREADS", 1, 256),
        worker_processes=given.number("WORKER_PROCESSES", 1, 64),
        refresh_lease_s=given.number("REFRESH_LEASE_S", 2, 3600),
        pool_label=given.text("POOL_LABEL"),
        measurements_kept_days=given.number("MEASUREMENTS_KEPT_DAYS", 0, 36500),
        answers_kept_days=given.number("ANSWERS_KEPT_DAYS", 0, 36500),
        bench=_bench(),
        kubernetes=_kubernetes(),
    )


def _bench() -> BenchEnvironment:
    return BenchEnvironment(
        generator=given.choice("BENCH_GENERATOR", GENERATORS),
        guidellm_bin=given.text("GUIDELLM_BIN"),
        budget_s=given.number("BENCH_BUDGET_S", 10, 6 * 3600),
        level_s=given.number("BENCH_LEVEL_S", 2, 3600),
        most_levels=given.number("BENCH_MOST_LEVELS", 2, 100),
        resolution=given.decimal("BENCH_RESOLUTION", 0.001, 0.5),
        max_streams=given.number("BENCH_MAX_STREAMS", 1, 100_000),
        max_rate=given.decimal("BENCH_MAX_RATE", 0.001, 1e6),
    )


def _kubernetes() -> KubernetesEnvironment:
    """KUBECONFIG counts only where it is asked for: shells of operators have one for other purposes."""
    mode = given.choice("KUBERNETES", CLUSTERS)
    context = given.text("KUBERNETES_CONTEXT")
    if mode == "in-cluster":
        if context:
            raise WrongSetting("KUBERNETES_CONTEXT is for KUBERNETES=kubeconfig")
        if not os.environ.get("KUBERNETES_SERVICE_HOST", "").strip():
            raise WrongSetting("KUBERNETES=in-cluster, but this is no pod: it has no KUBERNETES_SERVICE_HOST")
    if mode != "kubeconfig":
        return KubernetesEnvironment(mode, "", "")
    named = given.text("KUBECONFIG")
    paths = [Path(path).expanduser() for path in named.split(os.pathsep) if path]
    readable = [path for path in paths if path.is_file() and os.access(path, os.R_OK)]
    if not readable:
        raise WrongSetting(f"KUBECONFIG={named!r} names no file that can be read")
    return KubernetesEnvironment(mode, os.pathsep.join(str(path.absolute()) for path in paths), context)


def _database(data_dir: Path) -> dict[str, Any]:
    """Django's settings of the one database; SQLite in the data folder where none is given."""
    url = given.text("DATABASE_URL")
    if url:
        given.url("DATABASE_URL", DATABASE_SCHEMES)
        try:
            database: dict[str, Any] = dict(dj_database_url.parse(url))
        except ValueError as error:
            raise WrongSetting(f"DATABASE_URL: {error}") from None
        if not database["NAME"]:
            raise WrongSetting("DATABASE_URL names no database")
    else:
        database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(data_dir / "db.sqlite3")}
    database |= {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}
    options = database.setdefault("OPTIONS", {})
    pooler = given.flag("DATABASE_POOLER")
    if database["ENGINE"].endswith("sqlite3"):
        if pooler:
            raise WrongSetting("DATABASE_POOLER is for PostgreSQL")
        # Writers queue up for 20 s rather than fail, and readers never wait for them.
        options |= {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON",
        }
    else:
        # A server whose host is gone without a word is noticed, not waited for.
        options |= {"connect_timeout": 5, "keepalives_idle": 20, "tcp_user_timeout": 20_000} | options
        # Each transaction may be on another connection of the server, so nothing may be left on one.
        database["DISABLE_SERVER_SIDE_CURSORS"] = pooler
    return database


def _data_dir(text: str) -> Path:
    path = Path(text).expanduser().absolute()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        (path / "queue").mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise WrongSetting(f"DATA_DIR={text!r} cannot be used: {error.strerror}") from None
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise WrongSetting(f"DATA_DIR={text!r} cannot be used: no permission to write there")
    return path


def _secret_key(data_dir: Path) -> str:
    """The key given, else the one in the file given, else one made at the first start and kept."""
    if key := given.text("SECRET_KEY"):
        return key
    path = data_dir / "secret_key"
    try:
        if not path.exists():
            _create_key(path)
    except OSError as error:
        raise WrongSetting(f"DATA_DIR: the secret key {path} cannot be made: {error.strerror}") from None
    try:
        key = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not plain text"
        raise WrongSetting(f"DATA_DIR: the secret key {path} cannot be read: {reason}") from None
    if not key:
        raise WrongSetting(f"DATA_DIR: the secret key {path} is empty")
    return key


def _create_key(path: Path) -> None:
    """Write a new key for the owner alone; of several processes at once, one wins and all read its key."""
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".secret_key-")  # made with mode 0600
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(64))
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.unlink(draft)
