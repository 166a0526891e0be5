"""Rules by which pods become replicas: an operator's own, before what the desk knows by itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """What a pod must be like, and what it then is.

    `by` is `label` (the value of label `key`), `owner` (`Kind/name` of what controls the pod in the end),
    `pod` (`namespace/name`), `image` or `command` (the words of a container, separated by spaces). The whole
    value must match the regular expression `pattern`; `namespace`, where given, must match whole as well.
    `model` and `variant` are the names that follow, in which `\\1` or `\\g<name>` stand for groups of the
    pattern. An empty `model`: this pod is no LLM replica. An empty `variant`: found by its shape.
    """

    name: str
    by: str
    pattern: str
    key: str = ""
    namespace: str = ""
    model: str = ""
    variant: str = ""
