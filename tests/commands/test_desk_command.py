"""Every error of a command is one line on standard error, and exit 2."""

from __future__ import annotations

import errno
import subprocess
import sys
from io import StringIO

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection

ALL = [
    "target",
    "bench",
    "import_bench",
    "load_inventory",
    "dump_inventory",
    "create_token",
    "up",
    "simulate_replica",
]


class Full(StringIO):
    """A disk without room; it says so at once, or only at the last moment."""

    def __init__(self, at_once: bool) -> None:
        super().__init__()
        self.at_once = at_once

    def write(self, text: str) -> int:
        if self.at_once:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def run(*words: str, out: StringIO | None = None) -> tuple[int, str]:
    err = StringIO()
    with pytest.raises(SystemExit) as end:
        call_command(*words, stdout=out or StringIO(), stderr=err, no_color=True)
    return int(str(end.value.code)), err.getvalue()


@pytest.mark.parametrize("command", ALL)
def test_wrong_arguments_are_one_line(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _ = run(command, "a", "b", "c", "--no-such\nthing")
    err = capsys.readouterr().err
    assert code == 2
    assert err.count("\n") == 1
    assert "unrecognized arguments: " in err
    assert "usage" not in err


@pytest.mark.django_db
@pytest.mark.parametrize("at_once", [True, False])
def test_a_full_disk_is_one_line(at_once: bool) -> None:
    expected = (2, "cannot write the output: No space left on device\n")
    assert run("dump_inventory", out=Full(at_once)) == expected


def test_a_full_disk_is_one_line_also_when_python_ends() -> None:
    code = """if True:
        import sys, django
        django.setup()
        from sizing.management.desk_command import DeskCommand
        class Command(DeskCommand):
            requires_system_checks = []
            def handle(self, *args, **options):
                self.stdout.write("few words")
                sys.exit(1)
        Command().run_from_argv(["manage.py", "few"])
    """
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=settings.BASE_DIR, stdout=full, stderr=subprocess.PIPE,
            text=True, timeout=60, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (2, "cannot write the output: No space left on device\n")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("sizing_node", ["dump_inventory"]),
        ("auth_user", ["create_token", "ada", "--label", "x"]),
        ("sizing_inventorychange", ["target", "llama", "5"]),
    ],
)
def test_a_database_without_tables_is_one_line_that_says_what_to_do(table: str, words: list[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} RENAME TO not_there")
    assert run(*words) == (2, "the database has no tables yet; run `manage.py migrate`\n")
