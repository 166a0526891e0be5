"""What the load generator keeps up with, beside a trivial server that streams canned chunks at a set rate.

Server and generator are a process each, as they are beside a real replica. A chunk carries one token and
looks like those of vLLM. Of 101 steps a stream waits one for its next request, so that 99 % is all there is.

Run: python -m benchmarks.loadgen
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from json import loads
from time import perf_counter

from sizing.domain.levels import CONCURRENCY, Slo, judge
from sizing.measuring.loadgen.builtin import Builtin
from sizing.measuring.seam import Endpoint, Limits, Load, Workload

RATES = (2_500, 5_000, 10_000, 20_000, 30_000, 40_000)
STEP_S = 0.025
"""Each stream gets a token so often, so that a rate needs a fortieth as many streams."""

TOKENS = 100
SECONDS = 12.0
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNK = (
    b'data: {"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion.chunk",'
    b'"created":1700000000,"model":"canned","choices":[{"index":0,"delta":{"content":" word"},'
    b'"logprobs":null,"finish_reason":null}]}\n\n'
)
LAST = (
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}\n\n'
    b'data: {"choices":[],"usage":{"prompt_tokens":16,"completion_tokens":%d}}\n\ndata: [DONE]\n\n' % TOKENS
)


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class CannedServer:
    """Gives each open answer one chunk a step, on an absolute schedule."""

    def __init__(self) -> None:
        self.left: dict[asyncio.StreamWriter, tuple[int, asyncio.Event]] = {}
        self.given = 0

    async def serve(self) -> None:
        server = await asyncio.start_server(self.answer, "127.0.0.1", 0, backlog=4096)
        print(server.sockets[0].getsockname()[1], flush=True)
        clock, chunk, last = asyncio.get_running_loop().time, chunked(CHUNK), chunked(LAST) + b"0\r\n\r\n"
        due = clock()
        while True:
            due += STEP_S
            await asyncio.sleep(max(due - clock(), 0))
            for writer, (left, ended) in list(self.left.items()):
                if writer.is_closing():
                    del self.left[writer]
                    ended.set()
                elif left > 1:
                    writer.write(chunk)
                    self.left[writer] = left - 1, ended
                else:
                    writer.write(chunk + last)
                    del self.left[writer]
                    ended.set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = head.lower().split(b"\r\n")
                length = next(line for line in lines if line.startswith(b"content-length:"))
                assert loads(await reader.readexactly(int(length[15:])))["max_tokens"] == TOKENS
                writer.write(HEAD)
                ended = asyncio.Event()
                self.left[writer] = TOKENS, ended
                await ended.wait()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.left.pop(writer, None)
            writer.close()


def main() -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.loadgen", "serve"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        endpoint = Endpoint(f"http://127.0.0.1:{int(server.stdout.readline())}/v1", "canned")
        measure(endpoint)
    finally:
        server.terminate()
        server.wait()


def measure(endpoint: Endpoint) -> None:
    slo = Slo(itl_ms=1000)
    heads = ("asked tok/s", "streams", "got tok/s", "of asked", "TPOT", "delay p95", "verdict", "it says")
    print("{:>12}{:>9}{:>11}{:>10}{:>10}{:>11}{:>9}  {}".format(*heads))
    workload = Workload(input_tokens=16, output_tokens=TOKENS)
    limits = Limits(slo, thorough=True, warmup_s=TOKENS * STEP_S, seconds=SECONDS)
    for number, rate in enumerate(RATES):
        load = Load(CONCURRENCY, round(rate * STEP_S))
        begin = perf_counter()
        level = Builtin().run_level(endpoint, replace(workload, seed=number), load, limits, lambda _: True)
        assert perf_counter() - begin < SECONDS + 5
        judged = judge(level, slo)
        got, tpot, delay = level.tok_per_sec or 0.0, level.tpot.mean or 0.0, level.delay_p95_s or 0.0
        says = "; ".join([*level.warnings, *level.failures]) or "kept up"
        print(
            f"{rate:>12,}{load.value:>9,}{got:>11,.0f}{got / rate:>9.1%} {tpot:>7.2f} ms"
            f"{delay * 1000:>8.1f} ms{judged.verdict:>9}  {says}",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        asyncio.run(CannedServer().serve())
    else:
        main()
