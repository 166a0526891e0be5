"""Requests for an answer: what is asked, or why it is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from aiohttp import web

DEFAULT_OUTPUT_TOKENS = 256
MOST_OUTPUT_TOKENS = 1_000_000


class Refusal(Exception):  # noqa: N818  it reads as what it says
    """A request that is answered with an error in OpenAI's form."""

    def __init__(self, status: int, message: str, kind: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind

    def response(self) -> web.Response:
        return web.json_response(error_body(str(self), self.kind, self.status), status=self.status)


def error_body(message: str, kind: str, status: int) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": status}}


@dataclass(frozen=True, slots=True)
class Ask:
    """What a request asks for."""

    chat: bool
    prompt_tokens: int
    output_tokens: int
    stream: bool
    include_usage: bool


def read_ask(body: bytes, chat: bool, model: str) -> Ask:
    """The request in *body*; Refusal where it is none."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal(400, "the body is not JSON") from None
    if not isinstance(data, dict):
        raise Refusal(400, "the body is not a JSON object")
    if not isinstance(data.get("model"), str):
        raise Refusal(400, "model: a name is missing")
    if data["model"] != model:
        raise Refusal(404, f"the model {data['model']!r} does not exist", "not_found_error")
    stream = _flag(data, "stream")
    _flag(data, "ignore_eos")  # taken, and always so
    options = data.get("stream_options")
    if options is None:
        options = {}
    if not isinstance(options, dict):
        raise Refusal(400, "stream_options: not an object")
    if options and not stream:
        raise Refusal(400, "stream_options: only with stream")
    return Ask(
        chat=chat,
        prompt_tokens=max(_messages(data) if chat else _prompt(data), 1),
        output_tokens=_output_tokens(data),
        stream=stream,
        include_usage=_flag(options, "include_usage"),
    )


def _flag(data: dict[str, Any], name: str) -> bool:
    value = data.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise Refusal(400, f"{name}: neither true nor false")
    return value


def _output_tokens(data: dict[str, Any]) -> int:
    for name in ("max_completion_tokens", "max_tokens"):
        value = data.get(name)
        if value is not None:
            if type(value) is not int or not 1 <= value <= MOST_OUTPUT_TOKENS:
                raise Refusal(400, f"{name}: not a whole number from 1 to {MOST_OUTPUT_TOKENS}")
            return value
    return DEFAULT_OUTPUT_TOKENS


def _prompt(data: dict[str, Any]) -> int:
    prompt = data.get("prompt")
    if not isinstance(prompt, str):
        raise Refusal(400, "prompt: not a string")
    return len(prompt.split())


def _messages(data: dict[str, Any]) -> int:
    messages = data.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refusal(400, "messages: not a list of messages")
    return sum(_words(message, f"messages[{i}]") for i, message in enumerate(messages))


def _words(message: Any, place: str) -> int:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise Refusal(400, f"{place}: not a message with a role")
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    return sum(_part_words(part, f"{place}.content") for part in parts)


def _part_words(part: Any, place: str) -> int:
    text = part.get("text") if isinstance(part, dict) else None
    if not isinstance(text, str):
        raise Refusal(400, f"{place}: neither a string nor a list of texts")
    return len(text.split())
