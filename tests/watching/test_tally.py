"""What the processes of a web server count is told as a sum by any of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from django.conf import settings

from sizing import tally

COUNT = """
from pathlib import Path
import json, sys
from sizing import tally
tally.share_in(Path(sys.argv[1]))
tally.count("asked", int(sys.argv[2]), route="a")
tally.took("took", 0.02, route="a")
print(tally.totals().as_json())
"""


def process(folder: Path, number: int) -> tuple[float, list[float]]:
    """A process that counts, and the sums that it tells."""
    ran = subprocess.run(
        [sys.executable, "-c", COUNT, str(folder), str(number)],
        cwd=settings.BASE_DIR,
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    )
    [[_, labels, count]], [[_, _, times]] = json.loads(ran.stdout)
    assert labels == [["route", "a"]]
    return count, times


def test_a_process_adds_what_others_have_counted_also_those_that_ended(tmp_path: Path) -> None:
    assert process(tmp_path, 2)[0] == 2
    assert process(tmp_path, 3)[0] == 5
    count, times = process(tmp_path, 4)
    assert count == 9
    assert times == [0, 0, 3, *[0] * 10, 0.06]


def test_what_another_web_server_left_is_not_counted_and_cleared_away_once_it_is_over(tmp_path: Path) -> None:
    host = tally._host()
    left = [f"{host}.{os.getpid()}.1", f"{host}.999999999.1", "elsewhere.7.1"]
    for name in left:
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.json").write_text('[[["asked", [["route", "a"]], 100]], []]')
    old = tmp_path / "elsewhere.8.1"
    old.mkdir()
    os.utime(old, (1, 1))
    assert process(tmp_path, 2)[0] == 2
    mine = f"{host}.{os.getpid()}.{tally._began(os.getpid())}"
    assert {path.name for path in tmp_path.iterdir()} == {"elsewhere.7.1", mine}


def test_a_file_that_is_broken_or_a_folder_that_is_away_costs_no_count(tmp_path: Path) -> None:
    process(tmp_path, 2)
    [folder] = tmp_path.iterdir()
    (folder / "broken.json").write_text("[[")
    assert process(tmp_path, 3)[0] == 5
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert process(blocked, 3)[0] == 3


def test_durations_fall_into_the_bucket_of_the_next_bound() -> None:
    tally.took("test_buckets", 0.005)
    tally.took("test_buckets", 0.0051)
    tally.took("test_buckets", 99)
    values = tally.totals().times[("test_buckets", ())]
    assert values == [1, 1, *[0] * 10, 1, 99.0101]
