"""Charts as SVG, drawn by the server from plain values: no script, no style of their own, words for all."""

from sizing.admin.charts.compared import Curve, compared_latency, compared_throughput
from sizing.admin.charts.history import Entry, history_chart
from sizing.admin.charts.levels import Mark, Series, latency_chart, throughput_chart
from sizing.admin.charts.marks import line_key, mark_key

__all__ = [
    "Curve",
    "Entry",
    "Mark",
    "Series",
    "compared_latency",
    "compared_throughput",
    "history_chart",
    "latency_chart",
    "line_key",
    "mark_key",
    "throughput_chart",
]
