"""Which IP addresses may be connected to: those of the allowed networks, however an address is written."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

METADATA = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254",  # most clouds
        "169.254.170.2",  # AWS: credentials of containers
        "169.254.170.23",  # AWS: credentials of pods
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",  # Google
        "100.100.100.200",  # Alibaba
        "192.0.0.192",  # Oracle
        "168.63.129.16",  # Azure
    )
)
"""Where clouds hand out credentials to whoever asks: no network means them that does not name them alone."""

# Translators that carry IPv4 in the last 32 bits, RFC 6052 and 8215; and the old IPv4-compatible form.
_CARRIERS = tuple(IPv6Network(text) for text in ("64:ff9b::/96", "64:ff9b:1::/48", "::/96"))
_FIRST_COMPATIBLE = 2**16
"""Below it `::/96` holds no IPv4 address of anybody: `::` and `::1` among others."""


def allowed(address: str, networks: Iterable[Network]) -> bool:
    """Whether an IP address may be connected to; a zone such as `%eth0` makes no difference.

    An IPv4-mapped address counts as the IPv4 address that it is. One that a translator or tunnel carries to
    an IPv4 address has to be allowed itself, and that one too.
    """
    known = tuple(networks)
    ip = ip_address(address.partition("%")[0])
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return all(_allowed(one, known) for one in (ip, carried(ip)) if one is not None)


def carried(ip: Address) -> IPv4Address | None:
    """The IPv4 address that packets to an IPv6 address end at: by 6to4, Teredo, NAT64 or an old form."""
    if isinstance(ip, IPv4Address):
        return None
    if ip.sixtofour is not None:
        return ip.sixtofour
    if ip.teredo is not None:
        return ip.teredo[1]
    number = int(ip)
    if number >= _FIRST_COMPATIBLE and any(ip in network for network in _CARRIERS):
        return IPv4Address(number & 0xFFFFFFFF)
    return None


def named_alone(ip: Address, networks: Iterable[Network]) -> bool:
    """Whether one of the networks is just this address."""
    return any(network == ip_network(ip) for network in networks)


def _allowed(ip: Address, networks: tuple[Network, ...]) -> bool:
    if ip.is_unspecified or ip.is_multicast:  # no host's own; the first means this one
        return False
    if ip in METADATA:
        return named_alone(ip, networks)
    return any(ip in network for network in networks)
