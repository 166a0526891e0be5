"""What a replica says of itself: the names it serves, its engine and version, and its counters."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from sizing.measuring.loadgen.guard import guarded_session, read_capped
from sizing.measuring.seam import Endpoint, MeasuringError

LARGEST_ANSWER = 4 * 1024 * 1024
DEADLINE_S = 5.0

_PREFIXES = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "tgi": "TGI",
    "llamacpp": "llama.cpp",
    "trtllm": "TensorRT-LLM",
}
_GENERATED = ("vllm:generation_tokens", "sglang:generation_tokens", "tgi_request_generated_tokens_sum")
_REQUESTS = ("vllm:request_success", "sglang:num_requests", "tgi_request_success")
_WAITING = ("vllm:num_requests_waiting", "sglang:num_queue_reqs", "tgi_queue_size")
_RUNNING = ("vllm:num_requests_running", "sglang:num_running_reqs", "tgi_batch_current_size")
_CACHE_HITS = ("vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits")
_CACHE_QUERIES = ("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries")


@dataclass(frozen=True, slots=True)
class Counters:
    """What `/metrics` counts, summed over engines and labels; None: not told."""

    generated: float | None = None
    requests: float | None = None
    running: float | None = None
    waiting: float | None = None
    cache_hits: float | None = None
    cache_queries: float | None = None
    engine: str = ""


@dataclass(frozen=True, slots=True)
class Engine:
    """What runs behind an endpoint: name and version such as `vLLM 0.10.2`.

    label: "" where it does not tell, or where an answer that may name it did not come in time: half a name
    would look like another engine.
    """

    served: tuple[str, ...]
    label: str


def identify(endpoint: Endpoint) -> Engine:
    """Ask `/v1/models`, `/version` and `/metrics`; MeasuringError where nothing answers at the endpoint."""
    return asyncio.run(_identify(endpoint))


def counters(endpoint: Endpoint) -> Counters | None:
    """The replica's counters now, or None where it has none."""
    return asyncio.run(_counters(endpoint))


def served_name(served: tuple[str, ...], model: str) -> str:
    """The name under which a replica serves a model: its own, else the only one; MeasuringError."""
    if model in served:
        return model
    if len(served) == 1:
        return served[0]
    if not served:
        return model
    raise MeasuringError(f"the replica serves {', '.join(served[:5])}, and none of them is called {model}")


async def _identify(endpoint: Endpoint) -> Engine:
    async with guarded_session(endpoint) as session:
        status, body = await _get(session, f"{endpoint.url.rstrip('/')}/models")
        if status in (401, 403):
            raise MeasuringError(f"{endpoint.url} refuses the key, or needs one (HTTP {status})")
        served, owner = _models(body) if status == 200 else ((), "")
        said = [await _told(session, _root(endpoint, path)) for path in ("/version", "/metrics")]
    if None in said:
        return Engine(served, "")
    version, told = _version(said[0] or ""), _parse(said[1] or "")
    name = told.engine or _PREFIXES.get(owner.lower(), "")
    return Engine(served, " ".join(filter(None, (name or ("engine" if version else ""), version)))[:255])


async def _counters(endpoint: Endpoint) -> Counters | None:
    async with guarded_session(endpoint) as session:
        found = _parse(await _told(session, _root(endpoint, "/metrics")) or "")
    return found if found != Counters() else None


async def _told(session: aiohttp.ClientSession, url: str) -> str | None:
    """The body of an answer that may be missing: "" where it is, None where it did not come."""
    try:
        status, body = await _get(session, url)
    except MeasuringError:
        return None
    return body if status == 200 else "" if status < 500 else None


async def _get(session: aiohttp.ClientSession, url: str) -> tuple[int, str]:
    try:
        async with asyncio.timeout(DEADLINE_S), session.get(url, allow_redirects=False) as answer:
            body = await read_capped(answer, LARGEST_ANSWER + 1)
    except TimeoutError:
        raise MeasuringError(f"{url} does not answer within {DEADLINE_S:g} s") from None
    except aiohttp.ClientError as error:
        number = getattr(error, "errno", None)
        reason = os.strerror(number) if number and number > 0 else str(error) or type(error).__name__
        raise MeasuringError(f"{url} cannot be reached: {reason}") from None
    return answer.status, "" if len(body) > LARGEST_ANSWER else body.decode("utf-8", "replace")


def _root(endpoint: Endpoint, path: str) -> str:
    parts = urlsplit(endpoint.url)
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def _json(body: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _models(body: str) -> tuple[tuple[str, ...], str]:
    form = _json(body)
    rows = form.get("data") if isinstance(form, dict) else None
    rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    served = tuple(row["id"] for row in rows if isinstance(row.get("id"), str))
    owner = next((row["owned_by"] for row in rows if isinstance(row.get("owned_by"), str)), "")
    return served, owner


def _version(body: str) -> str:
    form = _json(body)
    version = form.get("version") if isinstance(form, dict) else None
    return version if isinstance(version, str) and version.isprintable() and len(version) <= 100 else ""


def _parse(text: str) -> Counters:
    """Counters of a Prometheus text; series are summed over their labels, `_created` ones left out."""
    sums: dict[str, float] = {}
    engine = ""
    try:
        for family in text_string_to_metric_families(text):
            prefix = family.name.partition(":")[0] if ":" in family.name else family.name.partition("_")[0]
            engine = engine or _PREFIXES.get(prefix, "")
            for sample in family.samples:
                name = sample.name.removesuffix("_total")
                if not sample.name.endswith(("_created", "_bucket")):
                    sums[name] = sums.get(name, 0.0) + sample.value
    except ValueError:  # what was read so far stands
        pass

    def first(names: tuple[str, ...]) -> float | None:
        return next((sums[name] for name in names if name in sums), None)

    fields = (_GENERATED, _REQUESTS, _RUNNING, _WAITING, _CACHE_HITS, _CACHE_QUERIES)
    generated, requests, running, waiting, hits, queries = map(first, fields)
    return Counters(generated, requests, running, waiting, hits, queries, engine)
