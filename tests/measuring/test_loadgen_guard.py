"""What the guard lets through: the endpoint's own origin, inside the networks, without a redirect."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import InvalidUrlClientError, ThreadedResolver

from sizing.domain.addresses import allowed
from sizing.measuring.loadgen import guard
from sizing.measuring.loadgen.guard import guarded_session, origin_of, read_networks
from sizing.measuring.seam import Endpoint, MeasuringError
from tests.measuring.loop import in_a_loop
from tests.measuring.raw_server import raw_server

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def get(url: str, networks: tuple[str, ...] = ("127.0.0.0/8",), key: str = "", other: str = "") -> bytes:
    """GET an endpoint's URL, or another by its session."""

    async def ask() -> bytes:
        endpoint = Endpoint(url, "m", networks, key)
        async with guarded_session(endpoint) as session, session.get(other or url) as response:
            return await response.read()

    return in_a_loop(ask())


def keeping(heard: list[bytes]) -> Callable[[bytes], list[bytes]]:
    """Answers every request, and keeps it."""

    def reply(request: bytes) -> list[bytes]:
        heard.append(request)
        return [OK]

    return reply


def resolve_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Have every name resolve to these addresses."""

    def getaddrinfo(host: Any, port: Any, *_: Any, **__: Any) -> list[Any]:
        families = [socket.AF_INET6 if ":" in address else socket.AF_INET for address in addresses]
        return [
            (family, socket.SOCK_STREAM, 6, "", (address, port, 0, 0) if ":" in address else (address, port))
            for family, address in zip(families, addresses, strict=True)
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.mark.parametrize(
    ("address", "network", "expected"),
    [
        ("10.0.0.7", "10.0.0.0/8", True),
        ("11.0.0.7", "10.0.0.0/8", False),
        ("::ffff:10.0.0.7", "10.0.0.0/8", True),
        ("::ffff:11.0.0.7", "10.0.0.0/8", False),
        ("::ffff:127.0.0.1", "::/96", False),
        ("fe80::1%eth0", "fe80::/10", True),
        ("fe80::1%eth0", "fd00::/8", False),
        ("0.0.0.0", "127.0.0.0/8", False),
        ("::1", "127.0.0.0/8", False),
        ("::1", "::1/128", True),
        # What tunnels and translators carry to an IPv4 address: both have to be allowed.
        ("2002:a00:7::1", "2002::/16", False),
        ("2002:a00:7::1", "2002::/16,10.0.0.0/8", True),
        ("2002:7f00:1::1", "2002::/16,10.0.0.0/8", False),
        ("64:ff9b::7f00:1", "::/0,10.0.0.0/8", False),
        ("64:ff9b::10.0.0.7", "64:ff9b::/96,10.0.0.0/8", True),
        ("64:ff9b:1::169.254.169.254", "::/0,0.0.0.0/0", False),
        ("2001:0:4136:e378:8000:63bf:80ff:fffe", "::/0,10.0.0.0/8", False),  # Teredo to 127.0.0.1
        ("::127.0.0.1", "::/0,10.0.0.0/8", False),
        # No host's own address
        ("0.0.0.0", "0.0.0.0/0", False),
        ("::", "::/0", False),
        ("::ffff:0.0.0.0", "0.0.0.0/0,::/0", False),
        ("224.0.0.1", "0.0.0.0/0", False),
        # A metadata service is meant only where it is named alone.
        ("169.254.169.254", "0.0.0.0/0", False),
        ("169.254.169.254", "169.254.169.254/32", True),
        ("::ffff:169.254.169.254", "0.0.0.0/0,::/0", False),
        ("fd00:ec2::254", "fc00::/7", False),
        ("fd00:ec2::254%eth0", "fc00::/7", False),
        ("fd00:ec2::254", "fd00:ec2::254/128", True),
        ("fd00:ec2::255", "fc00::/7", True),
    ],
)
def test_an_address_is_allowed_by_the_networks_alone(address: str, network: str, expected: bool) -> None:
    assert allowed(address, read_networks(network.split(","))) is expected


def test_a_network_that_is_none_is_named() -> None:
    with pytest.raises(MeasuringError, match=r'^"10.0.0/33" is not a network such as 10.0.0.0/8$'):
        read_networks(["10.0.0/33"])


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1/v1",
        "file:///etc/passwd",
        "127.0.0.1:8000/v1",
        "http:///v1",
        "http://me:secret@127.0.0.1/v1",
        "http://127.0.0.1:99999/v1",
        "http://127.0.0.1:0/v1",
        "http://127.0.0.1:-1/v1",
        "http://127.0.0.1:8o/v1",
        "http://me@127.0.0.1/v1",
        "http://127.0.0.1/v1?key=secret",
        "http://127.0.0.1/v1#x",
        "http://[::1/v1",
    ],
)
def test_an_address_of_another_form_is_refused(url: str) -> None:
    with pytest.raises(MeasuringError):
        origin_of(Endpoint(url, "m"))


def test_a_password_in_the_address_is_not_repeated() -> None:
    with pytest.raises(MeasuringError, match=r"^an endpoint's address may not hold a user or a password$"):
        origin_of(Endpoint("http://me:secret@127.0.0.1/v1", "m"))


def test_what_is_allowed_is_reached_with_the_key_in_one_header() -> None:
    heard: list[bytes] = []
    with raw_server(keeping(heard)) as url:
        assert get(url, key="sk-1") == b"ok"
    assert heard[0].count(b"sk-1") == 1
    assert b"\r\nauthorization: bearer sk-1\r\n" in heard[0].lower()


@pytest.mark.parametrize("key", ["sk\r\nX: y", "sk 1", "schlüssel"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(MeasuringError) as refused:
        get("http://127.0.0.1:9/v1", key=key)
    assert key not in str(refused.value)


def test_a_literal_address_outside_the_networks_is_not_connected_to() -> None:
    heard: list[bytes] = []
    with (
        raw_server(keeping(heard)) as url,
        pytest.raises(MeasuringError) as refused,
    ):
        get(url, networks=("10.0.0.0/8",))
    assert str(refused.value) == "127.0.0.1 is outside the networks that may be measured: 10.0.0.0/8"
    assert heard == []


def test_an_ipv4_mapped_address_does_not_slip_through() -> None:
    with pytest.raises(MeasuringError, match="outside the networks"):
        get("http://[::ffff:127.0.0.1]:9/v1", networks=("10.0.0.0/8", "::/0"))


def test_a_name_that_resolves_outside_is_refused_with_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, "192.0.2.1", "2001:db8::1")
    with pytest.raises(MeasuringError) as refused:
        get("http://gpu.example:9/v1")
    assert str(refused.value) == (
        "gpu.example (192.0.2.1) is outside the networks that may be measured: 127.0.0.0/8"
    )


def test_of_a_name_that_resolves_to_both_only_the_allowed_address_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolve_to(monkeypatch, "192.0.2.1", "127.0.0.1", "2001:db8::1")
    with raw_server(lambda _: [OK]) as url:
        assert get(url.replace("127.0.0.1", "gpu.example")) == b"ok"


@pytest.mark.parametrize("host", ["0x7f.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "①27.0.0.1"])
def test_a_number_that_means_an_address_is_checked_as_one(host: str) -> None:
    heard: list[bytes] = []
    with (
        raw_server(keeping(heard)) as url,
        pytest.raises(
            (MeasuringError, InvalidUrlClientError), match=r"127\.0\.0\.1\)? is outside|not a canonical IPv4"
        ),
    ):
        get(url.replace("127.0.0.1", host), networks=("10.0.0.0/8",))
    assert heard == []


@pytest.mark.parametrize(
    "host",
    ["[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::]", "0.0.0.0", "0", "[::127.0.0.1]", "[64:ff9b::7f00:1]"],
)
def test_this_host_is_not_reached_under_another_address(host: str) -> None:
    heard: list[bytes] = []
    with (
        raw_server(keeping(heard)) as url,
        pytest.raises((MeasuringError, InvalidUrlClientError), match=r"is outside|not a canonical IPv4"),
    ):
        get(url.replace("127.0.0.1", host), networks=("10.0.0.0/8", "::/0", "0.0.0.0/8"))
    assert heard == []


def test_a_metadata_service_is_told_as_such() -> None:
    with pytest.raises(MeasuringError) as refused:
        get("http://[::ffff:169.254.169.254]/v1", networks=("0.0.0.0/0", "::/0"))
    assert str(refused.value) == (
        "::ffff:a9fe:a9fe is a cloud's metadata service,"
        " which is measured only if a network is that address alone"
    )


def test_a_name_that_resolves_elsewhere_at_the_second_look_is_refused_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[bytes] = []

    async def twice(url: str) -> str:
        async with guarded_session(Endpoint(url, "m", ("127.0.0.0/8",), "sk-1")) as session:
            async with session.get(url) as response:
                assert await response.read() == b"ok"
            session.connector.clear_dns_cache()  # type: ignore[union-attr]  # its time is over
            resolve_to(monkeypatch, "192.0.0.1")
            with pytest.raises(MeasuringError) as refused:
                await session.get(url)
            return str(refused.value)

    def reply(request: bytes) -> list[bytes]:
        heard.append(request)
        return [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"]

    resolve_to(monkeypatch, "127.0.0.1")
    with raw_server(reply) as url:
        said = in_a_loop(twice(url.replace("127.0.0.1", "gpu.example")))
    assert said == "gpu.example (192.0.0.1) is outside the networks that may be measured: 127.0.0.0/8"
    assert len(heard) == 1


def test_an_address_is_checked_again_between_its_name_and_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where whatever resolves the name has let it pass."""
    monkeypatch.setattr(guard, "_AllowedOnly", lambda networks: ThreadedResolver())
    heard: list[bytes] = []
    with (
        raw_server(keeping(heard)) as url,
        pytest.raises(MeasuringError, match=r"^localhost \(127\.0\.0\.1\) is outside"),
    ):
        get(url.replace("127.0.0.1", "localhost"), networks=("10.0.0.0/8",))
    assert heard == []


def test_a_redirect_is_not_followed() -> None:
    paths: list[bytes] = []

    def reply(request: bytes) -> list[bytes]:
        paths.append(request.split()[1])
        return [b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"]

    with raw_server(reply) as url, pytest.raises(MeasuringError, match=r"redirects \(302\) to /elsewhere$"):
        get(url)
    assert paths == [b"/v1"]


def test_the_session_and_its_key_go_to_no_other_origin() -> None:
    heard: list[bytes] = []
    with (
        raw_server(keeping(heard)) as other,
        pytest.raises(MeasuringError, match="is not the endpoint"),
    ):
        get("http://127.0.0.1:9/v1", key="sk-1", other=other)
    assert heard == []


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with raw_server(lambda _: [OK]) as url:
        assert get(url) == b"ok"
