"""A client of OpenAI-compatible servers with nothing between the socket and the test."""

from __future__ import annotations

import http.client
import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

CHAT, COMPLETIONS = "/chat/completions", "/completions"
GOOD = {"model": "simulated", "messages": [{"role": "user", "content": "hello"}]}


@dataclass
class Heard:
    """What a plain client got: the events of a stream with their times, or the body."""

    status: int
    headers: Any
    text: str = ""
    events: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    sent: float = 0.0
    cut: bool = False

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def chunks(self) -> list[dict[str, Any]]:
        return [json.loads(event) for event in self.events if event != "[DONE]"]

    @property
    def deltas(self) -> list[dict[str, Any]]:
        return [chunk["choices"][0]["delta"] for chunk in self.chunks if chunk.get("choices")]

    @property
    def token_times(self) -> list[float]:
        return [at for at, event in zip(self.times, self.events, strict=True) if '" token' in event]


def send(url: str, path: str, body: Any = None, *, key: str = "", method: str = "POST") -> Heard:
    place = urlsplit(url)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=20)
    connection.connect()
    data = body if isinstance(body, bytes) else json.dumps(body)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    sent = time.monotonic()
    connection.request(method, place.path + path, data, headers)
    response = connection.getresponse()
    heard = Heard(response.status, response.headers, sent=sent)
    lines = []
    try:
        while line := response.readline():
            lines.append(line.decode())
            if line.startswith(b"data: "):
                heard.events.append(line[6:].decode().strip())
                heard.times.append(time.monotonic())
    except (http.client.HTTPException, OSError):
        heard.cut = True
    # readline() takes the end of a cut connection for the end of the answer
    heard.cut = heard.cut or (bool(heard.events) and heard.events[-1] != "[DONE]")
    heard.text = "".join(lines)
    connection.close()
    return heard


def ask(
    url: str,
    words: int = 4,
    tokens: int = 4,
    *,
    path: str = CHAT,
    key: str = "",
    model: str = "simulated",
    **more: Any,
) -> Heard:
    prompt = "word " * words
    body: dict[str, Any] = {"model": model, "max_tokens": tokens, "ignore_eos": True} | more
    body |= {"messages": [{"role": "user", "content": prompt}]} if path == CHAT else {"prompt": prompt}
    return send(url, path, body, key=key)


def stream(url: str, words: int = 4, tokens: int = 4, **more: Any) -> Heard:
    return ask(url, words, tokens, stream=True, stream_options={"include_usage": True}, **more)


def usage(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def in_background(*calls: Any) -> list[threading.Thread]:
    threads = [threading.Thread(target=call, daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    return threads


def wait_until(true: Any) -> None:
    until = time.monotonic() + 10
    while not true():
        assert time.monotonic() < until
        time.sleep(0.05)
