"""Every setting that the environment may give: its name, default, meaning and group.

This table is the one place for a setting's default: ``given.py`` reads from the environment only names that
stand here, and takes the default from here where nothing is given. The README's table is written from it.
To add a setting: a line here, a field and a call in ``environment.py`` such as
``given.number("THROTTLE", 1, 10**9)``, and then ``python -m llmgw_admin.setting_table README.md``.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from sizing.marked_part import with_part

BEGIN = "<!-- settings: written by `python -m llmgw_admin.setting_table README.md` -->"
END = "<!-- end of settings -->"


@dataclass(frozen=True)
class Setting:
    """One variable of the environment, as text."""

    name: str
    default: str  # what counts where nothing, or nothing but spaces, is given
    meaning: str  # Markdown
    shown: str = ""  # Markdown, in place of the default where that says more
    secret: bool = False  # it may be given as a file too: NAME_FILE names it
    elsewhere: bool = False  # read where it is needed, not at the start


# Replicas live on private addresses; any other network has to be named.
PRIVATE_NETWORKS = "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,127.0.0.0/8,fc00::/7,::1/128"

GROUPS: dict[str, tuple[Setting, ...]] = {
    "Where state is kept": (
        Setting("DATA_DIR", "", "all local state: SQLite, queue, secret key", shown="`var/`"),
        Setting(
            "DATABASE_URL",
            "",
            "`postgresql://user:password@host/name`",
            shown="SQLite in `DATA_DIR`",
            secret=True,
        ),
        Setting(
            "DATABASE_POOLER",
            "off",
            "`on` where `DATABASE_URL` leads to PgBouncer or another pooler by transaction",
        ),
        Setting(
            "CELERY_BROKER_URL",
            "filesystem://localhost",
            "`redis://…` or `amqp://…`",
            shown="files in `DATA_DIR`",
            secret=True,
        ),
        Setting(
            "CACHE_URL",
            "locmem://",
            "`redis://…`, shared by web processes: throttles then count over all of them",
            shown="in each process",
            secret=True,
        ),
    ),
    "Web": (
        Setting("PORT", "8000", "of the web server"),
        Setting("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]", "host names that the desk answers to"),
        Setting("CSRF_TRUSTED_ORIGINS", "", "`https://desk.example.com` behind a proxy"),
        Setting(
            "HTTPS",
            "off",
            "secure cookies, HSTS and redirect; `X-Forwarded-Proto` of the proxy is believed",
        ),
        Setting(
            "SECRET_KEY",
            "",
            "signs sessions",
            shown="made at the first start, 0600, in `DATA_DIR`",
            secret=True,
        ),
        Setting("THROTTLE", "6000", "requests a minute of a signed-in caller; others 30"),
        Setting(
            "PROXIES",
            "0",
            "proxies in front that add to `X-Forwarded-For`: callers are told apart by what they add",
        ),
        Setting("SESSION_HOURS", "12", "hours after which a sign-in ends"),
        Setting("WEB_WORKERS", "1", "web processes"),
        Setting("WEB_THREADS", "8", "threads of each web process"),
        Setting("DEBUG", "off", "never in production"),
    ),
    "Watching": (Setting("LOG_FORMAT", "line", "the log on stderr: `line` for people, `json` for machines"),),
    "Background work": (
        Setting("WORKER_PROCESSES", "2", "measurements at a time of a worker"),
        Setting(
            "REFRESH_LEASE_S",
            "60",
            "a running refresh without a sign of life for so many seconds has lost its worker",
        ),
        Setting(
            "POOL_LABEL",
            "",
            "a label of nodes, such as `topology.kubernetes.io/zone`: the replicas of each of its values are"
            " measured by workers of a queue of their own, `measuring.<value>`",
        ),
        Setting(
            "MEASUREMENTS_KEPT_DAYS",
            "730",
            "days that measurements, refreshes, imports and loads are kept (0: for ever);"
            " the newest measurement that counts stays however old",
        ),
        Setting(
            "ANSWERS_KEPT_DAYS",
            "90",
            "days that answers are kept, with what it takes to compute them again (0: none is kept)",
        ),
    ),
    "Measuring": (
        Setting(
            "ENDPOINT_NETWORKS",
            PRIVATE_NETWORKS,
            "where replicas may be reached: `10.0.0.0/8,fd00::/8`",
            shown="private networks",
        ),
        Setting("ENDPOINT_KEYS_DIR", "", "a folder with the endpoints' API keys, a file each"),
        Setting("ENDPOINT_KEY_<NAME>", "", "one endpoint's API key", elsewhere=True),
        Setting("BENCH_GENERATOR", "builtin", "what makes the load: `builtin` or `guidellm`"),
        Setting("GUIDELLM_BIN", "guidellm", "the program, with `BENCH_GENERATOR=guidellm`"),
        Setting("BENCH_BUDGET_S", "1800", "seconds for a whole measurement"),
        Setting("BENCH_LEVEL_S", "120", "seconds for one load level"),
        Setting("BENCH_MOST_LEVELS", "12", "load levels of a measurement at most"),
        Setting("BENCH_RESOLUTION", "0.02", "how narrow the bracket of the limit has to be, as a share"),
        Setting("BENCH_MAX_STREAMS", "1024", "streams at a time that are ever tried"),
        Setting("BENCH_MAX_RATE", "1000", "requests per second that are ever tried"),
    ),
    "Cluster": (
        Setting("KUBERNETES", "off", "`in-cluster` or `kubeconfig`: the cluster that the desk follows"),
        Setting(
            "KUBECONFIG", "~/.kube/config", "with `KUBERNETES=kubeconfig`; several with `:` between them"
        ),
        Setting(
            "KUBERNETES_CONTEXT", "", "with `KUBERNETES=kubeconfig`", shown="the kubeconfig's current one"
        ),
    ),
}

SETTINGS = {setting.name: setting for settings in GROUPS.values() for setting in settings}


def markdown() -> str:
    """The table of the README, a row for each setting, the groups as rows in bold."""
    lines = ["| setting | default | meaning |", "| --- | --- | --- |"]
    for group, settings in GROUPS.items():
        lines.append(f"| **{group}** | | |")
        for setting in settings:
            names = f"`{setting.name}`" + (f", `{setting.name}_FILE`" if setting.secret else "")
            default = setting.shown or (f"`{setting.default}`" if setting.default else "")
            lines.append(f"| {names} | {default} | {setting.meaning} |")
    return "\n".join(lines)


def with_table(document: str) -> str:
    """*document* with the table between its two markers; raises ValueError where they are missing."""
    return with_part(document, BEGIN, END, markdown())


if __name__ == "__main__":
    path = Path(sys.argv[1])
    text = path.read_text(encoding="utf-8")
    if "--check" in sys.argv[2:]:
        sys.exit(0 if with_table(text) == text else f"{path}: run python -m llmgw_admin.setting_table {path}")
    path.write_text(with_table(text), encoding="utf-8")
