"""Charts: exact places for known values, shapes that tell, words for those who cannot see them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest

from sizing.admin.charts import (
    Curve,
    Entry,
    Mark,
    Series,
    compared_throughput,
    history_chart,
    latency_chart,
    throughput_chart,
)
from sizing.admin.charts.frame import ticks
from tests.admin.test_every_page import HOSTILE

# The plot: x from 60 to 460, y from 260 (0) up to 40.


def svg(drawn: str) -> ElementTree.Element:
    return ElementTree.fromstring(drawn)


def marks(drawn: str) -> list[tuple[str, str]]:
    """Kind and element name of each mark."""
    found = svg(drawn).iter("g")
    return [
        (g.get("class", "").split("desk-mark-")[1], next(e for e in g if e.tag != "title").tag) for g in found
    ]


def of_class(drawn: str, name: str) -> list[dict[str, str]]:
    return [e.attrib for e in svg(drawn).iter() if e.get("class") == f"desk-chart-{name}"]


def throughput(**fields: object) -> str:
    known = {
        "marks": [Mark(2, 100, "pass"), Mark(4, 200, "pass"), Mark(8, 240, "fail")],
        "curve": [(2, 100), (4, 200), (8, 240)],
        "unit": "streams",
        "about": "Three levels.",
        "decided": (4, 200),
        "bracket": (4, 8),
    }
    return throughput_chart("t", **(known | fields))  # type: ignore[arg-type]


def test_a_level_stands_where_its_load_and_rate_say() -> None:
    # 8 streams end the x axis, 250 tok/s the y axis.
    assert svg(throughput()).find(".//circle").attrib == {"cx": "160", "cy": "172", "r": "5"}  # type: ignore[union-attr]
    assert of_class(throughput(), "ring") == [{"cx": "260", "cy": "84", "r": "9", "class": "desk-chart-ring"}]


def test_the_curve_is_whole_up_to_the_figure_and_dashed_beyond() -> None:
    assert [line["points"] for line in of_class(throughput(), "met")] == ["160,172 260,84"]
    assert [line["points"] for line in of_class(throughput(), "rest")] == ["260,84 460,48.8"]


def test_the_bracket_is_shaded_between_the_two_loads() -> None:
    (box,) = of_class(throughput(), "bracket")
    assert (box["x"], box["width"], box["y"], box["height"]) == ("260", "200", "40", "220")
    assert of_class(throughput(bracket=None), "bracket") == []


def test_verdicts_differ_by_shape_and_not_only_by_color() -> None:
    kinds = ("pass", "fail", "unknown", "invalid")
    drawn = throughput(marks=[Mark(i, 10, kind) for i, kind in enumerate(kinds, start=1)])
    assert marks(drawn) == [("pass", "circle"), ("fail", "line"), ("unknown", "polygon"), ("invalid", "rect")]


def test_a_load_that_failed_once_and_passed_once_shows_its_cross_above_the_dot() -> None:
    twice = [Mark(4, 200, "pass"), Mark(8, 240, "fail"), Mark(8, 241, "pass")]
    assert [kind for kind, _ in marks(throughput(marks=twice))] == ["pass", "pass", "fail"]


def test_a_chart_is_an_image_with_a_title_and_a_description() -> None:
    drawn = svg(throughput())
    assert drawn.get("role") == "img"
    assert [(drawn.get("aria-labelledby"), drawn.get("aria-describedby"))] == [("t-title", "t-about")]
    assert (drawn.findtext("title"), drawn.findtext("desc")) == (
        "Tokens per second by streams",
        "Three levels.",
    )


def test_nothing_in_a_chart_needs_a_style_or_a_script_of_its_own() -> None:
    for element in svg(throughput()).iter():
        assert not {"style", "onclick", "fill", "stroke"} & set(element.attrib)


def test_names_with_markup_are_escaped_in_charts() -> None:
    drawn = [
        throughput(about=HOSTILE, unit=HOSTILE, marks=[Mark(1, 1, "pass", HOSTILE)]),
        latency_chart(
            "l", [Series(HOSTILE, [Mark(1, 1, "pass", HOSTILE)])], unit="", percentile=HOSTILE, about=HOSTILE
        ),
        history_chart(
            "h", [Entry(datetime(2026, 1, 1, tzinfo=UTC), 1, "pass", HOSTILE)], title=HOSTILE, about=HOSTILE
        ),
    ]
    for one in drawn:
        assert HOSTILE not in one
        assert svg(one).findtext("desc") == HOSTILE


def latency(*values: float) -> str:
    series = [Series("TPOT", [Mark(load, value, "pass") for load, value in enumerate(values, start=1)])]
    return latency_chart("l", series, unit="streams", percentile="p95", about="")


def test_the_slo_is_one_line_at_100_percent_of_every_limit() -> None:
    # The largest value is 1.5 times its limit: the axis ends at 150 %.
    (line,) = of_class(latency(0.75, 1.5), "slo")
    assert float(line["y1"]) == float(line["y2"]) == pytest.approx(260 - 220 / 1.5, abs=0.05)
    assert [c.get("cy") for c in svg(latency(0.75, 1.5)).iter("circle")] == ["150", "40"]


def test_latencies_far_beyond_their_limit_stand_at_the_edge_with_an_arrow() -> None:
    drawn = latency(0.5, 40.0)
    assert [c.get("cy") for c in svg(drawn).iter("circle")] == ["216", "40"]
    assert len(of_class(drawn, "beyond")) == 1
    (line,) = of_class(drawn, "first")
    assert line["clip-path"] == "url(#l-plot)"


def test_each_latency_has_a_line_of_its_own_kind() -> None:
    both = [Series(name, [Mark(1, 0.5, "pass"), Mark(2, 0.6, "pass")]) for name in ("TTFT", "TPOT")]
    drawn = latency_chart("l", both, unit="streams", percentile="p95", about="")
    assert len(of_class(drawn, "first")) == len(of_class(drawn, "second")) == 1
    assert of_class(drawn, "third") == []


def test_a_history_has_the_median_and_what_is_no_drift_around_it() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    entries = [Entry(start + timedelta(days=i), 100, "pass") for i in range(6)]
    entries[-1] = Entry(start + timedelta(days=5), 80, "floor")
    drawn = history_chart("h", entries, title="", about="", before=100)
    # The axis ends at 150: 100 tok/s is at 260 - 220 * 100 / 150.
    (line,) = of_class(drawn, "median")
    assert float(line["y1"]) == pytest.approx(260 - 220 / 1.5, abs=0.05)
    (box,) = of_class(drawn, "allowed")
    assert float(box["height"]) == pytest.approx(220 * 20 / 150, abs=0.1)
    assert marks(drawn)[-1] == ("floor", "polygon")
    assert {"2026-01-01", "2026-01-06"} <= {e.text for e in svg(drawn).iter("text")}


def test_one_measurement_alone_can_be_drawn() -> None:
    drawn = history_chart("h", [Entry(datetime(2026, 1, 1, tzinfo=UTC), 10, "pass")], title="", about="")
    assert marks(drawn) == [("pass", "circle")]


@pytest.mark.parametrize(
    ("most", "found"),
    [
        (0, [0, 1]),
        (1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (8, [0, 2, 4, 6, 8]),
        (240, [0, 50, 100, 150, 200, 250]),
        (1024, [0, 500, 1000, 1500]),
        (0.43, [0, 0.1, 0.2, 0.3, 0.4, 0.5]),
    ],
)
def test_axes_have_round_numbers(most: float, found: list[float]) -> None:
    assert ticks(most) == found


def test_the_letters_of_two_curves_that_are_alike_stand_clear_of_marks_and_of_each_other() -> None:
    points = [(2.0, 100.0), (4.0, 200.0), (8.0, 201.0)]
    curves = [Curve(name, [Mark(*one, "pass") for one in points], points) for name in "AB"]
    drawn = compared_throughput("alike", curves, unit="streams", about="")
    letters = [(float(t["x"]), float(t["y"])) for t in of_class(drawn, "figure")]
    dots = [(float(c["cx"]), float(c["cy"])) for c in (e.attrib for e in svg(drawn).iter()) if "cx" in c]
    assert len(letters) == 2
    assert letters[0] != letters[1]
    for x, y in letters:
        assert all(abs(x - cx) > 10 or abs(y - 5 - cy) > 10 for cx, cy in dots)


def test_a_letter_steps_aside_where_a_mark_is_beside_its_point() -> None:
    points = [(7.7, 100.0), (8.0, 112.0)]
    curves = [Curve(name, [Mark(*one, "pass") for one in points], points) for name in "AB"]
    drawn = compared_throughput("near", curves, unit="streams", about="")
    below, above = (float(t["x"]) for t in of_class(drawn, "figure"))
    assert below != above
