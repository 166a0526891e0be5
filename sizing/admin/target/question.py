"""The question as the page's address holds it, and the form that asks it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from sizing.models import ServedModel
from sizing.services.targets import offered

FIELDS = ("tokens_per_sec", "profile", "variant", "utilization")
AS_IF = "as_if"
CHOICES_SHOWN = 500

_IN_GROUPS = re.compile(r"\d{1,3}([, \u00a0\u202f]\d{3})+(\.\d*)?")
"""A number as the pages write it, from which it may be pasted back."""

NO_TOKENS = '"{}" serves no tokens: its workload is "other", so there is nothing to ask of it'

Params = Mapping[str, Sequence[str]]
"""The values given for each parameter of a question."""


def asked(query: QueryDict) -> dict[str, list[str]]:
    """The question's own parameters. A field left empty in the form is not part of the question."""
    params = {name: [_plain(v.strip()) for v in query.getlist(name)] for name in FIELDS if name in query}
    kept = {name: values for name, values in params.items() if name == FIELDS[0] or values != [""]}
    supposed = query.getlist(AS_IF)
    return kept | ({AS_IF: supposed} if supposed else {})


def _plain(value: str) -> str:
    """`12,345.5` as `12345.5`; all else as it is."""
    return re.sub(r"[^\d.]", "", value) if _IN_GROUPS.fullmatch(value) else value


def no_tokens(model: ServedModel) -> str:
    """Why nothing can be asked of a model; empty where something can."""
    return "" if model.workload == ServedModel.Workload.MODEL else NO_TOKENS.format(model.name)


def query_of(params: Params, **changed: Sequence[str]) -> str:
    """A question's query string, with some parameters changed; one without values is left out."""
    return urlencode({**params, **changed}, doseq=True)


def form_part(name: str, params: Params) -> dict[str, Any]:
    """What the form offers: profiles, those first on which the model is measured, and its variants.

    What was asked stays among them also where there is no such thing.
    """
    offer = offered(name)
    profiles = [(profile, profile) for profile in offer.profiles if profile in offer.measured]
    profiles += [
        (profile, f"{profile} (not measured)") for profile in offer.profiles if profile not in offer.measured
    ]
    variants = [(variant, variant) for variant in offer.variants]
    return {
        "params": {field: params[field][-1] for field in FIELDS if field in params},
        "supposed": params.get(AS_IF, ()),
        "default_profile": offer.default_profile,
        "profiles": with_asked(profiles[:CHOICES_SHOWN], params.get("profile")),
        "variants": with_asked(variants[:CHOICES_SHOWN], params.get("variant")),
    }


def with_asked(choices: list[tuple[str, str]], asked: Sequence[str] | None) -> list[tuple[str, str]]:
    """The choices, and what was asked beside them."""
    if not asked or asked[-1] in (name for name, _label in choices):
        return choices
    return [*choices, (asked[-1], f"{asked[-1]} (not among them)")]
