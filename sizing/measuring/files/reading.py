"""Result files of load generators, told apart by their content.

What a document is, is asked in a fixed order; the first kind that it matches reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, NamedTuple

from sizing.domain.levels import Level
from sizing.measuring.files import (
    aiperf,
    console,
    guidellm,
    inference_perf,
    llmperf,
    report,
    sglang,
    vllm,
    yaml_reports,
)
from sizing.measuring.files.documents import documents
from sizing.measuring.files.points import FilePoint, FileRefused, FileResult, finite
from sizing.measuring.files.texts import shown_name, utf8
from sizing.measuring.files.values import Node, shown_text


class Kind(NamedTuple):
    """A kind of document: what writes it, whether one is of it, and its load points."""

    tool: str
    matches: Callable[[Node], bool]
    read: Callable[[Node], Iterable[FilePoint]]


KINDS = (
    Kind(guidellm.TOOL, guidellm.matches, guidellm.read),
    Kind(inference_perf.TOOL, inference_perf.matches, inference_perf.read),
    Kind(aiperf.AIPERF, aiperf.matches_aiperf, aiperf.read),
    Kind(aiperf.GENAI_PERF, aiperf.matches_genai_perf, aiperf.read),
    Kind(sglang.TOOL, sglang.matches, sglang.read),
    Kind(vllm.VLLM, vllm.matches_vllm, vllm.read_vllm),
    Kind(vllm.INFERENCEX, vllm.matches_inferencex, vllm.read_inferencex),
    Kind(llmperf.TOOL, llmperf.matches, llmperf.read),
    Kind(report.TOOL, report.matches, report.read),
)


def read_results(name: str, data: bytes | BinaryIO) -> FileResult:
    """The load points of a result file, or in `error` one line that says why there are none.

    `data` is the whole file, or a file opened for reading bytes. Nothing in it is executed or opened.
    """
    shown = shown_name(name)
    try:
        if re.split(r"[/\\]", name)[-2:-1] == ["warmup"]:
            raise FileRefused("a result was expected, this is a warm-up's")
        text = utf8(data)
        points = tuple(finite(point) for point in _points(text))
    except FileRefused as refused:
        return FileResult(shown, refused.tool, error=f"{shown}: {refused}")
    if not points:
        return FileResult(shown, error=f"{shown}: a load point was expected, the file has none")
    return FileResult(shown, points[0].tool, points)


def read_guidellm(path: Path) -> list[Level]:
    """The levels of GuideLLM's own report, in the order of the file; FileRefused where it cannot be read."""
    with path.open("rb") as opened:
        documents_found = documents(utf8(opened))
        return [finite(point).level for document in documents_found for point in guidellm.read(document)]


def _points(text: bytes) -> Iterator[FilePoint]:
    if console.matches(text):
        yield from console.read(text)
        return
    if yaml_reports.matches(text):
        for node in yaml_reports.documents(text):
            yield from _elements(node)
        return
    for document in documents(text):
        yield from _elements(document)


def _elements(document: Node) -> Iterator[FilePoint]:
    """The points of a document; of a list, those of each element."""
    if isinstance(document.value, list):
        for element in document.items():
            yield from _elements(element)
        return
    if not isinstance(document.value, dict):
        raise document.refused("a result object")
    for kind in KINDS:
        if kind.matches(document):
            where = document.path.removesuffix(": ")
            try:
                for point in kind.read(document):
                    yield point if point.place else replace(point, place=where)
            except FileRefused as refused:
                refused.tool = kind.tool
                raise
            return
    keys = ", ".join(shown_text(name, 40) for name in document.names()[:4]) or "nothing"
    raise FileRefused(f"{document.place}: a load generator's result was expected, not an object of {keys}")
