"""Tables for spreadsheets, in which no text is taken for a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""How a cell begins that a spreadsheet would work out (OWASP: CSV Injection)."""

Value = str | int | float | None


def cell(value: Value) -> Value:
    """A value as a spreadsheet takes it for what it is: texts that look like formulas get a quote before."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def table(head: Sequence[str], rows: Iterable[Sequence[Value]]) -> str:
    """A table as CSV; an empty cell is "not known" or "nothing"."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([cell(value) for value in row] for row in rows)
    return out.getvalue()
