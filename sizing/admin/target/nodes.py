"""The nodes of an answer: counted by code, and a page of them in a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core.paginator import Paginator
from django.http import QueryDict
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from sizing.admin import words
from sizing.domain.answer import Answer
from sizing.services.targets import node_ids
from sizing.templatetags.desk import num

ROWS_A_PAGE = 30
HOLDERS_SHOWN = 5


@dataclass(frozen=True)
class NodeRow:
    """A line of the node table, each cell as it is shown."""

    name: str
    reason: str
    fits: str
    numbers: str
    holders: str


@dataclass(frozen=True)
class CodeGroup:
    """How many nodes share a code, and the address of their rows alone."""

    code: str
    reason: str
    nodes: int
    fits: int
    query: str
    chosen: bool


def nodes_part(query: QueryDict, answer: Answer, links: bool) -> dict[str, Any]:
    """Nodes counted by code, and one page of rows, of one code where `code` names it. links: whether the
    nodes' pages may be seen."""
    table = answer.node_table()
    counts = table.counts()
    chosen = query.get("code", "")
    if chosen not in (code for code, _nodes, _fits in counts):
        chosen = ""
    number = sum(nodes for code, nodes, _fits in counts if chosen in ("", code))
    page = Paginator(range(number), ROWS_A_PAGE).get_page(query.get("page"))
    start = (page.number - 1) * ROWS_A_PAGE
    rows = table.rows([chosen] if chosen else None, start, start + ROWS_A_PAGE, preemption=False)
    ids = node_ids({row["node"] for row in rows}) if links else {}
    urls = {name: reverse("admin:sizing_node_change", args=[pk]) for name, pk in ids.items()}
    return {
        "groups": [
            CodeGroup(code, words.node_reason(code), nodes, fits, _with(query, code=code), code == chosen)
            for code, nodes, fits in counts
        ],
        "node_count": sum(nodes for _code, nodes, _fits in counts),
        "all_query": _with(query),
        "code_chosen": chosen,
        "page": page,
        "rows": [_row(row, urls.get(row["node"], "")) for row in rows],
        "previous_query": _page(query, page.previous_page_number()) if page.has_previous() else "",
        "next_query": _page(query, page.next_page_number()) if page.has_next() else "",
    }


def _row(node: dict[str, Any], url: str) -> NodeRow:
    name, holders = node["node"], node["holders"]
    reason = format_html('{} <code class="desk-quiet">{}</code>', node["say"], node["code"])
    fits, numbers = format_html("{}", num(node["fits"])), _numbers(node["numbers"])
    if after := node["after"]:
        reason += format_html(STOPS, ", ".join(after["stops"]))
        fits += format_html(FITS_AFTER, num(after["fits"]))
        numbers += format_html(NUMBERS_AFTER, _numbers(after["numbers"]))
    held = ", ".join(holders[:HOLDERS_SHOWN])
    more = len(holders) - HOLDERS_SHOWN
    return NodeRow(
        name=format_html('<a href="{}">{}</a>', url, name) if url else name,
        reason=reason,
        fits=fits,
        numbers=numbers,
        holders=f"{held} and {num(more)} more" if more > 0 else held,
    )


STOPS = '<br><span class="desk-stops"><span aria-hidden="true">■</span> stops {}</span>'
FITS_AFTER = ' <span aria-hidden="true">→</span><span class="visually-hidden">and afterwards</span> <b>{}</b>'
NUMBERS_AFTER = '<br><span class="desk-quiet">afterwards</span> {}'


def _numbers(numbers: dict[str, Any]) -> SafeString:
    named = ((words.number_name(key), num(value)) for key, value in numbers.items())
    return format_html_join("", '<span class="desk-number">{} <b>{}</b></span>', named)


def _with(query: QueryDict, code: str = "") -> str:
    """The page's query string for the nodes of a code, from their first page; without one for all."""
    new = query.copy()
    for name in ("page", "code"):
        new.pop(name, None)
    if code:
        new["code"] = code
    return new.urlencode()


def _page(query: QueryDict, number: int) -> str:
    new = query.copy()
    new["page"] = str(number)
    return new.urlencode()
