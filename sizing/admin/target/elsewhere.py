"""The same answer elsewhere: its address, as JSON, as a table, by curl and by command."""

from __future__ import annotations

import shlex
from typing import Any
from urllib.parse import quote

from django.http import HttpRequest
from django.urls import get_script_prefix

from sizing.admin.target.question import AS_IF, Params, query_of


def elsewhere(request: HttpRequest, name: str, params: Params) -> dict[str, Any]:
    """Where else the answer to this question is to be had."""
    query = query_of(params)
    path = f"{get_script_prefix()}api/v1/models/{quote(name, safe='/:')}/target?{query}"
    url = request.build_absolute_uri(path)
    return {
        "here": request.build_absolute_uri(f"{request.path}?{query}"),
        "json_url": path,
        "csv_url": f"?{query}&format=csv",
        "curl": f'curl -H "Authorization: Bearer $LLMGW_TOKEN" {shlex.quote(url)}',
        "command": shlex.join(["python", "manage.py", "target", name, *_arguments(params)]),
    }


def _arguments(params: Params) -> list[str]:
    arguments = list(params.get("tokens_per_sec", ()))
    for key in ("profile", "variant", "utilization"):
        for value in params.get(key, ()):
            arguments += [f"--{key}", value]
    for supposed in params.get(AS_IF, ()):
        arguments += ["--as-if", supposed]
    return arguments
