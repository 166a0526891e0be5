"""A wrong value stops the start with one clear line; a right one arrives in the form that the code needs."""

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network
from pathlib import Path

import pytest
from django.conf import settings

from llmgw_admin.environment import Environment, read_environment
from llmgw_admin.given import WrongSetting

ROOT = Path(settings.BASE_DIR)
BEGIN = "DATABASE_URL is not a URL that begins with postgres:// or postgresql:// or sqlite://"
PORT = "DATABASE_URL: the port is not a number from 1 to 65535"


@pytest.fixture
def read(monkeypatch, tmp_path):
    """Reads the environment as if nothing but the given values were set."""

    def with_values(**values: str) -> Environment:
        for name in ("DATA_DIR", "DATABASE_URL", "DEBUG"):
            monkeypatch.delenv(name, raising=False)
        for name, value in values.items():
            monkeypatch.setenv(name, value)
        return read_environment(tmp_path)

    return with_values


def run(*arguments: str, **values: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DJANGO_")}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment | values, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_defaults_are_safe_and_local(read, tmp_path):
    environment = read()
    assert environment.data_dir == tmp_path / "var"
    assert (environment.debug, environment.https, environment.port) == (False, False, 8000)
    assert environment.allowed_hosts == ["localhost", "127.0.0.1", "[::1]"]
    assert environment.csrf_trusted_origins == []
    assert environment.database["NAME"] == str(tmp_path / "var" / "db.sqlite3")
    assert environment.broker_url == "filesystem://localhost"
    assert environment.throttle == 6000
    assert ip_network("10.0.0.0/8") in environment.endpoint_networks
    assert stat.S_IMODE(environment.data_dir.stat().st_mode) == 0o700


def test_an_empty_value_counts_as_not_given(read):
    assert read(PORT="", DEBUG=" ", ALLOWED_HOSTS="").port == 8000


def test_right_values_are_taken(read):
    environment = read(
        PORT="0", DEBUG="1", HTTPS="yes", THROTTLE="7", ALLOWED_HOSTS="desk.example.com, .example.org",
        CSRF_TRUSTED_ORIGINS="https://desk.example.com:8443", ENDPOINT_NETWORKS="10.1.0.0/16,fd00::/8",
        CACHE_URL="redis://cache:6379/1", CELERY_BROKER_URL="amqp://u:p@mq//",
    )  # fmt: skip
    assert (environment.port, environment.debug, environment.https) == (0, True, True)
    assert environment.throttle == 7
    assert environment.allowed_hosts == ["desk.example.com", ".example.org"]
    assert environment.csrf_trusted_origins == ["https://desk.example.com:8443"]
    assert environment.endpoint_networks == [ip_network("10.1.0.0/16"), ip_network("fd00::/8")]
    assert environment.cache_url == "redis://cache:6379/1"
    assert environment.broker_url == "amqp://u:p@mq//"


def test_a_postgresql_url_is_taken_apart(read):
    database = read(DATABASE_URL="postgres://desk:secret@db:5433/desk?sslmode=require").database
    assert database["ENGINE"] == "django.db.backends.postgresql"
    assert (database["HOST"], database["PORT"], database["NAME"]) == ("db", 5433, "desk")
    options = {"sslmode": "require", "connect_timeout": 5, "keepalives_idle": 20, "tcp_user_timeout": 20_000}
    assert database["OPTIONS"] == options
    assert (database["CONN_MAX_AGE"], database["CONN_HEALTH_CHECKS"]) == (60, True)


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("DEBUG", "banana", "DEBUG='banana' is not a yes or no (1 or 0)"),
        ("HTTPS", "2", "HTTPS='2' is not a yes or no (1 or 0)"),
        ("PORT", "abc", "PORT='abc' is not a whole number from 0 to 65535"),
        ("PORT", "70000", "PORT='70000' is not a whole number from 0 to 65535"),
        ("THROTTLE", "0", "THROTTLE='0' is not a whole number from 1 to 1000000000"),
        ("THROTTLE", "6000/min", "THROTTLE='6000/min' is not a whole number from 1 to 1000000000"),
        (
            "ENDPOINT_NETWORKS",
            "10.0.0.0/8,10.0.0.0/33",
            "ENDPOINT_NETWORKS: '10.0.0.0/33' does not appear to be an IPv4 or IPv6 network",
        ),
        ("ENDPOINT_NETWORKS", "10.0.0.1/8", "ENDPOINT_NETWORKS: 10.0.0.1/8 has host bits set"),
        ("ENDPOINT_KEYS_DIR", "/no/such", "ENDPOINT_KEYS_DIR='/no/such' is not a folder"),
        (
            "ALLOWED_HOSTS",
            "https://desk",
            "ALLOWED_HOSTS: 'https://desk' is not a host name; leave out the scheme and the port",
        ),
        (
            "CSRF_TRUSTED_ORIGINS",
            "desk.example.com",
            "CSRF_TRUSTED_ORIGINS: 'desk.example.com' is not an origin like https://desk.example.com",
        ),
        ("DATABASE_URL", "postgres://u:secret@db", "DATABASE_URL names no database"),
        (
            "CACHE_URL",
            "memcached://x",
            "CACHE_URL is not a URL that begins with locmem:// or redis:// or rediss://",
        ),
        (
            "SECRET_KEY_FILE",
            "/no",
            "SECRET_KEY_FILE: /no cannot be read: No such file or directory",
        ),
        ("DATA_DIR", "/dev/null/x", "DATA_DIR='/dev/null/x' cannot be used: Not a directory"),
    ],
)
def test_a_wrong_value_is_named_in_one_line(read, name, value, line):
    with pytest.raises(WrongSetting) as wrong:
        read(**{name: value})
    assert str(wrong.value) == line


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("banana", BEGIN),
        ("mysql://u:secret@db/x", BEGIN),
        ("postgres://[::1/secret", BEGIN),
        ("postgres://u:secret@db:abc/x", PORT),
        ("postgresql://u:secret@db:99999/x", PORT),
        ("postgresql://u:secret@db:0/x", PORT),
    ],
)
def test_a_wrong_database_url_is_not_repeated_with_its_password(read, url, line):
    with pytest.raises(WrongSetting) as wrong:
        read(DATABASE_URL=url)
    assert str(wrong.value) == line


def test_behind_a_pooler_nothing_is_left_on_a_connection(read):
    url = "postgres://desk@db/desk"
    assert read(DATABASE_URL=url, DATABASE_POOLER="on").database["DISABLE_SERVER_SIDE_CURSORS"] is True
    assert read(DATABASE_URL=url, DATABASE_POOLER="off").database["DISABLE_SERVER_SIDE_CURSORS"] is False
    with pytest.raises(WrongSetting, match=r"^DATABASE_POOLER is for PostgreSQL$"):
        read(DATABASE_URL="", DATABASE_POOLER="on")


def test_a_command_stops_with_code_2_and_one_line():
    done = run("manage.py", "check", DEBUG="banana")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "wrong setting: DEBUG='banana' is not a yes or no (1 or 0)\n"


def test_the_web_server_is_told_not_to_try_again():
    done = run("-c", "import llmgw_admin.wsgi", PORT="abc")
    assert done.returncode == 3
    assert done.stderr == "wrong setting: PORT='abc' is not a whole number from 0 to 65535\n"


def test_a_database_that_is_away_is_one_line():
    done = run("manage.py", "migrate", DATABASE_URL="postgres://desk:secret@127.0.0.1:1/desk")
    assert done.returncode == 2
    assert done.stderr.startswith("the database cannot be used: ")
    assert done.stderr.count("\n") == 1
    assert "secret" not in done.stderr


def test_the_secret_key_given_wins_and_two_of_them_are_refused(read, tmp_path):
    file = tmp_path / "key"
    file.write_text("from a file\n")
    assert read(SECRET_KEY_FILE=str(file)).secret_key == "from a file"
    with pytest.raises(WrongSetting, match="SECRET_KEY and SECRET_KEY_FILE are both given; give one"):
        read(SECRET_KEY_FILE=str(file), SECRET_KEY="x")


def test_processes_that_start_at_once_agree_on_a_new_secret_key(tmp_path):
    code = "from llmgw_admin.environment import *; print(read_environment(Path('.')).secret_key)"
    with ThreadPoolExecutor(6) as pool:
        runs = list(pool.map(lambda _: run("-c", code, DATA_DIR=str(tmp_path / "new")), range(6)))
    keys = {done.stdout for done in runs}
    assert len(keys) == 1
    assert len(keys.pop().strip()) >= 64
    key = tmp_path / "new" / "secret_key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert sorted(path.name for path in key.parent.iterdir()) == ["queue", "secret_key"]


def test_the_deployment_check_is_clean_with_https():
    done = run("manage.py", "check", "--deploy", "--fail-level", "WARNING", HTTPS="1")
    assert done.returncode == 0, done.stderr


def test_with_https_cookies_are_of_this_host_and_encrypted_alone():
    told = "from llmgw_admin import settings as s; print(s.SESSION_COOKIE_NAME, s.SESSION_COOKIE_SECURE,"
    told += " s.CSRF_COOKIE_NAME, s.CSRF_COOKIE_SECURE, s.SESSION_COOKIE_AGE)"
    done = run("-c", told, HTTPS="1", SESSION_HOURS="2")
    assert done.stdout.split() == ["__Host-sessionid", "True", "__Host-csrftoken", "True", "7200"]
