"""No space is left: it is said so, nothing stays behind, and all goes on once there is some."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.db import DatabaseError, OperationalError, connection
from django.test import RequestFactory

from llmgw_admin import errors
from sizing.models import BenchProfile
from sizing.services.database import DATABASE_FULL, DISK_FULL, unavailable
from tests import builders

TOKENS = {"input_tokens": 1, "output_tokens": 1}
NO_SPACE = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)); "


def without_space(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A process that can write no file of more than 64 bytes."""
    return subprocess.run(
        [sys.executable, "-c", NO_SPACE + code],
        cwd=settings.BASE_DIR,
        env={
            "DATA_DIR": str(folder),
            "DJANGO_SETTINGS_MODULE": "llmgw_admin.settings",
            "PYTHONDONTWRITEBYTECODE": "1",  # else it leaves modules that are cut off
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_secret_key_that_cannot_be_written_is_one_line_and_no_half_a_key(tmp_path: Path) -> None:
    done = without_space("import llmgw_admin.settings", tmp_path)
    place = tmp_path / "secret_key"
    line = f"wrong setting: DATA_DIR: the secret key {place} cannot be made: File too large\n"
    assert (done.returncode, done.stderr) == (2, line)
    assert [path.name for path in tmp_path.iterdir()] == ["queue"]


def test_a_message_that_cannot_be_written_leaves_nothing_and_costs_no_refresh(tmp_path: Path) -> None:
    (tmp_path / "secret_key").write_text("key")
    code = "import django; django.setup(); from sizing import tasks; tasks.wake(7)"
    done = without_space(code, tmp_path)
    assert done.returncode == 0
    assert "refresh 7 is queued, but the broker is away: [Errno 27] File too large" in done.stderr
    assert list((tmp_path / "queue").iterdir()) == []


@pytest.mark.django_db(transaction=True)
def test_a_full_database_is_a_503_that_says_so_and_takes_writes_again_when_there_is_space() -> None:
    if connection.vendor != "sqlite":  # which can be told how large it may be
        return
    with connection.cursor() as cursor:
        many = [BenchProfile(name=f"{number:0100}", ttft_ms=1, **TOKENS) for number in range(5000)]
        pages = cursor.execute("PRAGMA page_count").fetchone()[0]
        cursor.execute(f"PRAGMA max_page_count = {pages}")
        try:
            with pytest.raises(OperationalError) as full:
                BenchProfile.objects.bulk_create(many)
            assert unavailable(full.value) == DATABASE_FULL
        finally:
            cursor.execute("PRAGMA max_page_count = 1073741823")
    builders.profile("there is space")
    assert BenchProfile.objects.filter(name="there is space").exists()


def test_a_full_postgresql_and_a_full_disk_are_told_apart_from_one_that_is_away() -> None:
    class DiskFullError(Exception):
        sqlstate = "53100"

    error = DatabaseError("could not extend file")
    error.__cause__ = DiskFullError()
    assert unavailable(error) == DATABASE_FULL
    assert unavailable(OSError(errno.ENOSPC, "No space left on device")) == DISK_FULL
    assert unavailable(OSError(errno.EACCES, "Permission denied")) is None


def test_a_disk_that_is_full_while_an_upload_arrives_is_a_503() -> None:
    request = RequestFactory().post("/api/v1/imports")
    try:
        raise OSError(errno.ENOSPC, "No space left on device")
    except OSError:
        answer = errors.server_error(request)
    assert (answer.status_code, DISK_FULL in answer.content.decode()) == (503, True)
