"""What may be connected to: the endpoint's own origin, in the allowed networks, never by a redirect."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import ip_address, ip_network

from aiohttp import (
    AddrInfoType,
    ClientHandlerType,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
    ThreadedResolver,
)
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from sizing.domain.addresses import METADATA, Network, allowed
from sizing.measuring.seam import Endpoint, MeasuringError

KEEPALIVE_S = 2.0
"""Below the 5 s after which common servers close an idle connection, so that both do not meet."""

DEADLINE_S = 30.0


class Redirected(MeasuringError):  # noqa: N818  it reads as what it says
    """The endpoint answered with a redirect, which is never followed."""


def read_networks(networks: Iterable[str]) -> tuple[Network, ...]:
    """Networks such as `10.0.0.0/8`; MeasuringError where one is none."""
    found = []
    for text in networks:
        try:
            found.append(ip_network(text, strict=False))
        except ValueError as error:
            raise MeasuringError(f'"{text}" is not a network such as 10.0.0.0/8') from error
    return tuple(found)


def origin_of(endpoint: Endpoint) -> URL:
    """Scheme, host and port of an endpoint; MeasuringError where its address cannot be used."""
    try:
        url = URL(endpoint.url)
        port = url.port
    except ValueError as error:
        raise MeasuringError(f'"{endpoint.url}" is not an address: {error}') from error
    if url.user is not None or url.password is not None:
        raise MeasuringError("an endpoint's address may not hold a user or a password")
    if url.scheme not in ("http", "https") or not url.host or not port:
        raise MeasuringError(f'"{endpoint.url}" is not an address such as http://10.0.0.7:8000/v1')
    if url.query_string or url.fragment:
        raise MeasuringError(f'"{endpoint.url}" may not hold a query or a fragment')
    return url.origin()


def guarded_session(endpoint: Endpoint) -> ClientSession:
    """A session that reaches this endpoint's origin only, with its key in the `Authorization` header.

    Every address is checked when it is connected to, after its name is resolved. Redirects, proxies,
    cookies and compressed answers are refused. Make it inside a running event loop; what it refuses is a
    MeasuringError, raised here or by the request.
    """
    origin = origin_of(endpoint)
    networks = read_networks(endpoint.networks)
    host = origin.host or ""
    if _is_ip(host):
        _check(host, host, networks)

    def socket_to(info: AddrInfoType) -> socket.socket:
        _check(host, str(info[4][0]), networks)
        return socket.socket(info[0], info[1], info[2])

    async def at_home(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        if request.url.origin() != origin:
            raise MeasuringError(f"{request.url.origin()} is not the endpoint {origin}")
        response = await handler(request)
        if 300 <= response.status < 400:
            target = response.headers.get("Location", "somewhere")[:200]
            response.close()
            raise Redirected(f"{origin} redirects ({response.status}) to {target}")
        return response

    connector = TCPConnector(
        limit=0,
        resolver=_AllowedOnly(networks),
        socket_factory=socket_to,
        keepalive_timeout=KEEPALIVE_S,
    )
    return ClientSession(
        connector=connector,
        headers=_headers(endpoint),
        middlewares=(at_home,),
        trust_env=False,
        auto_decompress=False,
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=DEADLINE_S),
    )


async def read_capped(response: ClientResponse, most_bytes: int) -> bytes:
    """The first `most_bytes` of a body, or all of a smaller one."""
    parts: list[bytes] = []
    left = most_bytes
    while left > 0 and (part := await response.content.read(left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def without_key(session: ClientSession, text: str) -> str:
    """A server's words without the key of the session, which some of them repeat."""
    key = session.headers.get("Authorization", "").removeprefix("Bearer ")
    return text.replace(key, "***") if key else text


class _AllowedOnly(AbstractResolver):
    """Resolves names, and drops every address that is outside the networks."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._networks = networks
        self._inner = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        kept = [result for result in found if allowed(result["host"], self._networks)]
        if found and not kept:
            _check(host, found[0]["host"], self._networks)
        return kept

    async def close(self) -> None:
        await self._inner.close()


def _check(host: str, address: str, networks: tuple[Network, ...]) -> None:
    if allowed(address, networks):
        return
    named = host if host == address else f"{host} ({address})"
    raise MeasuringError(f"{named} {outside(address, networks)}")


def outside(address: str, networks: Iterable[Network]) -> str:
    """Why an address that is not allowed is not, to be said after its name."""
    ip = ip_address(address.partition("%")[0])
    if (getattr(ip, "ipv4_mapped", None) or ip) in METADATA:
        return "is a cloud's metadata service, which is measured only if a network is that address alone"
    known = ", ".join(str(network) for network in networks) or "none"
    return f"is outside the networks that may be measured: {known}"


def _is_ip(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _headers(endpoint: Endpoint) -> dict[str, str]:
    headers = {"Accept-Encoding": "identity", "User-Agent": "llmgw-admin"}
    if not endpoint.key:
        return headers
    if not endpoint.key.isascii() or not endpoint.key.isprintable() or " " in endpoint.key:
        raise MeasuringError("the endpoint's key has characters that a header cannot carry")
    return {**headers, "Authorization": f"Bearer {endpoint.key}"}
