"""What the environment says, checked: a wrong value is a :class:`WrongSetting` with one clear line."""

import ipaddress
import os
import secrets
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import dj_database_url
from environs import Env, EnvError

Item = TypeVar("Item")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

DATABASE_SCHEMES = ("postgres", "postgresql", "sqlite")
BROKER_SCHEMES = ("filesystem", "redis", "rediss", "amqp", "amqps")
CACHE_SCHEMES = ("locmem", "redis", "rediss")
LOOPBACK_HOSTS = "localhost,127.0.0.1,[::1]"
GENERATORS = ("builtin", "guidellm")
CLUSTERS = ("off", "in-cluster", "kubeconfig")
# Replicas live on private addresses; any other network has to be named.
PRIVATE_NETWORKS = "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,127.0.0.0/8,fc00::/7,::1/128"


class WrongSetting(Exception):  # noqa: N818  it reads as what it says
    """A setting that cannot be used; its text is one line that names it."""


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
    throttle: int  # requests a minute, for a signed-in caller
    web_workers: int  # processes
    web_threads: int  # in each of them
    worker_processes: int
    refresh_lease_s: int
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
    data_dir = _data_dir(_text("DATA_DIR") or str(base_dir / "var"))
    return Environment(
        data_dir=data_dir,
        debug=_flag("DEBUG"),
        https=_flag("HTTPS"),
        port=_number("PORT", 8000, 0, 65535),
        secret_key=_secret_key(data_dir),
        allowed_hosts=_list("ALLOWED_HOSTS", LOOPBACK_HOSTS, _host),
        csrf_trusted_origins=_list("CSRF_TRUSTED_ORIGINS", "", _origin),
        database=_database(data_dir),
        broker_url=_url("CELERY_BROKER_URL", "filesystem://localhost", BROKER_SCHEMES),
        cache_url=_url("CACHE_URL", "locmem://", CACHE_SCHEMES),
        endpoint_networks=_list("ENDPOINT_NETWORKS", PRIVATE_NETWORKS, ipaddress.ip_network),
        endpoint_keys_dir=_folder("ENDPOINT_KEYS_DIR"),
        throttle=_number("THROTTLE", 6000, 1, 10**9),
        web_workers=_number("WEB_WORKERS", 1, 1, 64),
        web_threads=_number("WEB_THREADS", 8, 1, 256),
        worker_processes=_number("WORKER_PROCESSES", 2, 1, 64),
        refresh_lease_s=_number("REFRESH_LEASE_S", 60, 2, 3600),
        bench=_bench(),
        kubernetes=_kubernetes(),
    )


def _bench() -> BenchEnvironment:
    generator = _text("BENCH_GENERATOR") or GENERATORS[0]
    if generator not in GENERATORS:
        raise WrongSetting(f"BENCH_GENERATOR={generator!r} is not one of {', '.join(GENERATORS)}")
    return BenchEnvironment(
        generator=generator,
        guidellm_bin=_text("GUIDELLM_BIN") or "guidellm",
        budget_s=_number("BENCH_BUDGET_S", 1800, 10, 6 * 3600),
        level_s=_number("BENCH_LEVEL_S", 120, 2, 3600),
        most_levels=_number("BENCH_MOST_LEVELS", 12, 2, 100),
        resolution=_decimal("BENCH_RESOLUTION", 0.02, 0.001, 0.5),
        max_streams=_number("BENCH_MAX_STREAMS", 1024, 1, 100_000),
        max_rate=_decimal("BENCH_MAX_RATE", 1000, 0.001, 1e6),
    )


def _kubernetes() -> KubernetesEnvironment:
    """KUBECONFIG counts only where it is asked for: shells of operators have one for other purposes."""
    mode = _text("KUBERNETES") or CLUSTERS[0]
    if mode not in CLUSTERS:
        raise WrongSetting(f"KUBERNETES={mode!r} is not one of {', '.join(CLUSTERS)}")
    context = _text("KUBERNETES_CONTEXT")
    if mode == "in-cluster":
        if context:
            raise WrongSetting("KUBERNETES_CONTEXT is for KUBERNETES=kubeconfig")
        if not _text("KUBERNETES_SERVICE_HOST"):
            raise WrongSetting("KUBERNETES=in-cluster, but this is no pod: it has no KUBERNETES_SERVICE_HOST")
    if mode != "kubeconfig":
        return KubernetesEnvironment(mode, "", "")
    given = _text("KUBECONFIG") or "~/.kube/config"
    paths = [Path(path).expanduser() for path in given.split(os.pathsep) if path]
    readable = [path for path in paths if path.is_file() and os.access(path, os.R_OK)]
    if not readable:
        raise WrongSetting(f"KUBECONFIG={given!r} names no file that can be read")
    return KubernetesEnvironment(mode, os.pathsep.join(str(path.absolute()) for path in paths), context)


def _text(name: str) -> str:
    """An empty value counts as not given: that is how compose and unit files leave one out."""
    return Env().str(name, "").strip()


def _flag(name: str) -> bool:
    try:
        return Env().bool(name) if _text(name) else False
    except EnvError:
        raise WrongSetting(f"{name}={_text(name)!r} is not a yes or no (1 or 0)") from None


def _number(name: str, default: int, low: int, high: int) -> int:
    try:
        number = Env().int(name) if _text(name) else default
    except EnvError:
        number = low - 1
    if not low <= number <= high:
        raise WrongSetting(f"{name}={_text(name)!r} is not a whole number from {low} to {high}")
    return number


def _decimal(name: str, default: float, low: float, high: float) -> float:
    try:
        number = Env().float(name) if _text(name) else default
    except EnvError:
        number = low - 1
    if not low <= number <= high:
        raise WrongSetting(f"{name}={_text(name)!r} is not a number from {low:g} to {high:g}")
    return number


def _list(name: str, default: str, parse: Callable[[str], Item]) -> list[Item]:
    items = []
    for text in (_text(name) or default).split(","):
        if text.strip():
            try:
                items.append(parse(text.strip()))
            except ValueError as error:
                raise WrongSetting(f"{name}: {error}") from None
    return items


def _host(text: str) -> str:
    if any(sign in text for sign in "/ @") or (":" in text and not text.startswith("[")):
        raise ValueError(f"{text!r} is not a host name; leave out the scheme and the port")
    return text


def _origin(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path or parts.query:
        raise ValueError(f"{text!r} is not an origin like https://desk.example.com")
    return text


def _url(name: str, default: str, schemes: tuple[str, ...]) -> str:
    """The value may hold a password, so no message repeats it."""
    url = _text(name) or default
    try:
        parts = urlsplit(url)
    except ValueError:
        raise WrongSetting(f"{name} is not a URL that begins with {_either(schemes)}") from None
    if parts.scheme not in schemes or "://" not in url:
        raise WrongSetting(f"{name} is not a URL that begins with {_either(schemes)}")
    try:
        wrong_port = parts.port == 0
    except ValueError:
        wrong_port = True
    if wrong_port:
        raise WrongSetting(f"{name}: the port is not a number from 1 to 65535")
    return url


def _either(schemes: tuple[str, ...]) -> str:
    return " or ".join(f"{scheme}://" for scheme in schemes)


def _database(data_dir: Path) -> dict[str, Any]:
    """Django's settings of the one database; SQLite in the data folder where none is given."""
    url = _text("DATABASE_URL")
    if url:
        _url("DATABASE_URL", "", DATABASE_SCHEMES)
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
    if database["ENGINE"].endswith("sqlite3"):
        # Writers queue up for 20 s rather than fail, and readers never wait for them.
        options |= {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON",
        }
    else:
        options.setdefault("connect_timeout", 5)
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


def _folder(name: str) -> Path | None:
    if not _text(name):
        return None
    path = Path(_text(name)).expanduser().absolute()
    if not path.is_dir():
        raise WrongSetting(f"{name}={_text(name)!r} is not a folder")
    return path


def _secret_key(data_dir: Path) -> str:
    """The key given, else the one in the file given, else one made at the first start and kept."""
    if _text("SECRET_KEY") and _text("SECRET_KEY_FILE"):
        raise WrongSetting("SECRET_KEY and SECRET_KEY_FILE are both given; give one")
    if _text("SECRET_KEY"):
        return _text("SECRET_KEY")
    name = "SECRET_KEY_FILE" if _text("SECRET_KEY_FILE") else "DATA_DIR"
    path = Path(_text("SECRET_KEY_FILE") or data_dir / "secret_key").expanduser()
    try:
        if name == "DATA_DIR" and not path.exists():
            _create_key(path)
        key = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not plain text"
        raise WrongSetting(f"{name}: the secret key {path} cannot be read: {reason}") from None
    if not key:
        raise WrongSetting(f"{name}: the secret key {path} is empty")
    return key


def _create_key(path: Path) -> None:
    """Write a new key for the owner alone; of several processes at once, one wins and all read its key."""
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".secret_key-")  # made with mode 0600
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(64))
    with suppress(FileExistsError):
        os.link(draft, path)
    os.unlink(draft)
