"""Addresses and networks: which texts are accepted, and that IPv4-mapped notation makes no difference."""

from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sso.core.net import (
    SITE_FACTOR,
    client_network,
    client_networks,
    contains,
    intersection,
    parse_address,
    parse_network,
    parse_networks,
    private_networks,
)

NOT_ADDRESSES: list[Any] = [
    "",
    "a",
    " 1.2.3.4",
    "1.2.3.4 ",
    "1.2.3.4\n",
    "1.2.3",
    "10.0.1",
    "010.0.0.1",
    "0x7f.0.0.1",
    "167772161",
    "1.2.3.256",
    "1.2.3.4/32",
    "１.2.3.4",
    "fe80::1%eth0",
    "::1%",
    "[::1]",
    "1::2::3",
    ":::",
    "1" * 10_000,
    0,
    1,
    True,
    None,
    b"\x01\x02\x03\x04",
    ["10.0.0.1"],
]


@pytest.mark.parametrize("text", NOT_ADDRESSES)
def test_other_values_than_address_strings_are_rejected(text: Any) -> None:
    with pytest.raises(ValueError):
        parse_address(text)


@pytest.mark.parametrize("text", ["1.2.3.4", "::ffff:1.2.3.4", "::FFFF:0102:0304", "0:0:0:0:0:ffff:1.2.3.4"])
def test_mapped_address_is_the_ipv4_address(text: str) -> None:
    assert parse_address(text) == ip_address("1.2.3.4")


def test_compatible_address_is_not_a_mapped_one() -> None:
    assert parse_address("::1.2.3.4") == ip_address("::102:304")


@settings(deadline=None)
@given(st.ip_addresses())
def test_text_of_every_address_is_parsed(address: Any) -> None:
    mapped = address.ipv4_mapped if address.version == 6 else None
    assert parse_address(str(address)) == (mapped or address)


@settings(deadline=None)
@given(st.text() | st.text("0123456789abcdef:./,"))
def test_any_text_is_parsed_or_raises_value_error(text: str) -> None:
    for parse in (parse_address, parse_network, parse_networks):
        with suppress(ValueError):
            parse(text)


def test_network_without_mask_is_one_address() -> None:
    assert parse_network("10.1.2.3") == IPv4Network("10.1.2.3/32")
    assert parse_network("fd00::1") == IPv6Network("fd00::1/128")
    assert parse_network("::ffff:10.1.2.3") == IPv4Network("10.1.2.3/32")


def test_host_bits_are_cleared() -> None:
    assert parse_network("10.1.2.3/8") == IPv4Network("10.0.0.0/8")
    assert parse_network("fd00::1/8") == IPv6Network("fd00::/8")


@pytest.mark.parametrize(
    "text",
    [
        *NOT_ADDRESSES[:11],
        *NOT_ADDRESSES[12:],
        "10.0.0.1/33",
        "10.0.0.1/-1",
        "10.0.0.1/+8",
        "10.0.0.1/08",
        "10.0.0.1/8.0",
        "10.0.0.1/ 8",
        "10.0.0.1/８",
        "10.0.0.0/",
        "10.0.0.0/8/8",
        "10.0.0.0/255.0.0.0",
        "10.0.0.0/0.255.255.255",
        "fd00::/129",
        "/8",
    ],
)
def test_mask_that_is_not_a_prefix_length_is_rejected(text: Any) -> None:
    with pytest.raises(ValueError):
        parse_network(text)


def test_mapped_network_is_the_ipv4_network() -> None:
    assert parse_network("::ffff:10.0.0.0/104") == IPv4Network("10.0.0.0/8")
    assert parse_network("::ffff:1.2.3.4/96") == IPv4Network("0.0.0.0/0")
    with pytest.raises(ValueError, match="96"):
        parse_network("::ffff:10.0.0.0/95")


def test_list_of_networks_may_have_blanks_around_its_items() -> None:
    assert parse_networks(" 127.0.0.1/32 ,::1") == (IPv4Network("127.0.0.1/32"), IPv6Network("::1/128"))
    assert parse_networks("") == parse_networks("  ") == ()


@pytest.mark.parametrize("text", ["10.0.0.0/8,", ",", "10.0.0.0/8,,::1", "10.0.0.0/8 ::1", "10.0.0.0/8;::1", "all"])
def test_list_of_networks_with_an_invalid_item_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="item"):
        parse_networks(text)


@pytest.mark.parametrize("network", ["10.0.0.0/8", "::ffff:10.0.0.0/104"])
@pytest.mark.parametrize("address", ["10.0.0.1", "::ffff:10.0.0.1"])
def test_mapped_notation_never_changes_what_a_network_contains(network: str, address: str) -> None:
    # The standard library treats the two notations differently.
    assert contains((ip_network(network),), ip_address(address))
    assert not contains((ip_network(network),), ip_address("11.0.0.1"))
    assert not contains((ip_network(network),), ip_address("::ffff:11.0.0.1"))


def test_versions_do_not_contain_each_other() -> None:
    assert not contains((IPv6Network("::/0"),), ip_address("1.2.3.4"))
    assert not contains((IPv6Network("::/0"),), ip_address("::ffff:1.2.3.4"))
    assert not contains((IPv4Network("0.0.0.0/0"),), ip_address("::1"))
    assert contains((IPv4Network("0.0.0.0/0"), IPv6Network("::/0")), ip_address("::1"))
    assert not contains((), ip_address("::1"))


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.255.255.255", "10.255.255.255/32"),
        ("172.16.0.0/12", "172.16.0.0/12"),
        ("172.31.255.255", "172.31.255.255/32"),
        ("192.168.1.77/24", "192.168.1.0/24"),
        ("::ffff:10.0.0.1", "10.0.0.1/32"),
        ("fc00::/7", "fc00::/7"),
        ("fdff:ffff::1", "fdff:ffff::1/128"),
    ],
)
def test_private_networks_are_accepted(text: str, network: str) -> None:
    assert private_networks([text]) == (ip_network(network),)


@pytest.mark.parametrize(
    "value",
    [
        "0.0.0.0/0",
        "8.8.8.8",
        "10.0.0.0/7",
        "172.16.0.0/11",
        "172.32.0.0",
        "192.168.0.0/15",
        "::/0",
        "::",
        "::1",
        "::ffff:8.8.8.8",
        "::ffff:0:0/96",
        "0.0.0.0",
        "127.0.0.1",
        "169.254.0.0/16",
        "169.254.169.254",
        "240.0.0.0/4",
        "192.0.2.0/24",
        "198.18.0.0/15",
        "100.64.0.0/10",
        "fc00::/6",
        "fe80::1",
        "fec0::1",
        "10.0.0.1/33",
        "10.0.0.1/-1",
        "010.0.0.1",
        "10.0.1",
        "167772161",
        "fe80::1%eth0",
        "",
        167772161,
        1,
        True,
        None,
        ["10.0.0.1"],
    ],
)
def test_error_names_the_index_of_a_network_that_is_not_private(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^item 1:"):
        private_networks(["10.0.0.0/8", value, "also bad"])


def test_single_string_is_rejected_as_list_of_private_networks() -> None:
    with pytest.raises(ValueError, match="array"):
        private_networks("10.0.0.0/8")


def test_more_than_64_private_networks_are_rejected() -> None:
    assert len(private_networks([f"10.0.0.{i}" for i in range(64)])) == 64
    for count in (65, 10_000):
        with pytest.raises(ValueError, match="at most 64"):
            private_networks(["10.0.0.1"] * count)


def test_duplicate_networks_are_removed_and_the_order_is_kept() -> None:
    given_twice = ["192.168.0.0/16", "10.1.1.1/8", "192.168.7.7/16", "::ffff:10.0.0.0/104"]
    assert private_networks(given_twice) == (ip_network("192.168.0.0/16"), ip_network("10.0.0.0/8"))


def test_error_does_not_quote_the_input() -> None:
    with pytest.raises(ValueError) as refusal:
        private_networks(["x" * 100])
    assert "x" * 10 not in str(refusal.value)


@pytest.mark.parametrize(
    ("address", "network", "site"),
    [
        ("192.0.2.1", "192.0.2.1", None),
        ("::ffff:192.0.2.1", "192.0.2.1", None),
        ("2001:db8:1:2:3::1", "2001:db8:1:2::/64", "2001:db8:1::/48"),
    ],
)
def test_network_that_counts_as_one_client(address: str, network: str, site: str | None) -> None:
    assert str(client_network(ip_address(address))) == network
    found, around = client_networks(ip_address(address))
    assert (str(found), around and str(around)) == (network, site)
    assert SITE_FACTOR == 10


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        ("10.0.0.0/8", "10.1.0.0/16", "10.1.0.0/16"),
        ("10.1.0.0/16", "10.0.0.0/8", "10.1.0.0/16"),
        ("10.0.0.0/8,192.168.0.0/16", "192.168.1.0/24,fd00::/8", "192.168.1.0/24"),
        ("10.0.0.0/8", "192.168.0.0/16", ""),
        ("", "10.0.0.0/8", ""),
    ],
)
def test_networks_of_both_lists(first: str, second: str, both: str) -> None:
    assert intersection(parse_networks(first), parse_networks(second)) == parse_networks(both)


def test_limits_of_prefix_lengths() -> None:
    for text in ("10.0.0.0/33", "fd00::/129"):
        with pytest.raises(ValueError, match="the prefix length of a network is too large"):
            parse_network(text)
    assert contains([IPv6Network("::ffff:0:0/96")], ip_address("192.0.2.1"))
    assert not contains([IPv4Network("10.0.0.0/8")], ip_address("192.0.2.1"))
