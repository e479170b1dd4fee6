"""The address of the client: one resolver for every check, limit and log line that uses it.

A forwarding header is a claim by whoever sent it. It is read only when the connection comes from a configured proxy,
and then from the right: each trusted hop vouches for the one before it, and the first that is not trusted is the
client. When the answer would be a guess there is none: UnknownAddress.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address

from sso.core.net import Address, Network, contains, parse_address

# A connection over a Unix socket has no address; it comes from this machine.
LOCAL = IPv4Address("127.0.0.1")

HEADERS = ("x-forwarded-for", "forwarded")
MAX_HOPS = 50
MAX_HEADER = 4096
MAX_PEERS = 1024  # kept in mind: the next request of a connection has the same

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
    """The client's address cannot be told with certainty."""


@dataclass(frozen=True)
class TrustedProxies:
    """Who is believed, and which one header is read of them (in lower case)."""

    networks: tuple[Network, ...] = ()
    header: str = HEADERS[0]

    def __post_init__(self) -> None:
        if self.header not in HEADERS:
            raise ValueError(f"header must be one of: {', '.join(HEADERS)}")


def resolve_client_address(peer: str | None, headers: Callable[[str], list[str]], proxies: TrustedProxies) -> Address:
    """Tell the client's address; `headers` gives all values of a header by its lower-case name, in order."""
    address = peer_address(peer)
    if not proxies.networks or not contains(proxies.networks, address):
        return address
    lines = headers(proxies.header)
    if not any(line.strip(_BLANK) for line in lines):
        return address  # the proxy speaks for itself, as in a health check
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
    return address  # when all are trusted, the left-most


@lru_cache(MAX_PEERS)
def peer_address(peer: str | None) -> Address:
    if not peer:
        return LOCAL
    try:
        # The zone id of a link-local peer comes from our own kernel; it only names the interface.
        return parse_address(peer.partition("%")[0])
    except ValueError:
        raise UnknownAddress("the peer has no address") from None


def _split_x_forwarded_for(lines: list[str]) -> list[str]:
    return [hop.strip(_BLANK) for hop in ",".join(lines).split(",")]


def _parse_x_forwarded_for(hop: str) -> Address:
    # An IPv6 address may stand there without brackets, and then without a port.
    return parse_address(hop) if hop.count(":") > 1 and not hop.startswith("[") else _parse_node(hop)


def _parse_node(node: str) -> Address:
    match = _NODE.fullmatch(node)
    if match is None or (match["v6"] and ":" not in match["v6"]):
        raise ValueError("not an address")
    return parse_address(match["v6"] or match["v4"])


def _split_forwarded(lines: list[str]) -> list[str]:
    """Give the `for` of each element, "" where there is none.

    Every line must be well-formed as a whole: an open quote that a client sends would otherwise swallow the element
    that the proxy appends to it.
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
