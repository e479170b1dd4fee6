"""Parsing the addresses to listen on."""

import pytest

from sso.core.bind_address import Bind, parse_bind, parse_binds


@pytest.mark.parametrize(
    ("text", "bind", "url_host"),
    [
        ("127.0.0.1:8000", Bind("127.0.0.1", 8000), "127.0.0.1:8000"),
        ("LocalHost:0", Bind("localhost", 0), "localhost:0"),
        ("sso_1.internal:65535", Bind("sso_1.internal", 65535), "sso_1.internal:65535"),
        ("[0:0:0:0:0:0:0:1]:8000", Bind("::1", 8000), "[::1]:8000"),
        ("[::]:80", Bind("::", 80), "[::]:80"),
        ("unix:/run/sso.sock", Bind(path="/run/sso.sock"), None),
        ("unix:/run/a:b", Bind(path="/run/a:b"), None),
    ],
)
def test_valid_bind_is_parsed(text: str, bind: Bind, url_host: str | None) -> None:
    assert parse_bind(text) == bind
    assert bind.url_host() == url_host
    assert parse_bind(str(bind)) == bind


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected host:port"),
        ("8000", "expected host:port"),
        ("localhost", "expected host:port"),
        ("[::1]", "expected host:port"),
        (":8000", "host is missing"),
        ("::1:8000", "in brackets"),
        ("[127.0.0.1]:80", "not an IPv6 address"),
        ("[::g]:80", "not an IPv6 address"),
        ("256.0.0.1:80", "not an IPv4 address"),
        ("127.1:80", "not an IPv4 address"),
        ("a b:80", "not a host name"),
        ("http://localhost:80", "not a host name"),
        ("-a:80", "not a host name"),
        ("localhost:", "the port must be"),
        ("localhost:http", "the port must be"),
        ("localhost:65536", "the port must be"),
        ("localhost:-1", "the port must be"),
        ("localhost:+1", "the port must be"),
        ("localhost:8_0", "the port must be"),
        ("localhost:٨٠", "the port must be"),
        ("unix:", "absolute path"),
        ("unix:run/sso.sock", "absolute path"),
        ("unix:/run/", "absolute path"),
        ("unix:/" + "a" * 107, "longer than 107"),
    ],
)
def test_invalid_bind_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason.replace("[", r"\[")):
        parse_bind(text)


def test_several_binds_are_separated_by_commas() -> None:
    assert parse_binds("127.0.0.1:1, [::1]:1,unix:/a") == (Bind("127.0.0.1", 1), Bind("::1", 1), Bind(path="/a"))
    assert len(parse_binds("127.0.0.1:0,127.0.0.1:0")) == 2


@pytest.mark.parametrize("text", ["", "127.0.0.1:1,", "127.0.0.1:1,127.0.0.1:1", "unix:/a,unix:/a"])
def test_empty_and_repeated_binds_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_binds(text)
