"""Result files that people already have, read without being told which load generator wrote them."""

from sizing.measuring.files.exporting import Meta, levels_csv, report_json, reports
from sizing.measuring.files.points import (
    DEFAULT_SLO,
    FilePoint,
    FileRefused,
    FileResult,
    all_warnings,
    point_warnings,
    points_form,
    result_form,
)
from sizing.measuring.files.reading import read_guidellm, read_results

__all__ = [
    "DEFAULT_SLO",
    "FilePoint",
    "FileRefused",
    "FileResult",
    "Meta",
    "all_warnings",
    "levels_csv",
    "point_warnings",
    "points_form",
    "read_guidellm",
    "read_results",
    "report_json",
    "reports",
    "result_form",
]
