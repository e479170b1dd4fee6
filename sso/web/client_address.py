"""Determines the address of the client: one resolver for every check, limit and log line.

A forwarding header is only a claim of its sender. It is used only if the connection comes from a trusted proxy, and
then from right to left: each trusted proxy has appended the address of the hop before it, and the first hop that is not
trusted is the client. UnknownAddress is raised if the address would be a guess.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv4Address

from msgspec import Struct

from sso.core.net import Address, Network, contains, parse_address

# The address for connections over a Unix socket, which have none.
LOCAL = IPv4Address("127.0.0.1")

HEADERS = ("x-forwarded-for", "forwarded")
MAX_HOPS = 50
MAX_HEADER = 4096
MAX_CACHED_PEERS = 1024

_BLANK = " \t"
_PORT = r"(?::(?:[0-9]{1,5}|_[A-Za-z0-9._-]{1,64}))?"
_NODE = re.compile(rf"(?:\[(?P<v6>[^\[\]]+)\]|(?P<v4>[0-9.]+)){_PORT}")

# RFC 7239 section 4. Token and quoted string exclude each other from the first character, so there is no backtracking.
_PAIR = re.compile(
    r"(?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+)="
    r"(?:(?P<token>[!#$%&'*+.^_`|~0-9A-Za-z-]+)|\"(?P<quoted>(?:[^\"\\]|\\.)*)\")"
)
_SEPARATOR = re.compile(r"[ \t]*([;,])[ \t]*")


class UnknownAddress(ValueError):
    """The address of the client cannot be determined with certainty."""


class TrustedProxies(Struct, frozen=True):
    """The trusted networks, and the one header (in lower case) that is read from them."""

    networks: tuple[Network, ...] = ()
    header: str = HEADERS[0]

    def __post_init__(self) -> None:
        if self.header not in HEADERS:
            raise ValueError(f"header must be one of: {', '.join(HEADERS)}")


def resolve_client_address(peer: str | None, headers: Callable[[str], list[str]], proxies: TrustedProxies) -> Address:
    """Returns the address of the client. `headers` returns all values of a header, by its lower-case name, in order."""
    address = peer_address(peer)
    if not proxies.networks or not contains(proxies.networks, address):
        return address
    lines = headers(proxies.header)
    if not any(line.strip(_BLANK) for line in lines):
        return address  # a request of the proxy itself, such as a health check
    if sum(len(line) + 1 for line in lines) > MAX_HEADER:
        raise UnknownAddress(f"{proxies.header} is too long")
    read_hops, parse_hop = _READERS[proxies.header]
    hops = read_hops(lines)
    if len(hops) > MAX_HOPS:
        raise UnknownAddress(f"{proxies.header} has too many hops")
    for hop in reversed(hops):
        try:
            address = parse_hop(hop)
        except ValueError:
            raise UnknownAddress(f"{proxies.header} has a hop that is no address") from None
        if not contains(proxies.networks, address):
            break
    return address  # the left-most one if all hops are trusted


@lru_cache(MAX_CACHED_PEERS)
def peer_address(peer: str | None) -> Address:
    if not peer:
        return LOCAL
    try:
        # The zone id of a link-local address comes from our own kernel, and only names the interface.
        return parse_address(peer.partition("%")[0])
    except ValueError:
        raise UnknownAddress("the peer has no address") from None


def _split_x_forwarded_for(lines: list[str]) -> list[str]:
    return [hop.strip(_BLANK) for hop in ",".join(lines).split(",")]


def _parse_x_forwarded_for(hop: str) -> Address:
    # An IPv6 address may be written without brackets, and then has no port.
    return parse_address(hop) if hop.count(":") > 1 and not hop.startswith("[") else _parse_node(hop)


def _parse_node(node: str) -> Address:
    match = _NODE.fullmatch(node)
    if match is None or (match["v6"] and ":" not in match["v6"]):
        raise ValueError("not an address")
    return parse_address(match["v6"] or match["v4"])


def _split_forwarded(lines: list[str]) -> list[str]:
    """Returns the `for` parameter of each element, "" if it has none.

    Every line must be well-formed as a whole: otherwise an unclosed quote sent by a client would swallow the element
    that the proxy appends.
    """
    hops: list[str] = []
    for line in lines:
        element: dict[str, str] = {}
        position, end = 0, len(line := line.strip(_BLANK))
        while True:
            if pair := _PAIR.match(line, position):
                name, position = pair["name"].lower(), pair.end()
                if name in element:
                    raise UnknownAddress("forwarded repeats a parameter")
                element[name] = pair["token"] or re.sub(r"\\(.)", r"\1", pair["quoted"] or "")
            separator = _SEPARATOR.match(line, position)
            if separator is None and position < end:
                raise UnknownAddress("forwarded is malformed")
            if separator is None or separator[1] == ",":
                hops.append(element.get("for", ""))
                element = {}
            if separator is None:
                break
            position = separator.end()
    return hops


_READERS: dict[str, tuple[Callable[[list[str]], list[str]], Callable[[str], Address]]] = {
    "x-forwarded-for": (_split_x_forwarded_for, _parse_x_forwarded_for),
    "forwarded": (_split_forwarded, _parse_node),
}
