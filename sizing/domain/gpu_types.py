"""When two spellings name the same GPU type."""

from __future__ import annotations

import re

_VENDOR = re.compile(r"^(?:nvidia|amd|intel)[-_ ]")
_SEPARATORS = str.maketrans("_ ", "--")


def type_key(name: str) -> str:
    """The comparable form: without the vendor's prefix and case, with `_`, `-` and space alike.

    `nvidia h100_80gb hbm3` and `NVIDIA-H100-80GB-HBM3` give the same key.
    """
    return _VENDOR.sub("", name.lower()).translate(_SEPARATORS)
