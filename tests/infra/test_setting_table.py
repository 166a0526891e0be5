"""The table of settings says all that the environment may give, and nothing else is read."""

import ast
from pathlib import Path

import pytest
from django.conf import settings

from llmgw_admin import given
from llmgw_admin.setting_table import BEGIN, END, GROUPS, SETTINGS, markdown, with_table

ROOT = Path(settings.BASE_DIR)
READERS = {"text", "flag", "number", "decimal", "choice", "items", "url", "folder"}


def names_read() -> set[str]:
    tree = ast.parse((ROOT / "llmgw_admin" / "environment.py").read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {
        call.args[0].value
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "given"
        and call.func.attr in READERS
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
    }


def test_every_setting_of_the_table_is_read_and_every_one_read_stands_there():
    assert names_read() == {name for name, setting in SETTINGS.items() if not setting.elsewhere}
    assert len(SETTINGS) == sum(len(group) for group in GROUPS.values())


def test_the_settings_read_elsewhere_are_keys_of_endpoints_alone():
    elsewhere = [name for name, setting in SETTINGS.items() if setting.elsewhere]
    assert elsewhere == ["ENDPOINT_KEY_<NAME>"]
    source = (ROOT / "sizing" / "measuring" / "keys.py").read_text(encoding="utf-8")
    assert "ENDPOINT_KEY_{" in source


def test_a_name_that_is_not_in_the_table_cannot_be_read():
    with pytest.raises(LookupError):
        given.text("NO_SUCH_SETTING")


def test_the_readme_holds_the_table_as_the_code_says():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_table(readme) == readme


def test_the_table_is_written_between_its_markers_alone():
    written = with_table(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    assert written == f"before\n{BEGIN}\n\n{markdown()}\n\n{END}\nafter\n"
    assert "| `PORT` | `8000` | of the web server |" in written
    assert "| `DATABASE_URL`, `DATABASE_URL_FILE` | SQLite in `DATA_DIR` |" in written
    with pytest.raises(ValueError, match="has no lines"):
        with_table("a document without markers")


@pytest.mark.parametrize("name", [name for name, setting in SETTINGS.items() if setting.secret])
def test_a_secret_may_be_a_file(name, monkeypatch, tmp_path):
    file = tmp_path / "secret"
    file.write_text("redis://u:secret@host/1\n")
    monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(f"{name}_FILE", str(file))
    assert given.text(name) == "redis://u:secret@host/1"
    monkeypatch.setenv(name, "other")
    with pytest.raises(given.WrongSetting, match=f"{name} and {name}_FILE are both given; give one"):
        given.text(name)


def test_a_secret_file_that_is_empty_or_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.delenv("CACHE_URL", raising=False)
    monkeypatch.setenv("CACHE_URL_FILE", str(tmp_path / "no"))
    with pytest.raises(given.WrongSetting, match=r"CACHE_URL_FILE: .*/no cannot be read: No such file"):
        given.text("CACHE_URL")
    (tmp_path / "no").write_text(" \n")
    with pytest.raises(given.WrongSetting, match=r"CACHE_URL_FILE: .*/no is empty"):
        given.text("CACHE_URL")
