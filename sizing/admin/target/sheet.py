"""The nodes of an answer as a table to be saved."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.utils.http import content_disposition_header
from django.utils.text import slugify

from sizing.admin import words
from sizing.domain.answer import Answer
from sizing.services import sheets

HEAD = (
    "node",
    "code",
    "reason",
    "takes",
    "new replicas",
    "counted",
    "have",
    "need",
    "held by",
    "stops",
    "code afterwards",
    "takes afterwards",
)


def node_sheet(answer: Answer) -> HttpResponse:
    """One line for each node, by name: why it takes no replica, or how many, and what the answer does
    with it. Replicas over several nodes are counted on each of them."""
    rows = answer.node_table().rows(preemption=False)
    text = sheets.table(HEAD, map(_line, rows, answer.plan.shares.tolist()))
    name = f"target-{slugify(answer.count.model.name.replace('/', '-'))}-{answer.question.tokens_per_sec}.csv"
    return HttpResponse(
        text,
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": content_disposition_header(True, name) or "attachment"},
    )


def _line(node: dict[str, Any], new: int) -> list[sheets.Value]:
    after = node["after"] or {}
    have = next(((key, value) for key, value in node["numbers"].items() if not key.startswith("need")), None)
    need = next((value for key, value in node["numbers"].items() if key.startswith("need")), None)
    return [
        node["node"],
        node["code"],
        node["say"],
        node["fits"],
        new,
        words.number_name(have[0]) if have else None,
        have[1] if have else None,
        need,
        ", ".join(node["holders"]),
        ", ".join(after.get("stops", [])),
        after.get("code"),
        after.get("fits"),
    ]
