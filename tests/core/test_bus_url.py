"""Addresses of a bus: servers, credentials and TLS."""

import pytest

from sso.core.bus_url import BusUrl, parse_bus_url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("nats://a", BusUrl(("a:4222",), tls=False)),
        ("nats://a/", BusUrl(("a:4222",), tls=False)),
        ("tls://a.example.com:4333,b,[::1]:99", BusUrl(("a.example.com:4333", "b:4222", "[::1]:99"), tls=True)),
        ("nats://a, b", BusUrl(("a:4222", "b:4222"), tls=False)),
        ("nats://t%40ken@a", BusUrl(("a:4222",), tls=False, token="t@ken")),
        ("nats://ann:p%3Ass@a,b", BusUrl(("a:4222", "b:4222"), tls=False, user="ann", password="p:ss")),
        ("nats://ann:p:ss@a", BusUrl(("a:4222",), tls=False, user="ann", password="p:ss")),
    ],
)
def test_address(url: str, expected: BusUrl) -> None:
    assert parse_bus_url(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a",
        "nats://",
        "nats:///",
        "redis://a",
        "NATS://a",
        "nats://a,,b",
        "nats://a:0",
        "nats://a:65536",
        "nats://a:x",
        "nats://user:@a",
        "nats://:password@a",
        "nats://user:secret@a@b",
        "nats://user:se/cret@a",
        "nats://user:secret@a b",
        "nats://user:secret@a\r\nPUB x",
        "nats://a/path",
        "nats://a?x=1",
        "nats://ä",
    ],
)
def test_bad_address(url: str) -> None:
    with pytest.raises(ValueError, match="must be nats://") as error:
        parse_bus_url(url)
    assert "secret" not in str(error.value)


def test_repr_has_no_secret() -> None:
    assert "secret" not in repr(parse_bus_url("nats://user:secret@a"))
    assert "secret" not in repr(parse_bus_url("nats://secret@a"))
