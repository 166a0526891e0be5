"""The simulated replica as a program: what it says, and how it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from tests.measuring.plain_client import in_background, stream, wait_until
from tests.measuring.simulated import ROOT, truth

PLAIN = [sys.executable, "-m", "sizing.measuring.simulated"]
COMMAND = [sys.executable, "manage.py", "simulate_replica"]


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("words", [PLAIN, COMMAND])
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_listens_and_ends_cleanly_also_within_a_stream(
    words: list[str], sign: signal.Signals
) -> None:
    process = start(*words, "--port", "0", "--model", "m/8b", "--fault", "endless")
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("simulated replica of m/8b: http://127.0.0.1:")
        url = line.split(": ")[1].strip()
        assert url.endswith("/v1")
        threads = in_background(lambda: stream(url, model="m/8b"))
        wait_until(lambda: truth(url)["running"] == 1)
        process.send_signal(sign)
        assert process.wait(20) == 0
        threads[0].join(20)
        assert process.communicate() == ("", "")
    finally:
        process.kill()
        process.communicate()


def test_what_is_not_http_is_answered_without_a_traceback() -> None:
    process = start(*PLAIN)
    try:
        assert process.stdout is not None
        place = urlsplit(process.stdout.readline().split(": ")[1].strip())
        chunked = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
        body = b'{"model": "simulated", "prompt": "a", "stream": true}'
        old = b"POST /v1/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        for data in (b"garbage\r\n\r\n", chunked, old):
            with socket.create_connection((str(place.hostname), place.port or 0), timeout=10) as connection:
                connection.sendall(data)
                assert connection.recv(100).startswith(b"HTTP/1.0 400 ")
        process.terminate()
        assert process.communicate(timeout=20) == ("", "")
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("words", "prefix"), [(PLAIN, "simulate_replica: "), (COMMAND, "")])
def test_a_port_in_use_is_one_line(words: list[str], prefix: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        assert run(*words, "--port", port) == (
            2,
            "",
            f"{prefix}port {port} is in use; choose another with --port\n",
        )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--port", "65536"], "argument --port: a port is a whole number from 0 to 65535, not '65536'"),
        (["--max-seqs", "0"], "argument --max-seqs: a whole number from 1 to 1000000, not '0'"),
        (["--t0", "nan"], "argument --t0: milliseconds from 0 to 60000, not 'nan'"),
        (["--t0", "0", "--a", "0"], "--t0 and --a are both 0, but a step must take time"),
        (["--key-env", "NO_SUCH_VARIABLE"], "the environment variable NO_SUCH_VARIABLE holds no key"),
        (["--fault", "errors=1.1"], "fault errors takes a share above 0, up to 1, not '1.1'"),
        (["--fault", "errors=1/0"], "fault errors takes a share above 0, up to 1, not '1/0'"),
        (["--fault", "chunk_tokens"], "fault chunk_tokens needs a value: a whole number from 1"),
        (["--fault", "busy=1"], "fault busy takes no value, not '1'"),
        (["--fault", "abort", "--fault", "abort=0.1"], "fault abort is given twice"),
        (["--fault", "redirect=ftp://a"], "fault redirect takes an http URL, not 'ftp://a'"),
    ],
)
def test_a_wrong_argument_is_one_line(words: list[str], message: str) -> None:
    assert run(*PLAIN, *words) == (2, "", f"simulate_replica: {message}\n")


def test_an_unknown_fault_is_told_which_there_are() -> None:
    code, _, err = run(*PLAIN, "--fault", "broken")
    assert code == 2
    assert err.startswith("simulate_replica: no fault 'broken'; there are abort, busy, ")


def test_the_faults_are_listed_on_request() -> None:
    code, out, _ = run(*PLAIN, "--fault", "help")
    assert code == 0
    assert len(out.splitlines()) == 19
    assert out.startswith("die_after=VALUE")


def test_it_runs_without_django() -> None:
    code = "import sys, sizing.measuring.simulated.serving; print([m for m in sys.modules if 'django' in m])"
    assert run(sys.executable, "-c", code) == (0, "[]\n", "")


def run(*words: str) -> tuple[int, str, str]:
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, env=os.environ)
    return done.returncode, done.stdout, done.stderr
