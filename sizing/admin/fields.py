"""Form fields for what the inventory file writes as lists and mappings, and for placements."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from sizing.inventory import scheduling
from sizing.inventory.document import Findings
from sizing.inventory.fields import Fields, text_problem
from sizing.inventory.reading import read as read_document
from sizing.inventory.yaml_reading import UnreadableError, read_yaml
from sizing.models import Gpu, Node, Replica
from sizing.models.fields import name_problem

LONGEST = 20_000

Read = Callable[[Fields, str], Any]


class DocumentField(forms.CharField):
    """A list or mapping as the inventory file writes it, in JSON or YAML; problems come with their paths."""

    def __init__(self, *, key: str, read: Read, example: str, empty: Any, **kwargs: Any) -> None:
        self.key = key
        self.read_value = read
        self.empty = empty
        kwargs.setdefault("required", False)
        kwargs.setdefault(
            "widget", forms.Textarea(attrs={"rows": 2, "class": "desk-code", "spellcheck": "false"})
        )
        help_text = kwargs.pop("help_text", "")
        super().__init__(help_text=f"{help_text} For example {example}".strip(), max_length=LONGEST, **kwargs)

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        if not text:
            return self.empty
        try:
            parsed = parse(text)
        except UnreadableError as error:
            raise ValidationError(str(error)) from None
        findings = Findings()
        read = self.read_value(Fields(findings, {self.key: parsed}, ""), self.key)
        if findings.errors:
            raise ValidationError([str(problem) for problem in findings.errors])
        return read

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return value
        return json.dumps(value, ensure_ascii=False) if value else ""

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(self.to_python(data) != (initial or self.empty))
        except ValidationError:
            return True

    # A CharField's own validators are for texts; `to_python` has said all there is to say.
    def run_validators(self, value: Any) -> None:
        return None


def parse(text: str) -> Any:
    """JSON or YAML; a document in braces may be either. Raises UnreadableError."""
    try:
        return read_document(text.encode())
    except UnreadableError as error:
        if not text.startswith("{"):
            raise
        try:
            return read_yaml(text.encode())
        except UnreadableError:
            raise error from None


def labels_field(key: str, **kwargs: Any) -> DocumentField:
    example = '{"topology.kubernetes.io/zone": "eu-1a"}'
    return DocumentField(key=key, read=scheduling.read_labels, example=example, empty={}, **kwargs)


def taints_field(**kwargs: Any) -> DocumentField:
    def read(fields: Fields, key: str) -> Any:
        return scheduling.taints_form(scheduling.read_taints(fields, key))

    example = '[{"key": "dedicated", "value": "rag", "effect": "NoSchedule"}]'
    return DocumentField(key="taints", read=read, example=example, empty=[], **kwargs)


def tolerations_field(**kwargs: Any) -> DocumentField:
    def read(fields: Fields, key: str) -> Any:
        return scheduling.tolerations_form(scheduling.read_tolerations(fields, key))

    example = '[{"key": "dedicated", "operator": "Equal", "value": "rag", "effect": "NoSchedule"}]'
    return DocumentField(key="tolerations", read=read, example=example, empty=[], **kwargs)


def gpu_types_field(**kwargs: Any) -> DocumentField:
    def read(fields: Fields, key: str) -> Any:
        return list(fields.texts(key, name_problem, unique=True))

    return DocumentField(key="gpu_types", read=read, example='["NVIDIA-H100-80GB-HBM3"]', empty=[], **kwargs)


def warnings_field(**kwargs: Any) -> DocumentField:
    def read(fields: Fields, key: str) -> Any:
        return list(fields.texts(key, text_problem))

    return DocumentField(key="warnings", read=read, example='["prefix cache was on"]', empty=[], **kwargs)


def label_date_and_time(fields: Mapping[str, forms.Field], name: str) -> None:
    """Say the zone of a time, and name its two inputs for those who hear the page; nothing where a form has
    no such field."""
    field = fields.get(name)
    if field:
        field.label = f"{name.replace('_', ' ').capitalize()} (UTC)"
    for part, widget in zip(("date", "time"), getattr(field and field.widget, "widgets", ()), strict=False):
        widget.attrs["aria-label"] = f"{name.replace('_', ' ').capitalize()}: {part} (UTC)"


# Placements as text: `gpu-a1: 0 1 2 3; gpu-a2: 0-3`

_PART = re.compile(r"\s*(?P<node>[^;\n]+?)\s*:\s*(?P<gpus>[0-9][0-9\s,\-]*)(?:[;\n]|$)")
_NUMBER_OR_RANGE = re.compile(r"([0-9]{1,9})(?:\s*-\s*([0-9]{1,9}))?")
MOST_GPUS = 4096


def placement_text(placement: dict[str, list[int]]) -> str:
    """The text that `parse_placement` reads."""
    return "; ".join(f"{node}: {' '.join(map(str, gpus))}" for node, gpus in placement.items())


def parse_placement(text: str) -> dict[str, list[int]]:
    """GPU indexes by node name; raises ValidationError that quotes the part it cannot read."""
    placement: dict[str, list[int]] = {}
    at = 0
    text = text.strip().rstrip(";").strip()
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            rest = re.split(r"[;\n]", text[at:].strip())[0]
            raise ValidationError(f'"{rest}" is not of the form NODE: GPU GPU …, such as gpu-a1: 0 1 2 3')
        node = part["node"]
        if node in placement:
            raise ValidationError(f'node "{node}" is named twice')
        placement[node] = _indexes(node, part["gpus"])
        at = part.end()
    return placement


def _indexes(node: str, text: str) -> list[int]:
    indexes: list[int] = []
    for low_text, high_text in _NUMBER_OR_RANGE.findall(text):
        low = int(low_text)
        high = int(high_text) if high_text else low
        if high < low or high - low >= MOST_GPUS:
            raise ValidationError(f'node "{node}": {low}-{high} is no range of GPUs')
        indexes.extend(range(low, high + 1))
    if "-" in _NUMBER_OR_RANGE.sub("", text):
        raise ValidationError(f'node "{node}": "{text.strip()}" is no list of GPU indexes')
    twice = sorted({i for i in indexes if indexes.count(i) > 1})
    if twice:
        raise ValidationError(f'node "{node}": GPU {twice[0]} is named twice')
    return indexes


def find_gpus(placement: dict[str, list[int]]) -> list[Gpu]:
    """The GPUs of a placement; raises ValidationError with every one that there is not."""
    nodes = {node.name: node for node in Node.objects.filter(name__in=placement)}
    gpus = {
        (gpu.node_id, gpu.index): gpu
        for gpu in Gpu.objects.filter(node__in=nodes.values()).select_related("node")
    }
    problems: list[str] = []
    found: list[Gpu] = []
    for name, indexes in placement.items():
        node = nodes.get(name)
        if node is None:
            problems.append(f'no node "{name}"')
            continue
        for index in indexes:
            gpu = gpus.get((node.pk, index))
            if gpu is None:
                problems.append(f'node "{name}" has no GPU {index}')
            else:
                found.append(gpu)
    if problems:
        raise ValidationError(problems)
    return found


def placement_of(replica: Replica) -> dict[str, list[int]]:
    """The GPU indexes of a replica by node name; a list prefetches `placements` with their nodes."""
    placement: dict[str, list[int]] = {}
    prefetched = "placements" in getattr(replica, "_prefetched_objects_cache", {})
    placements = replica.placements.all() if prefetched else replica.placements.select_related("gpu__node")
    gpus = sorted((p.gpu for p in placements), key=lambda gpu: (gpu.node.name, gpu.index))
    for gpu in gpus:
        placement.setdefault(gpu.node.name, []).append(gpu.index)
    return placement
