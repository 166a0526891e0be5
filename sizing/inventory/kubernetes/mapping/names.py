"""Names that fit the desk's tables."""

from __future__ import annotations

from hashlib import sha256

from sizing.models.fields import NAME_LENGTH

OTHER_END = " (other)"
"""What the name of another workload gets at its end where it could be taken for a model's."""


def short(name: str, most: int = NAME_LENGTH) -> str:
    """The name, cut where it is longer than `most`, with a hash so that it stays one of its own."""
    if len(name) <= most:
        return name
    return f"{name[: most - 9]}~{sha256(name.encode()).hexdigest()[:8]}"
