"""The key of an endpoint is found by reference, the most special name first."""

from __future__ import annotations

from pathlib import Path

import pytest

from sizing.measuring.keys import key_for, names
from sizing.measuring.seam import MeasuringError

URL = "http://gpu-a1.internal:8000/v1"
MODEL = "meta-llama/Llama-3.1-8B"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GPU_A1_INTERNAL_8000", "META_LLAMA_LLAMA_3_1_8B", "DEFAULT"):
        monkeypatch.delenv(f"ENDPOINT_KEY_{name}", raising=False)


def test_the_names_of_a_key_go_from_the_port_to_all() -> None:
    assert names(URL, MODEL) == [
        "gpu_a1_internal_8000",
        "gpu_a1_internal",
        "meta_llama_Llama_3_1_8B",
        "default",
    ]
    assert names("https://[fd00::1]/v1", "m")[0] == "fd00__1_443"


def test_without_a_key_there_is_none(tmp_path: Path) -> None:
    assert key_for(URL, MODEL, None) == ""
    assert key_for(URL, MODEL, tmp_path) == ""


def test_a_special_name_comes_before_a_general_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "default").write_text("for-all\n")
    assert key_for(URL, MODEL, tmp_path) == "for-all"
    monkeypatch.setenv("ENDPOINT_KEY_META_LLAMA_LLAMA_3_1_8B", "of-the-model")
    assert key_for(URL, MODEL, tmp_path) == "of-the-model"
    (tmp_path / "gpu_a1_internal_8000").write_text("of-the-port")
    assert key_for(URL, MODEL, tmp_path) == "of-the-port"


def test_a_name_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("no key of an endpoint")
    folder = tmp_path / "keys"
    folder.mkdir()
    assert key_for(URL, "../secret", folder) == ""


@pytest.mark.parametrize("content", [b"two\nlines", "ключ".encode(), b"x" * 9000])
def test_what_is_no_key_is_refused_without_being_shown(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "default").write_bytes(content)
    with pytest.raises(MeasuringError) as refused:
        key_for(URL, MODEL, tmp_path)
    assert str(refused.value).startswith("the endpoint's key default ")
    assert "two" not in str(refused.value)
