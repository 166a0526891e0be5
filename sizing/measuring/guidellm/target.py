"""Where GuideLLM is sent to: an address that was resolved and checked, since it connects by itself."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from sizing.domain.addresses import allowed
from sizing.measuring.loadgen.guard import origin_of, outside, read_networks
from sizing.measuring.seam import Endpoint, MeasuringError


@dataclass(frozen=True, slots=True)
class Target:
    """A server to connect to, the host that is asked for there, and the path of its API."""

    server: str
    host: str
    path: str


def checked_target(endpoint: Endpoint) -> Target:
    """The target of an endpoint; MeasuringError where its host is not in the allowed networks.

    Over http it is an allowed address of the host. Over https the name has to stay, for the certificate,
    and GuideLLM takes any of its addresses: all of them have to be allowed.
    """
    origin = origin_of(endpoint)
    host = str(origin.host)
    addresses = _addresses(host, origin.port or 0)
    networks = read_networks(endpoint.networks)
    inside = [address for address in addresses if allowed(address, networks)]
    others = [address for address in addresses if address not in inside]
    if not inside or (others and origin.scheme == "https"):
        named = host if others[0] == host else f"{host} ({others[0]})"
        raise MeasuringError(f"{named} {outside(others[0], networks)}")
    address = f"[{inside[0]}]" if ":" in inside[0] else inside[0]
    server = f"http://{address}:{origin.port}" if origin.scheme == "http" else str(origin)
    named_host, _, path = endpoint.url.partition("://")[2].partition("/")
    return Target(server, named_host, path.strip("/"))


def _addresses(host: str, port: int) -> list[str]:
    """All addresses of a host, IPv4 first: a server that listens on one kind only mostly has that."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise MeasuringError(f"{host} has no address") from None
    return sorted({str(address[0]) for *_, address in found}, key=lambda address: (":" in address, address))
