"""The load levels of a measurement, as they were observed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from sizing.domain.levels import CONCURRENCY, POISSON, Verdict
from sizing.models import BenchLevel

ALWAYS = ("50", "95", "99")


def _figure(help_text: str, **options: Any) -> serializers.FloatField:
    """A number that was observed, or null."""
    return serializers.FloatField(read_only=True, allow_null=True, help_text=help_text, **options)


def _number(help_text: str, **options: Any) -> serializers.IntegerField:
    """How many there were, or null."""
    return serializers.IntegerField(read_only=True, allow_null=True, help_text=help_text, **options)


def _flag(help_text: str, **options: Any) -> serializers.BooleanField:
    return serializers.BooleanField(read_only=True, allow_null=True, help_text=help_text, **options)


def _arrival(**options: Any) -> serializers.ChoiceField:
    return serializers.ChoiceField(
        choices=[POISSON, CONCURRENCY],
        read_only=True,
        allow_null=True,
        help_text="poisson: requests are sent at random moments, whatever the server does; "
        "concurrency: each stream sends its next request when the last is answered. null: not known.",
        **options,
    )


LOAD = "As asked: requests/s (poisson) or streams (concurrency). null: no limit, or not known."


@extend_schema_field(
    {
        "type": "object",
        "properties": {
            name: {"type": "number", "format": "double", "nullable": True}
            for name in ("mean", *(f"p{at}" for at in ALWAYS))
        },
        "required": ["mean", *(f"p{at}" for at in ALWAYS)],
        "additionalProperties": {"type": "number", "format": "double"},
    }
)
class Latency(serializers.Field):  # type: ignore[type-arg]
    """A latency over the requests of a level: `{"mean", "p50", "p95", "p99"}`, null where not known.

    Other percentiles that are known stand beside these: `p90`, `p99.9`.
    """

    def to_representation(self, value: Mapping[str, Any]) -> dict[str, float | None]:
        at = value.get("at") or {}
        others = sorted(at.keys() - set(ALWAYS), key=float)
        return {"mean": value.get("mean")} | {f"p{key}": at.get(key) for key in (*ALWAYS, *others)}


def _latency(name: str, words: str) -> Latency:
    return Latency(
        source=f"observed.{name}",
        default=dict,
        read_only=True,
        help_text=f"{words}, in ms: mean and percentiles, null where not known. "
        "Others that are known stand beside these (`p90`, `p99.9`).",
    )


class LevelSerializer(serializers.Serializer[BenchLevel]):
    """One load at which a replica was measured, with its verdict. null: not known."""

    position = serializers.IntegerField(
        read_only=True, help_text="In the order in which they were measured, from 1."
    )
    load = _figure(LOAD, source="observed.load")
    arrival = _arrival(source="observed.arrival")
    verdict = serializers.ChoiceField(
        choices=[verdict.value for verdict in Verdict],
        read_only=True,
        help_text="Whether the SLO was met; only pass counts as met.",
    )
    why = serializers.CharField(read_only=True, help_text="The reason for the verdict.")
    tok_per_sec = _figure("Output tokens per second of the whole replica.", source="observed.tok_per_sec")
    requests_per_sec = _figure("Requests completed per second.", source="observed.requests_per_sec")
    sent_per_sec = _figure("Requests really sent per second.", source="observed.sent_per_sec")
    delay_p95_s = _figure(
        "How much later than planned requests were sent, in s, at p95.", source="observed.delay_p95_s"
    )
    duration_s = _figure("How long it was measured, in s.", source="observed.duration_s")
    sent = _number("Requests sent and ended: completed and failed.", source="observed.sent")
    completed = _number("Requests answered.", source="observed.completed")
    failed = _number("Requests that failed, empty answers among them.", source="observed.failed")
    cut = _number("Requests ended by the end of the level; they do not count.", source="observed.cut")
    conform = _number("Requests that met every limit of the SLO.", source="observed.conform")
    failures: Any = serializers.DictField(
        child=serializers.IntegerField(),
        source="observed.failures",
        default=dict,
        read_only=True,
        help_text="How many failed of each kind.",
    )
    input_tokens = _figure("Prompt tokens of a request, on average.", source="observed.input_tokens")
    output_tokens = _figure("Output tokens of a request, on average.", source="observed.output_tokens")
    ttft_ms = _latency("ttft", "Time to the first token")
    tpot_ms = _latency("tpot", "Time per output token after the first (`itl_ms` of an SLO limits it)")
    e2e_ms = _latency("e2e", "Time to the last token")
    streamed = _flag(
        "false: answers came in one piece, so TTFT and TPOT are not known.", source="observed.streamed"
    )
    counted = _flag(
        "true: tokens were counted from the stream, for the server told no usage.",
        source="observed.counted",
    )
    cancelled = _flag("true: it was stopped before its end.", source="observed.cancelled")
    warnings = serializers.ListField(
        child=serializers.CharField(),
        source="observed.warnings",
        default=list,
        read_only=True,
        help_text="What is odd about it.",
    )


class LiveLevelSerializer(serializers.Serializer[Any]):
    """The level that is being measured now. null: not known yet."""

    level = _number("Number of the level, from 1; 0 before the first.")
    most = _number("How many levels it takes as a rule; grows with the level.")
    load = _figure(LOAD)
    arrival = _arrival()
    purpose = serializers.CharField(read_only=True, allow_null=True, help_text="Why this load, in words.")
    seconds = _figure("Since the start of the level, in s.")
    sent = _number("Requests sent so far.")
    completed = _number("Requests answered so far.")
    failed = _number("Requests failed so far.")
    tok_per_sec = _figure("Output tokens per second so far.")

    def get_attribute(self, instance: Any) -> Any:
        """None where no level is being measured."""
        return super().get_attribute(instance) or None
