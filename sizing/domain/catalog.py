"""What may be asked: models, profiles, and what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from sizing.domain.specs import MeasurementSpec, ModelSpec, ProfileSpec, VariantSpec


class QuestionError(Exception):
    """A question that has no answer; `code` is the stable word for it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Question:
    """This model shall serve `tokens_per_sec` output tokens per second on a profile.

    `utilization` in (0, 1] is the share of the measured throughput to plan with. `as_if`: what to suppose
    of the cluster, in order (see `sizing.domain.supposing`).
    """

    model: str
    tokens_per_sec: Decimal
    profile: str | None = None
    variant: str | None = None
    utilization: Decimal = Decimal(1)
    as_if: tuple[str, ...] = ()


@dataclass(frozen=True)
class Catalog:
    """Models and profiles by name, and measurements by model, variant and profile.

    measured: the newest valid one. unmet: one that is newer than that, and found that the SLO is not met.
    """

    models: Mapping[str, ModelSpec]
    profiles: Mapping[str, ProfileSpec]
    measured: Mapping[tuple[str, str, str], MeasurementSpec]
    unmet: Mapping[tuple[str, str, str], MeasurementSpec]

    @classmethod
    def of(
        cls,
        models: Iterable[ModelSpec],
        profiles: Iterable[ProfileSpec],
        measurements: Iterable[MeasurementSpec],
    ) -> Catalog:
        """A catalog in which the newest valid measurement counts, of equal times the one stored later."""
        newest: dict[tuple[str, str, str], MeasurementSpec] = {}
        unmet: dict[tuple[str, str, str], MeasurementSpec] = {}
        for m in measurements:
            if m.valid:
                _keep_newer(newest, m)
            elif not m.slo_met:
                _keep_newer(unmet, m)
        unmet = {key: m for key, m in unmet.items() if key not in newest or m.newer_than(newest[key])}
        return cls({m.name: m for m in models}, {p.name: p for p in profiles}, newest, unmet)

    def model(self, name: str) -> ModelSpec:
        """The model of that name; QuestionError where there is none."""
        model = self.models.get(name)
        if model is None:
            raise QuestionError("not_found", f'no model "{name}"')
        return model

    def resolve(self, question: Question) -> tuple[ModelSpec, VariantSpec, MeasurementSpec]:
        """The model, variant and measurement that answer a question; QuestionError tells what there is."""
        model = self.model(question.model)
        profile = self._profile(model, question)
        if question.variant is not None:
            names = [v.name for v in model.variants]
            if question.variant not in names:
                raise QuestionError(
                    "unknown_variant",
                    f'{model.name} has no variant "{question.variant}"; {_there_are(names)}',
                )
            candidates = [model.variant(question.variant)]
        else:
            candidates = list(model.variants)
        for variant in candidates:
            measurement = self.measured.get((model.name, variant.name, profile))
            if measurement is not None:
                return model, variant, measurement
        raise _not_measured(model.name, self._unmet_of(model, profile))

    def _unmet_of(self, model: ModelSpec, profile: str | None) -> MeasurementSpec | None:
        found = [m for m in self.unmet.values() if m.model == model.name and profile in (None, m.profile)]
        return max(found, key=lambda m: (m.measured_at, m.order), default=None)

    def _profile(self, model: ModelSpec, question: Question) -> str:
        if question.profile is not None:
            if question.profile not in self.profiles:
                raise QuestionError(
                    "unknown_profile",
                    f'no profile "{question.profile}"; {_there_are(sorted(self.profiles))}',
                )
            return question.profile
        if model.default_profile is not None:
            return model.default_profile
        measured = sorted(
            {
                profile
                for variant in model.variants
                for profile in self.profiles
                if (model.name, variant.name, profile) in self.measured
            }
        )
        if not measured:
            raise _not_measured(model.name, self._unmet_of(model, None))
        if len(measured) > 1:
            raise QuestionError(
                "profile_required",
                f"{model.name} is measured on several profiles; name one of {', '.join(measured)}",
            )
        return measured[0]


def _keep_newer(kept: dict[tuple[str, str, str], MeasurementSpec], measured: MeasurementSpec) -> None:
    key = (measured.model, measured.variant, measured.profile)
    if key not in kept or measured.newer_than(kept[key]):
        kept[key] = measured


def _not_measured(model: str, unmet: MeasurementSpec | None) -> QuestionError:
    message = f"{model} has not been measured; run `manage.py bench {model} --save` first"
    return QuestionError("not_measured", f"{message} ({unmet_words(unmet)})" if unmet else message)


def unmet_words(unmet: MeasurementSpec) -> str:
    """That a measurement found the SLO out of reach, in words."""
    return (
        f"{unmet.variant} was measured on {unmet.measured_at:%Y-%m-%d},"
        f" and did not meet the SLO of {unmet.profile} at the lowest load tried"
    )


def _there_are(names: list[str]) -> str:
    return f"there are {', '.join(names)}" if names else "there are none"
