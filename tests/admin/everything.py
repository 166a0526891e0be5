"""Every address of the desk, from the resolver itself, and one of each object that they name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group, User
from django.contrib.contenttypes.models import ContentType
from django.urls import URLPattern, URLResolver, get_resolver

from sizing.models import BenchFile, BenchImport, Measurement, Node, ServedModel
from tests.admin.cluster import make_everything

_PARAMETER = re.compile(r"<(?:[a-z]+:)?(?P<name>[a-z_]+)>")
_NAMED = re.compile(r"\(\?P<(?P<name>[a-z_]+)>(?:[^()]|\([^()]*\))*\)")
_OPTIONAL_SLASH = re.compile(r"\(\?:/\)\?|/\?")


def routes(resolver: Any = None, before: str = "") -> Iterator[tuple[str, str]]:
    """All addresses by name and pattern: `sizing_node_change` is `admin/sizing/node/<object_id>/change/`."""
    for entry in (resolver or get_resolver()).url_patterns:
        path = before + _plain(str(entry.pattern))
        if isinstance(entry, URLResolver):
            yield from routes(entry, path)
        elif isinstance(entry, URLPattern):
            yield entry.name or path, path


def _plain(pattern: str) -> str:
    """A pattern with its parameters as `<name>`, whichever way it is written."""
    plain = _NAMED.sub(lambda found: f"<{found['name']}>", pattern)
    plain = _PARAMETER.sub(lambda found: f"<{found['name']}>", plain)
    return _OPTIONAL_SLASH.sub("", plain).replace(r"\Z", "").strip("^$")


def make_one_of_each() -> dict[str, Any]:
    """One row of every registered table, by `sizing.node`; beside them what only addresses name."""
    make_everything()
    measurement = Measurement.objects.get()
    kept = BenchFile.objects.create(measurement=measurement, position=1, name="a.json", size=0, sha256="")
    User.objects.filter(username="person0").update(is_staff=True)
    rows = {
        f"{table._meta.app_label}.{table._meta.model_name}": table._default_manager.order_by("pk").first()
        for table in admin.site._registry
    }
    rows["auth.user"] = User.objects.get(username="person0")
    rows["auth.group"] = Group.objects.get(name="group0")
    return rows | {"file": kept}


def address(name: str, pattern: str, rows: dict[str, Any]) -> str:
    """The address with the keys of rows in it."""
    table = ".".join(name.split("_")[:2])
    if pattern.startswith("admin/") and len(pattern.split("/")) > 3:
        table = ".".join(pattern.split("/")[1:3])
    row = rows.get(table) or _of_api(pattern, rows)
    known = {
        "file": rows["file"].pk,
        "app_label": "sizing",
        "content_type_id": ContentType.objects.get_for_model(Node).pk,
        "url": "nowhere",
    }
    for parameter in _PARAMETER.findall(pattern):
        if parameter in known:
            value = known[parameter]
        elif parameter == "name":
            value = row.name
        else:
            value = quote(row.pk) if row else 1
        pattern = pattern.replace(f"<{parameter}>", str(value))
    slash = "" if pattern.endswith("/") or not pattern.startswith("admin") else "/"
    return f"/{pattern}{slash}"


_API_TABLES: dict[str, type[Any]] = {"models": ServedModel, "imports": BenchImport}


def _of_api(pattern: str, rows: dict[str, Any]) -> Any:
    """The row that an address of the API names."""
    parts = pattern.split("/")
    if parts[0] != "api" or len(parts) < 4:
        return None
    kind = parts[2]
    for label, row in rows.items():
        table = label.rpartition(".")[2]
        if kind in _API_TABLES:
            if isinstance(row, _API_TABLES[kind]):
                return row
        elif row is not None and (
            f"{table}s" == kind or f"{table}es" == kind or table == f"bench{kind[:-1]}"
        ):
            return row
    return None
