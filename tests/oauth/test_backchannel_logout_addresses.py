"""The addresses that logout notifications may be sent to: not those of internal hosts."""

from ipaddress import ip_address

import pytest

from sso.backchannel_logout.sender import LIMITS
from sso.core.net import parse_network
from sso.core.outgoing_http import AddressRefused, NoAnswer, OutgoingClient
from sso.core.receiver_addresses import ReceiverAddresses
from tests.kit.logout_receiver import LogoutReceiver
from tests.kit.name_server import change_addresses

ALWAYS_REFUSED = [
    "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
    "255.255.255.255", "::", "fe80::1", "fd00::1", "fec0::1", "ff02::1", "64:ff9b::a00:1", "2002:a00:1::1",
    "64:ff9b:1::a00:1", "::ffff:0:a00:1", "::a00:1", "5f00::1", "3fff::1", "192.88.99.1", "168.63.129.16",
]  # fmt: skip
LOOPBACK = ["127.0.0.1", "127.1.2.3", "::1"]


@pytest.mark.parametrize("text", ALWAYS_REFUSED + LOOPBACK)
def test_internal_addresses_are_refused(text: str) -> None:
    address = ip_address(text)
    assert not ReceiverAddresses((), loopback=False).allows(address)
    assert ReceiverAddresses((), loopback=True).allows(address) == (text in LOOPBACK)
    assert ReceiverAddresses((parse_network(text),), loopback=False).allows(address)


@pytest.mark.parametrize("text", ["8.8.8.8", "2606:4700::1111"])
def test_public_addresses_are_allowed(text: str) -> None:
    assert ReceiverAddresses((), loopback=False).allows(ip_address(text))


async def test_every_notation_of_an_internal_address_is_refused(receiver: LogoutReceiver) -> None:
    client = OutgoingClient(None, LIMITS, ReceiverAddresses((), loopback=False).allows)
    for host in ("127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1", "[::ffff:127.0.0.1]", "[::1]", "0"):
        with pytest.raises((AddressRefused, NoAnswer)):
            await client.send("POST", receiver.uri_at(host), {}, data={})
        assert receiver.requests == [], host


async def test_request_goes_to_the_address_that_was_checked(
    receiver: LogoutReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_addresses(monkeypatch, "127.0.0.1", "127.0.0.2")
    client = OutgoingClient(None, LIMITS, lambda address: str(address) == "127.0.0.1")
    answer = await client.send("POST", receiver.uri_at("shop.example.com"), {}, data={"a": "b"})
    assert answer.status == 200
    (request,) = receiver.requests
    assert request.headers["Host"] == f"shop.example.com:{receiver.port}"
    with pytest.raises(AddressRefused):
        await client.send("POST", receiver.uri_at("shop.example.com"), {}, data={})
    assert len(receiver.requests) == 1
