"""A measurement's levels for others: as llm-d Benchmark Reports, and as a table."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sizing.measuring.files import Meta, levels_csv, report_json
from sizing.models import Measurement
from sizing.services.errors import DeskError
from sizing.services.sheets import cell

LLM_D, CSV = "llm-d", "csv"
KINDS = (LLM_D, CSV)


@dataclass(frozen=True, slots=True)
class Report:
    """A text to be saved, and what it is."""

    text: str
    media_type: str
    file_name: str


def report(measurement: Measurement, kind: str = LLM_D) -> Report:
    """The levels of a measurement. DeskError 404 where it has none, for it was entered by hand."""
    levels = [row.judged.level for row in measurement.levels.all()]
    if not levels:
        raise DeskError(
            f"measurement {measurement.pk} has no levels to report: it was entered by hand",
            code="not_found",
            status=404,
        )
    meta = _meta(measurement)
    name = f"measurement-{measurement.pk}"
    if kind == CSV:
        in_a_sheet = replace(meta, model=str(cell(meta.model)))
        table = levels_csv(levels, in_a_sheet, measurement.slo)
        return Report(table, "text/csv; charset=utf-8", f"{name}.csv")
    return Report(report_json(levels, meta), "application/json", f"{name}.json")


def _meta(measurement: Measurement) -> Meta:
    tool, _, version = measurement.generator.rpartition(" ")
    if not version[:1].isdigit():
        tool, version = measurement.generator, ""
    shape = measurement.workload
    # Of an import the lengths were observed, and its levels tell them.
    asked = {} if "files" in shape else shape
    return Meta(
        uid=f"measurement-{measurement.pk}",
        model=measurement.variant.model.name,
        tool=tool or measurement.source,
        tool_version=version,
        input_tokens=asked.get("input_tokens"),
        output_tokens=asked.get("output_tokens"),
        ended_at=measurement.measured_at.isoformat().replace("+00:00", "Z"),
        description=measurement.bracket,
        keywords=(measurement.variant.name, measurement.profile.name),
    )
