"""How much there is to read in a file decides who reads it."""

from __future__ import annotations

import gzip
import io

import pytest

from sizing.measuring.importing import weight
from sizing.measuring.importing.weighing import MOST_SLOW

MOST = 1024 * 1024
LARGE = b"[" + b"0," * MOST + b"0]"


@pytest.mark.parametrize(
    ("content", "more"),
    [
        (LARGE, True),
        (gzip.compress(LARGE), True),
        (gzip.compress(b"[]") + gzip.compress(LARGE), True),
        (gzip.compress(LARGE[:MOST]), False),
        (LARGE[:MOST], False),
        (b"results:\n" + b" " * MOST_SLOW, True),
        (gzip.compress(b"results:\n" + b" " * MOST_SLOW), True),
        (b"results:\n", False),
        (b"\xef\xbb\xbf {" + b" " * MOST_SLOW, False),
        (gzip.compress(LARGE, mtime=0)[:50], False),
        (b"", False),
    ],
)
def test_a_file_weighs_what_it_unpacks_to_and_text_that_is_slow_to_read_more(
    content: bytes, more: bool
) -> None:
    assert (weight(io.BytesIO(content), MOST) > MOST) is more
