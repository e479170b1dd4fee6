"""The addresses that requests may be sent to. An entered URL must not make this service call internal hosts."""

from ipaddress import IPv6Network, ip_network

from sso.core.net import Address, Network, contains

# NAT64, 6to4, Teredo, SIIT and IPv4-compatible: they contain an IPv4 address, which may be an internal one.
_TUNNELS = tuple(
    IPv6Network(text)
    for text in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::ffff:0:0:0/96", "::/96")
)
# Python may call them global: SRv6 segments, documentation, the relays of 6to4, and the agent of a cloud's hosts.
_NOT_PUBLIC = tuple(ip_network(text) for text in ("5f00::/16", "3fff::/20", "192.88.99.0/24", "168.63.129.16/32"))


class ReceiverAddresses:
    """Allows public addresses, the addresses of ``networks``, and with ``loopback`` this machine."""

    def __init__(self, networks: tuple[Network, ...], *, loopback: bool) -> None:
        self._networks = networks
        self._loopback = loopback

    def allows(self, address: Address) -> bool:
        if contains(self._networks, address):
            return True
        if address.is_loopback:
            return self._loopback
        is_site_local = address.version == 6 and address.is_site_local
        if is_site_local or address.is_multicast or contains((*_TUNNELS, *_NOT_PUBLIC), address):
            return False
        return address.is_global
