"""A lone request or two before any load: does it answer, how fast, how long are words, what it takes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from aiohttp import ClientSession

from sizing.measuring.loadgen.prompts import Prompts
from sizing.measuring.loadgen.request import (
    CLOSED,
    CONNECT,
    CUT,
    EMPTY,
    HTML,
    NOT_A_STREAM,
    REDIRECT,
    TIMEOUT,
    Flight,
    body_of,
    fly,
)
from sizing.measuring.loadgen.stream import Answer
from sizing.measuring.loadgen.summary import one_line, uncountable
from sizing.measuring.seam import Endpoint, MeasuringError, Probe, Workload

CLOSE_ENOUGH = 0.02
"""Share by which a prompt's length may differ from the asked one without another try."""

OPTIONAL = ("ignore_eos", "min_tokens")
"""Keys that make an answer as long as asked, where a server takes them."""

NOT_STREAMED_SHARE = 0.95


async def probe(session: ClientSession, endpoint: Endpoint, workload: Workload, deadline_s: float) -> Probe:
    """Ask twice and tell; MeasuringError with one clear line where the endpoint cannot be measured."""
    clock = asyncio.get_running_loop().time
    end = clock() + deadline_s
    extras = {**workload.extras, "ignore_eos": True, "min_tokens": workload.output_tokens}
    trial = replace(workload, words_per_token=1.0, extras=extras)
    first = await _ask(session, endpoint, trial, 0, end - clock())
    while first.failure in ("http 400", "http 422") and (fewer := _without_refused(trial, first.said)):
        trial = fewer
        first = await _ask(session, endpoint, trial, 0, end - clock())
    _check(first, endpoint, workload, deadline_s)
    words = {_words(trial): first.answer.prompt_tokens}
    trial = replace(trial, words_per_token=_words_per_token(words, workload))
    second = await _ask(session, endpoint, trial, 1, end - clock())
    _check(second, endpoint, workload, deadline_s)
    words[_words(trial)] = second.answer.prompt_tokens
    streamed = second.tokens < 2 or (second.ttft_ms or 0.0) < NOT_STREAMED_SHARE * second.e2e_ms
    return Probe(
        ttft_ms=second.ttft_ms if streamed else None,
        e2e_ms=second.e2e_ms,
        prompt_tokens=second.answer.prompt_tokens,
        output_tokens=second.tokens,
        words_per_token=_words_per_token(words, workload),
        extras=trial.extras,
    )


async def _ask(
    session: ClientSession, endpoint: Endpoint, workload: Workload, number: int, seconds: float
) -> Flight:
    prompt = Prompts(workload.seed, _words(workload)).text(number)
    now = asyncio.get_running_loop().time()
    answer = Answer(workload.output_tokens)
    flight = Flight(planned=now, sent=now, answer=answer, most_tokens=workload.output_tokens)
    url = f"{endpoint.url.rstrip('/')}/chat/completions"
    body = body_of(endpoint, workload, prompt)
    await fly(session, url, body, flight, max(seconds, 0.0), lambda _: None)
    return flight


def _words(workload: Workload) -> int:
    return max(round(workload.input_tokens * workload.words_per_token), 1)


def _without_refused(workload: Workload, said: str) -> Workload | None:
    """The workload without the keys that a server refuses, by its own words; None: nothing is left."""
    extras = dict(workload.extras)
    if "stream_options" in said and extras.get("stream_options", True) is not None:
        return replace(workload, extras={**extras, "stream_options": None})
    here = [key for key in OPTIONAL if key in extras]
    for key in [key for key in here if key in said] or here:
        del extras[key]
    return replace(workload, extras=extras) if here else None


def _words_per_token(tokens_by_words: dict[int, int | None], workload: Workload) -> float:
    """Words for each asked token, by a straight line through what was seen; 1 without the server's usage.

    A chat template adds a fixed number of tokens, which two lengths tell from those of the words.
    """
    seen = [(words, tokens) for words, tokens in tokens_by_words.items() if tokens]
    if not seen:
        return 1.0
    asked = workload.input_tokens
    (words, tokens), (first_words, first_tokens) = seen[-1], seen[0]
    if abs(tokens - asked) <= CLOSE_ENOUGH * asked:
        return words / asked
    if words != first_words and (tokens - first_tokens) * (words - first_words) > 0:
        wanted = words + (asked - tokens) * (words - first_words) / (tokens - first_tokens)
    else:
        wanted = words * asked / tokens
    return max(round(wanted), 1) / asked


def _check(flight: Flight, endpoint: Endpoint, workload: Workload, deadline_s: float) -> None:
    if flight.failure:
        raise MeasuringError(_why(flight, endpoint, deadline_s))
    if uncountable(flight):
        raise MeasuringError(
            f"{endpoint.url} sends no usage, and {workload.output_tokens} tokens in "
            f"{len(flight.answer.times)} chunks: its tokens cannot be counted"
        )


def _why(flight: Flight, endpoint: Endpoint, deadline_s: float) -> str:
    url, said = endpoint.url, one_line(flight.said)
    because = f": {said}" if said else ""
    reasons = {
        CONNECT: f"{url} cannot be reached{because}",
        CLOSED: f"{url} closes the connection without an answer",
        TIMEOUT: f"{url} did not end an answer within {deadline_s:.3g} s",
        REDIRECT: f"{said}; redirects are not followed",
        HTML: f"{url} answers with a web page: is it the base of the API, such as http://10.0.0.7:8000/v1?",
        NOT_A_STREAM: f"{url} does not stream: it answers in one piece",
        CUT: f"{url} closes the connection in the middle of an answer",
        EMPTY: f"{url} answers without a single token",
        "http 404": f'{url} answers 404: it has no model "{endpoint.model}" or no chat completions{because}',
    }
    if flight.failure in ("http 401", "http 403"):
        key = "does not accept the endpoint's key" if endpoint.key else "needs a key; none is set"
        return f"{url} {key} ({flight.failure})"
    return reasons.get(flight.failure, f"{url} failed a lone request ({flight.failure}){because}")
