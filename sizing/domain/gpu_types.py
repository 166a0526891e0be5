"""When two spellings name the same GPU type."""

from __future__ import annotations

import re

_VENDOR = re.compile(r"^(?:(?:nvidia|amd|intel)[-_ ])?(?:tesla[-_ ])?(?=.)")
_FORM_FACTOR = re.compile(r"[-_ ]oam(?=$|[-_ ])")
_SEPARATORS = str.maketrans("_ ", "--")


def type_key(name: str) -> str:
    """The comparable form: without the vendor's prefix and case, with `_`, `-` and space alike.

    `nvidia h100_80gb hbm3` and `NVIDIA-H100-80GB-HBM3` give the same key. AMD's node labeller writes the
    form factor of a module into the name (`AMD_Instinct_MI300X_OAM`), which the card is not called by:
    `Instinct-MI300X` gives the same key. So does `T4` for `Tesla-T4` and `NVIDIA-Tesla-T4`: which of them
    a driver reports depends on its version.
    """
    bare = _FORM_FACTOR.sub("", _VENDOR.sub("", name.lower()))
    return bare.translate(_SEPARATORS)
