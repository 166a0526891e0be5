"""Two measurements side by side: their figures, their levels, and what else differs between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from sizing.admin.charts import mark_key
from sizing.admin.measured import words
from sizing.admin.measured.curves import Side, charts_of
from sizing.domain.drift import MOST_DRIFT
from sizing.domain.levels import Level, Spread, load_words
from sizing.domain.throughput import LoadGroup
from sizing.models import Measurement
from sizing.templatetags.desk import NOTHING, num, rate

NOT_KNOWN = "not known"
_MOST_PLACES = 6


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a table: what, of A, of B, and by how much B is more."""

    name: str
    a: str
    b: str
    difference: str = ""


@dataclass(frozen=True, slots=True)
class LevelLine:
    """A load that was tried by one or both."""

    load: str
    cells: tuple[tuple[SafeString, str, str], ...]  # mark, verdict, tok/s; of A and of B
    difference: str


def compared(a: Side, b: Side) -> dict[str, Any]:
    """All that the page says of two measurements."""
    settings = _settings(a.measurement, b.measurement)
    return {
        "sides": (a, b),
        "sentence": sentence(a, b),
        "caution": _caution(a, b),
        "figures": _figures(a, b),
        "differing": [line for line in settings if line.a != line.b],
        "same": [line for line in settings if line.a == line.b and line.a != NOT_KNOWN],
        "levels": _levels(a, b),
        **charts_of(a, b),
    }


def sentence(a: Side, b: Side) -> str:
    """What the comparison comes to."""
    if not (a.counts and b.counts):
        return f"{_alone(b)}, {_alone(a)}."
    before, after = a.measurement.tok_per_sec, b.measurement.tok_per_sec
    if before == after:
        return f"A and B serve the same: {rate(after)} tok/s."
    share = (after - before) / before
    tenths = _short_of(float(abs(share) * 100), 1, 100 if share < 0 else None)
    said_share = num(tenths, "%") if float(tenths) else f"less than {num('0.1', '%')}"
    of_a, of_b = _rates(float(before), float(after))
    more = "more" if share > 0 else "less"
    within = (
        f" That is within the {num(MOST_DRIFT * 100, '%')} by which measurements of one replica differ."
        if abs(share) <= MOST_DRIFT
        else ""
    )
    return f"B serves {of_b} tok/s, {said_share} {more} than A with {of_a}.{within}"


def _rates(before: float | None, after: float | None) -> tuple[str, str]:
    """Two rates with as many places as the smaller one has alone, and more where they would look alike."""
    if before is None or after is None or before == after:
        return rate(before), rate(after)
    least = min(before, after)
    places = 1 if least >= 100 else 2 if least >= 1 else _MOST_PLACES
    while places < _MOST_PLACES and f"{before:.{places}f}" == f"{after:.{places}f}":
        places += 1
    return num(f"{before:.{places}f}"), num(f"{after:.{places}f}")


def _short_of(value: float, places: int, limit: float | None) -> str:
    """A number to so many places, and to more where it would look like the limit that it is below."""
    while limit is not None and places < _MOST_PLACES and f"{value:.{places}f}" == f"{limit:.{places}f}":
        places += 1
    return f"{value:.{places}f}"


def _alone(side: Side) -> str:
    if side.counts:
        return f"{side.name} serves {rate(side.measurement.tok_per_sec)} tok/s"
    return f"{side.name} {'served nothing' if side.measurement.slo_met else 'does not meet its SLO'}"


def _caution(a: Side, b: Side) -> str:
    """Why the difference may not be one of the replicas; empty where nothing stands against it."""
    if a.measurement.profile_id == b.measurement.profile_id:
        names = [name for name, of in _question() if of(a.measurement) != of(b.measurement)]
    else:
        names = ["the profile"]
    if names:
        differ = "differ" if len(names) > 1 else "differs"
        return (
            f"They answer different questions: {' and '.join(names)} {differ},"
            " so the figures do not tell the replicas apart."
        )
    floors = [one.name for one in (a, b) if one.measurement.bound == Measurement.Bound.FLOOR]
    if floors:
        tried = f"No load tried on {' and '.join(floors)} failed the SLO"
        return f"{tried}, so the true difference may be another one."
    return ""


def _question() -> Sequence[tuple[str, Callable[[Measurement], object]]]:
    """What makes one question of a measurement, beside its profile, which may have changed since."""
    return (
        ("the SLO", lambda m: m.slo),
        ("the tokens of a request", lambda m: [m.workload.get(k) for k in ("input_tokens", "output_tokens")]),
        ("the arrival of the load", lambda m: m.workload.get("arrival")),
    )


def _figures(a: Side, b: Side) -> list[Line]:
    before, after = _figure(a), _figure(b)
    shown = _rates(before, after)
    lines = [Line("tok/s at the SLO", *shown, _difference(before, after, shares=True)), _bounds(a, b)]
    if a.deciding is None and b.deciding is None:
        return lines
    at = {one.slo.percentile for one in (a, b)}
    percentile = at.pop() if len(at) == 1 else 95.0
    lines.append(Line("reached at", *(_load(one.deciding) for one in (a, b))))
    lines.append(_line("requests/s", a, b, lambda s: _of(s, "requests_per_sec"), _short, shares=True))
    for name, of in (("TTFT", "ttft"), ("TPOT", "tpot"), ("end to end", "e2e")):
        lines.append(
            _line(
                f"{name} p{percentile:g} (ms)",
                a,
                b,
                lambda side, of=of: _spread(side, of, percentile),  # type: ignore[misc]
                words.ms,
                shares=True,
            )
        )
    lines.append(_line("failed requests", a, b, lambda s: _of(s, "failed"), num))
    return lines


def _figure(side: Side) -> float | None:
    return float(side.measurement.tok_per_sec) if side.counts else None


def _bounds(a: Side, b: Side) -> Line:
    of = [(one.measurement.bound or NOT_KNOWN) if one.counts else "SLO not met" for one in (a, b)]
    return Line("bound", *of)


def _load(level: Level | None) -> str:
    return load_words(level.arrival, level.load) if level else NOTHING


def _of(side: Side, name: str) -> float | None:
    return getattr(side.deciding, name) if side.deciding else None


def _spread(side: Side, name: str, percentile: float) -> float | None:
    if side.deciding is None:
        return None
    spread: Spread = getattr(side.deciding, name)
    return spread.at.get(percentile)


def _short(value: float | None) -> str:
    return num(None if value is None else f"{value:.4g}")


def _line(
    name: str,
    a: Side,
    b: Side,
    of: Callable[[Side], float | None],
    shown: Callable[[Any], str],
    *,
    shares: bool = False,
) -> Line:
    before, after = of(a), of(b)
    return Line(name, shown(before), shown(after), _difference(before, after, shares=shares))


def _difference(before: float | None, after: float | None, *, shares: bool) -> str:
    """`+25 (+12.5 %)`; empty where one is not known."""
    if before is None or after is None:
        return ""
    if before == after:
        return "same"
    sign, by = ("+" if after > before else "−"), abs(after - before)
    # Of what is left something is to be seen.
    left = after < before and after != 0
    said = f"{sign}{_rounded(by, 1 if by >= 10 else 2, limit=before if left else None)}"
    if not shares or not before:
        return said
    return f"{said} ({sign}{_rounded(by / before * 100, 1, '%', limit=100 if left else None)})"


def _rounded(value: float, places: int, unit: str = "", limit: float | None = None) -> str:
    """A difference to so many places; none is rounded to 0, or up to the limit that it is below."""
    text = _short_of(value, places, limit)
    return num(text if float(text) else f"{value:.1g}", unit)


def _settings(a: Measurement, b: Measurement) -> list[Line]:
    """How each was taken: workload, engine, shape."""
    return [Line(name, of_a, of_b) for (name, of_a), (_, of_b) in zip(_setting(a), _setting(b), strict=True)]


def _setting(m: Measurement) -> Iterable[tuple[str, str]]:
    yield "model", m.variant.model.name
    yield "variant", m.variant.name
    yield "shape", m.variant_shape or NOT_KNOWN
    yield "GPU type", m.gpu_type or NOT_KNOWN
    yield "engine", m.engine or NOT_KNOWN
    yield "profile", m.profile.name
    yield "SLO", words.slo_words(m.slo)
    yield "workload", words.workload_words(m.workload) or NOT_KNOWN
    yield "seed", str(m.workload.get("seed", NOT_KNOWN))
    yield "measured by", (m.generator or m.source) if m.was_measured else f"hand: {m.source}"
    yield "replica", m.replica_name or NOT_KNOWN
    yield "warnings", "; ".join(map(str, m.warnings)) or "none"


def _levels(a: Side, b: Side) -> list[LevelLine]:
    """Every load that one of them was tried at, by load; none where loads mean different things."""
    if not a.groups or not b.groups or a.arrival is None or a.arrival != b.arrival:
        return []
    of_a, of_b = ({g.load: g for g in one.groups} for one in (a, b))
    return [
        LevelLine(
            load_words(a.arrival, load),
            (_cell(of_a.get(load)), _cell(of_b.get(load))),
            _difference(_rate(of_a.get(load)), _rate(of_b.get(load)), shares=True),
        )
        for load in sorted({*of_a, *of_b})
    ]


def _rate(group: LoadGroup | None) -> float | None:
    return group.tok_per_sec if group and group.tok_per_sec else None


def _cell(group: LoadGroup | None) -> tuple[SafeString, str, str]:
    if group is None:
        return SafeString(), "", NOTHING
    return mark_key(group.verdict), group.verdict.value, rate(_rate(group))
