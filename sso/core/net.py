"""Strict parsing of IP addresses and networks, and the networks that count as one client.

The ``ipaddress`` module is too lenient: it accepts integers and booleans as networks, netmasks as prefix lengths, and
zone ids in addresses; it calls 192.0.2.0/24 and ::ffff:8.8.8.8 private; and ::ffff:10.0.0.1 is not in 10.0.0.0/8. Here
only strings are accepted, and an IPv4-mapped IPv6 address is the IPv4 address everywhere.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

MAX_FIXED_NETWORKS = 64
SITE_FACTOR = 10  # an IPv6 /48 may do so many times what a /64 may

# RFC 1918 and RFC 4193 only: `is_private` also includes documentation, benchmark and link-local ranges.
PRIVATE: tuple[Network, ...] = (
    IPv4Network("10.0.0.0/8"),
    IPv4Network("172.16.0.0/12"),
    IPv4Network("192.168.0.0/16"),
    IPv6Network("fc00::/7"),
)

# The longest IPv6 notation has 45 characters. Zone ids ("%") are rejected: they have a meaning on one machine only.
_ADDRESS = re.compile(r"[0-9A-Fa-f:.]{2,45}")
_PREFIX = re.compile(r"0|[1-9][0-9]{0,2}")
_MAPPED_BITS = 96


def parse_address(text: str) -> Address:
    """Returns an address; an IPv4-mapped IPv6 address becomes IPv4."""
    return _unmapped(_read_address(text))


def is_ipv6(text: str) -> bool:
    try:
        return isinstance(_read_address(text), IPv6Address)
    except ValueError:
        return False


def parse_network(text: str) -> Network:
    """Returns a network. Without a mask it is a single address; host bits are cleared."""
    if not isinstance(text, str):
        raise ValueError("not a network in CIDR notation")  # noqa: TRY004 - callers catch one exception
    host, slash, mask = text.partition("/")
    address = _read_address(host)
    if slash and not _PREFIX.fullmatch(mask):
        raise ValueError("the mask of a network is a decimal prefix length")
    prefix = int(mask) if slash else address.max_prefixlen
    if prefix > address.max_prefixlen:
        raise ValueError("the prefix length of a network is too large")
    if isinstance(address, IPv4Address):
        return IPv4Network((address, prefix), strict=False)
    if address.ipv4_mapped is None:
        return IPv6Network((address, prefix), strict=False)
    if prefix < _MAPPED_BITS:
        raise ValueError("a network of IPv4-mapped addresses has a prefix length of 96 or more")
    return IPv4Network((address.ipv4_mapped, prefix - _MAPPED_BITS), strict=False)


def parse_networks(text: str) -> tuple[Network, ...]:
    """Returns the networks of a comma-separated list; a blank text is the empty list."""
    if not text.strip():
        return ()
    return _read_each(parse_network, (item.strip() for item in text.split(",")))


def contains(networks: Iterable[Network], address: Address) -> bool:
    """Returns whether one of the networks contains the address; either may be in IPv4-mapped notation."""
    plain = _unmapped(address)
    return any(plain in _unmapped_network(network) for network in networks)


def intersection(first: Iterable[Network], second: Iterable[Network]) -> tuple[Network, ...]:
    """Returns the networks of the addresses that are in both lists: of two that overlap, the smaller one."""
    others = tuple(second)
    networks = dict.fromkeys(
        one if _inside(one, other) else other
        for one in first
        for other in others
        if _inside(one, other) or _inside(other, one)
    )
    return tuple(networks)


def client_network(address: Address) -> Address | Network:
    """Returns the network that counts as one client: an IPv4 address or an IPv6 /64.

    A host with one IPv6 address commonly has all addresses of its /64.
    """
    plain = _unmapped(address)
    return plain if isinstance(plain, IPv4Address) else IPv6Network((plain, 64), strict=False)


def client_networks(address: Address) -> tuple[Address | Network, Network | None]:
    """Returns the network of a client and its site: the /48 around an IPv6 address, None for IPv4."""
    network = client_network(address)
    if isinstance(network, IPv6Network):
        return network, network.supernet(new_prefix=48)
    return network, None


def private_networks(values: Sequence[str]) -> tuple[Network, ...]:
    """Returns a list of private networks (`fixed_ips`) without duplicates, in the given order."""
    if isinstance(values, str | bytes):  # a string is a sequence of strings, too
        raise ValueError("must be an array of networks")  # noqa: TRY004 - as above
    if len(values) > MAX_FIXED_NETWORKS:
        raise ValueError(f"must be at most {MAX_FIXED_NETWORKS} networks")
    return tuple(dict.fromkeys(_read_each(_read_private, values)))


def _read_address(text: object) -> Address:
    if not isinstance(text, str) or not _ADDRESS.fullmatch(text):
        raise ValueError("not an IP address")
    try:
        return ip_address(text)
    except ValueError:
        raise ValueError("not an IP address") from None  # the original error quotes the input


def _read_private(text: str) -> Network:
    network = parse_network(text)
    if not any(_inside(network, private) for private in PRIVATE):
        raise ValueError("not a private network")
    return network


def _read_each(read: Callable[[str], Network], values: Iterable[str]) -> tuple[Network, ...]:
    """Returns networks. The error names the position of the invalid one, not its text, which is untrusted."""
    networks: list[Network] = []
    for index, value in enumerate(values):
        try:
            networks.append(read(value))
        except ValueError as error:
            raise ValueError(f"item {index}: {error}") from None
    return tuple(networks)


def _unmapped(address: Address) -> Address:
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _unmapped_network(network: Network) -> Network:
    if isinstance(network, IPv6Network) and network.prefixlen >= _MAPPED_BITS:
        mapped = network.network_address.ipv4_mapped
        if mapped is not None:
            return IPv4Network((mapped, network.prefixlen - _MAPPED_BITS))
    return network


def _inside(inner: Network, outer: Network) -> bool:
    # subnet_of raises if the versions differ.
    return inner.network_address in outer and inner.broadcast_address in outer
