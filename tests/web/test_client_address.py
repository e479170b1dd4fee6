"""The client address: a client cannot choose its own, and an uncertain one is refused."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sso.core.net import contains, parse_networks
from sso.web.client_address import TrustedProxies, UnknownAddress, resolve_client_address

PROXY = "10.0.0.1"
X_FORWARDED_FOR = TrustedProxies(parse_networks("10.0.0.0/8, fd00::/8"))
FORWARDED = TrustedProxies(parse_networks("10.0.0.0/8, fd00::/8"), "forwarded")


def resolve(*lines: str, peer: str | None = PROXY, proxies: TrustedProxies = X_FORWARDED_FOR, **other: str) -> str:
    sent = {proxies.header: list(lines)} | {name.replace("_", "-"): [value] for name, value in other.items()}
    return str(resolve_client_address(peer, lambda name: sent.get(name, []), proxies))


def refuse(*lines: str, proxies: TrustedProxies = X_FORWARDED_FOR) -> None:
    with pytest.raises(UnknownAddress):
        resolve(*lines, proxies=proxies)


def forwarded(*lines: str) -> str:
    return resolve(*lines, proxies=FORWARDED)


# --- the peer


@pytest.mark.parametrize("proxies", [TrustedProxies(), X_FORWARDED_FOR, FORWARDED])
@pytest.mark.parametrize("value", ["1.1.1.1", "for=1.1.1.1", "a", "", "x" * 10_000, "::1", "127.0.0.1"])
def test_headers_of_an_untrusted_peer_are_ignored(proxies: TrustedProxies, value: str) -> None:
    everything = dict.fromkeys(
        ["x_forwarded_for", "forwarded", "x_real_ip", "true_client_ip", "client_ip", "ip", "via"], value
    )
    assert resolve(value, peer="203.0.113.9", proxies=proxies, **everything) == "203.0.113.9"


def test_only_the_configured_header_is_read() -> None:
    assert resolve("1.1.1.1", forwarded="for=2.2.2.2", x_real_ip="3.3.3.3") == "1.1.1.1"
    assert resolve("for=1.1.1.1", proxies=FORWARDED, x_forwarded_for="2.2.2.2") == "1.1.1.1"
    assert resolve(forwarded="for=2.2.2.2") == PROXY


@pytest.mark.parametrize("lines", [[], [""], [" \t"], ["", ""]])
@pytest.mark.parametrize("proxies", [X_FORWARDED_FOR, FORWARDED])
def test_proxy_that_sends_no_header_is_the_client_itself(proxies: TrustedProxies, lines: list[str]) -> None:
    assert resolve(*lines, proxies=proxies) == PROXY


@pytest.mark.parametrize("peer", [None, ""])
def test_unix_socket_has_the_loopback_address(peer: str | None) -> None:
    assert resolve("1.1.1.1", peer=peer) == "127.0.0.1"
    assert resolve("1.1.1.1", peer=peer, proxies=TrustedProxies(parse_networks("127.0.0.1"))) == "1.1.1.1"


def test_mapped_peer_is_the_ipv4_peer() -> None:
    assert resolve("1.1.1.1", peer="::ffff:10.0.0.1") == "1.1.1.1"
    assert resolve("1.1.1.1", peer="::ffff:203.0.113.9") == "203.0.113.9"


def test_zone_of_a_link_local_peer_is_dropped() -> None:
    assert resolve(peer="fe80::1%eth0") == "fe80::1"


def test_peer_without_an_address_is_unknown() -> None:
    with pytest.raises(UnknownAddress):
        resolve(peer="testclient")


# --- hops


def test_right_most_untrusted_hop_is_the_client() -> None:
    assert resolve("9.9.9.9, 1.1.1.1") == "1.1.1.1"
    assert resolve("9.9.9.9, 1.1.1.1, 10.2.2.2, fd00::2") == "1.1.1.1"
    assert resolve("9.9.9.9,10.9.9.9,1.1.1.1") == "1.1.1.1"
    assert forwarded('for=9.9.9.9, for=1.1.1.1;proto=https, for="[fd00::2]"') == "1.1.1.1"


def test_left_most_hop_is_the_client_if_all_are_trusted() -> None:
    assert resolve("10.3.3.3, 10.2.2.2") == "10.3.3.3"
    assert resolve("::ffff:10.3.3.3") == "10.3.3.3"
    assert forwarded("for=10.3.3.3, for=10.2.2.2") == "10.3.3.3"


def test_header_lines_are_joined_in_order() -> None:
    assert resolve("9.9.9.9", "1.1.1.1", "10.2.2.2") == "1.1.1.1"
    assert resolve("9.9.9.9, 1.1.1.1", "10.3.3.3, 10.2.2.2") == "1.1.1.1"
    assert forwarded("for=9.9.9.9", "for=1.1.1.1, for=10.2.2.2") == "1.1.1.1"


def test_hops_left_of_the_client_are_ignored() -> None:
    assert resolve("unknown, <script>, , 1.1.1.1") == "1.1.1.1"
    assert forwarded("for=unknown, for=_x, , for=1.1.1.1") == "1.1.1.1"


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "0.0.0.0"])
def test_loopback_hop_is_an_address_like_any_other(address: str) -> None:
    # Only a trusted proxy can report it. Settings that trust loopback addresses must consider that.
    assert resolve(address) == address


@pytest.mark.parametrize(
    "hop",
    [
        *("a", "unknown", "_hidden", "-", "1.2.3", "010.0.0.1", "1.2.3.4.5", "256.1.1.1", "167772161", "１.1.1.1"),
        *("fe80::1%eth0", "[::1", "::1]", "[]", "[1.2.3.4]", "[::1]x", "[::1]:", "[::1]:x", "1.2.3.4:", "1.2.3.4:x"),
        *(
            "1.2.3.4:123456",
            "1.2.3.4 5.6.7.8",
            "1.2.3.4;5.6.7.8",
            '"1.2.3.4"',
            "1.1.1.1,",
            ",",
            "1.1.1.1,,",
            "1.1.1.1, ",
        ),
        *("1.1.1.1, a", "1.1.1.1, a, 10.2.2.2", "1.1.1.1, , 10.2.2.2", "for=1.1.1.1", "1.2.3.4/32", "\x00", "é"),
    ],
)
def test_hop_without_an_address_is_refused(hop: str) -> None:
    refuse(hop)


def test_empty_line_after_others_is_refused() -> None:
    refuse("1.1.1.1", "")
    refuse("for=1.1.1.1", "", proxies=FORWARDED)


@pytest.mark.parametrize(
    ("hop", "address"),
    [
        ("1.2.3.4:567", "1.2.3.4"),
        ("[2001:db8::1]:567", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("::ffff:1.2.3.4", "1.2.3.4"),
        ("[::ffff:1.2.3.4]:80", "1.2.3.4"),
        ("\t 1.2.3.4 \t", "1.2.3.4"),
    ],
)
def test_port_is_dropped(hop: str, address: str) -> None:
    assert resolve(hop) == address


def test_more_than_50_hops_are_refused() -> None:
    assert resolve(",".join(["9.9.9.9"] * 49 + ["1.1.1.1"])) == "1.1.1.1"
    assert forwarded(",".join(["for=1.1.1.1"] * 50)) == "1.1.1.1"
    for count in (51, 1000):
        refuse(",".join(["1.1.1.1"] * count))
        refuse(*["1.1.1.1"] * count)
        refuse(",".join(["for=1.1.1.1"] * count), proxies=FORWARDED)


def test_header_is_limited_to_4_kb() -> None:
    assert resolve("x" * 4000 + ", 1.1.1.1") == "1.1.1.1"
    refuse("x" * 10_000 + ", 1.1.1.1")
    refuse(" " * 10_000 + "1.1.1.1")
    refuse("x" * 2100, "x" * 2100 + ", 1.1.1.1")
    refuse(f'x="{"x" * 10_000}", for=1.1.1.1', proxies=FORWARDED)


# --- Forwarded (RFC 7239)


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("for=192.0.2.60", "192.0.2.60"),
        ("For=192.0.2.60", "192.0.2.60"),
        ("FOR=192.0.2.60;PROTO=http;by=203.0.113.43", "192.0.2.60"),
        ("by=203.0.113.43;for=192.0.2.60", "192.0.2.60"),
        ('For="[2001:db8:cafe::17]:4711"', "2001:db8:cafe::17"),
        ('for="[2001:db8:cafe::17]"', "2001:db8:cafe::17"),
        ('for="192.0.2.60:4711"', "192.0.2.60"),
        ('for="192.0.2.60:_port"', "192.0.2.60"),
        ('for="192.0.2.60"', "192.0.2.60"),
        ('for="\\1\\9\\2.0.2.60"', "192.0.2.60"),
        ("for=192.0.2.60 ; proto=http ;", "192.0.2.60"),
        (';for=192.0.2.60;host="a,b;c=\\"d\\""', "192.0.2.60"),
        ('for=9.9.9.9;x="a, for=8.8.8.8" , for=192.0.2.60', "192.0.2.60"),
    ],
)
def test_forwarded_header_is_parsed_as_in_the_rfc(value: str, address: str) -> None:
    assert forwarded(value) == address


@pytest.mark.parametrize(
    "value",
    [
        *("for=unknown", "for=_hidden", 'for="_gazonk"', 'for="unknown"', "for=_SEVKISEK", 'for=""', "proto=https"),
        *("192.0.2.60", "for", "for=", "for =192.0.2.60", "for= 192.0.2.60", "for=192.0.2.60 proto=http", "=1.1.1.1"),
        *(
            'for="192.0.2.60',
            'for="192.0.2.60\\"',
            'for="192.0.2.60\\',
            'for="1.1.1.1"x',
            'for="1.1.1.1" "',
            "for='1.1.1.1'",
        ),
        *(
            "for=2001:db8::1",
            "for=[::1]",
            'for="::1"',
            "for=192.0.2.60:4711",
            'for="[fe80::1%eth0]"',
            'for="[1.2.3.4]"',
        ),
        *("for=1.1.1.1;for=2.2.2.2", "for=1.1.1.1;FOR=1.1.1.1", "for=1.1.1.1,", "for=1.1.1.1, ;", ",", ";", "\x00"),
    ],
)
def test_forwarded_header_without_an_address_is_refused(value: str) -> None:
    refuse(value, proxies=FORWARDED)


@pytest.mark.parametrize("sent", ['for="', 'for=9.9.9.9;x="', 'for=9.9.9.9;x="\\', 'for=9.9.9.9, "', 'for="9.9.9.9'])
@pytest.mark.parametrize("added", ["for=1.1.1.1", 'for="1.1.1.1:5"', 'for="[2001:db8::1]";by="x"', 'for=1.1.1.1;by=""'])
def test_unclosed_quote_of_a_client_cannot_hide_the_element_of_the_proxy(sent: str, added: str) -> None:
    refuse(f"{sent}, {added}", proxies=FORWARDED)
    refuse(sent, added, proxies=FORWARDED)


# --- random input


def test_other_headers_cannot_be_configured() -> None:
    for header in ("x-real-ip", "X-Forwarded-For", ""):
        with pytest.raises(ValueError, match="header must be"):
            TrustedProxies((), header)


lines = st.lists(st.text() | st.text('for=";,.:[]_ \\1f'), max_size=4)


@settings(deadline=None)
@given(lines, st.sampled_from([X_FORWARDED_FOR, FORWARDED]), st.sampled_from([None, "", PROXY, "8.8.8.8", "x"]))
def test_any_header_gives_an_address_or_unknown_address(
    values: list[str], proxies: TrustedProxies, peer: str | None
) -> None:
    with suppress(UnknownAddress):
        resolve(*values, peer=peer, proxies=proxies)


@settings(deadline=None)
@given(st.text(st.characters(max_codepoint=255), max_size=45), st.ip_addresses())
def test_hop_added_by_the_proxy_overrides_any_claim_of_the_client(claim: str, client: Any) -> None:
    assume(not contains(X_FORWARDED_FOR.networks, client))
    expected = client.ipv4_mapped or client if client.version == 6 else client
    assert resolve(claim, str(client)) == resolve(f"{claim}, {client}") == str(expected)


@settings(deadline=None)
@given(st.text(st.characters(max_codepoint=255), max_size=200) | st.text('for=";,1. \\'))
def test_client_can_only_make_its_address_unknown(claim: str) -> None:
    with suppress(UnknownAddress):
        assert forwarded(f"{claim}, for=1.1.1.1") == "1.1.1.1"
    with suppress(UnknownAddress):
        assert forwarded(claim, "for=1.1.1.1") == "1.1.1.1"
