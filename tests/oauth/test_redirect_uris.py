"""Validation of redirect URIs, with strings that have deceived other validators."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sso.oauth.clients.redirect_uris import (
    NOT_A_HOST,
    NOT_A_URI,
    NOT_ABSOLUTE,
    Redirect,
    browser_origin,
    is_redirect_uri,
    match_post_logout_redirect_uri,
    match_redirect_uri,
    redirect_warnings,
)
from tests.kit.redirect_uris import REFUSED

HOSTS = ["game.example.com"]


@pytest.mark.parametrize("uri", REFUSED)
def test_uri_that_does_not_belong_to_the_client_is_refused(uri: str) -> None:
    assert not is_redirect_uri(uri, HOSTS)


@pytest.mark.parametrize(
    "uri",
    [
        "https://game.example.com/cb",
        "https://game.example.com",
        "https://game.example.com?",
        "https://game.example.com:8443/cb",
        "https://game.example.com:65535/cb",
        "https://GAME.EXAMPLE.COM/CB",
        "https://game.example.com/cb/../../x",
        "https://game.example.com/%2e%2e/",
        "https://game.example.com/%252e%252e/",
        "https://game.example.com/cb?a=1&b=2",
        "https://game.example.com/cb?codes=1&mystate=2",
        "https://game.example.com/@evil.com",
        "https://game.example.com//evil.com",
        "https://game.example.com/cb?to=https://evil.com/",
        "https://game.example.com/%E2%9C%93",
        "https://game.example.com/" + "a" * (2048 - 25),
    ],
)
def test_accepted_uri_is_used_unchanged(uri: str) -> None:
    redirect = match_redirect_uri(uri, HOSTS)
    assert isinstance(redirect, Redirect)
    assert redirect.uri == uri
    assert redirect.with_parameters(code="c").startswith(uri)
    assert redirect.with_parameters(code=None) == uri


@pytest.mark.parametrize(
    ("uri", "hosts", "uris", "reason"),
    [
        ("//game.example.com/cb", HOSTS, (), NOT_ABSOLUTE),
        ("https://game.example.com:65536/cb", HOSTS, (), NOT_ABSOLUTE),
        ("https://game.example.com/cb?state=1", HOSTS, (), "its query must not have code, state, error"),
        ("https://game.example.com/cb?iss=https://other.example", HOSTS, (), "its query must not have"),
        ("https://evil.com/cb", HOSTS, (), NOT_A_HOST),
        ("http://game.example.com/cb", HOSTS, (), "expected https"),
        ("https://game.example.com/x", HOSTS, ("https://game.example.com/cb",), NOT_A_URI),
        ("https://[1.2.3.4]/cb", (), ("https://[1.2.3.4]/cb",), NOT_ABSOLUTE),
        ("https://[::::]/cb", ["[::::]"], (), NOT_ABSOLUTE),
        ("https://game.example.com/cb", (), (), "the client has neither redirect_hosts nor redirect_uris"),
    ],
)
def test_refusal_gives_its_reason(uri: str, hosts: list[str], uris: tuple[str, ...], reason: str) -> None:
    match = match_redirect_uri(uri, hosts, uris)
    assert isinstance(match, str)
    assert match.startswith(reason)


@pytest.mark.parametrize(
    ("uri", "port"),
    [
        ("http://127.0.0.1:51004/cb", 51004),
        ("http://LOCALHOST/cb", 80),
        ("https://[::1]", 443),
        ("https://game.example.com:8443/cb", None),
        ("no URI", None),
    ],
)
def test_port_of_a_program_on_the_machine_of_the_user(uri: str, port: int | None) -> None:
    assert Redirect(uri, "").loopback_port == port


@pytest.mark.parametrize(
    ("uri", "origin"),
    [
        ("https://Game.Example.com:443/cb", "https://game.example.com"),
        ("https://game.example.com:80/cb", "https://game.example.com:80"),
        ("http://game.example.com:80", "http://game.example.com"),
        ("http://game.example.com:443", "http://game.example.com:443"),
        ("https://[2001:DB8::1]:443/cb", "https://[2001:db8::1]"),
        ("https://[1.2.3.4]/cb", ""),
        ("game.example.com", ""),
    ],
)
def test_origin_is_written_as_browsers_do(uri: str, origin: str) -> None:
    assert browser_origin(uri) == origin


def test_redirects_without_tls_are_warned_of() -> None:
    uris = ["http://game.example.com/cb", "https://game.example.com/cb", "http://localhost/cb", "no URI"]
    warnings = redirect_warnings(uris, ["http://intra.example.com", "game.example.com"])
    assert [warning.partition(" is not")[0] for warning in warnings] == [
        "redirect_uris: http://game.example.com/cb",
        "redirect_hosts: http://intra.example.com",
    ]


@pytest.mark.parametrize(
    "uri", ["http://localhost.evil.com/", "http://localhost:80@evil.com/", "http://127.0.0.1.evil.com/"]
)
def test_loopback_host_must_match_the_whole_name(uri: str) -> None:
    assert not is_redirect_uri(uri, ["localhost", "127.0.0.1"])


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_http_is_allowed_for_loopback_hosts_with_any_port(host: str) -> None:
    assert is_redirect_uri(f"http://{host}:51004/cb", [host])
    assert is_redirect_uri(f"http://{host}/cb", [host])
    assert not is_redirect_uri(f"http://{host}/cb", HOSTS)


def test_http_is_allowed_for_a_host_that_is_listed_with_http() -> None:
    assert is_redirect_uri("http://intra.example.com/cb", ["http://intra.example.com"])
    assert is_redirect_uri("https://intra.example.com/cb", ["http://intra.example.com"])
    assert not is_redirect_uri("http://intra.example.com/cb", ["intra.example.com"])


def test_http_is_allowed_for_every_host_if_the_service_has_no_tls() -> None:
    assert is_redirect_uri("http://game.example.com/cb", HOSTS, allow_http=True)
    assert not is_redirect_uri("http://evil.com/cb", HOSTS, allow_http=True)


def test_idn_host_matches_as_a_label_only() -> None:
    assert is_redirect_uri("https://xn--bcher-kva.example/cb", ["xn--bcher-kva.example"])
    assert not is_redirect_uri("https://bücher.example/cb", ["xn--bcher-kva.example"])
    assert not is_redirect_uri("https://xn--bucher-kva.example/cb", ["xn--bcher-kva.example"])


def test_listed_redirect_uris_match_exactly() -> None:
    uris = ["https://game.example.com/cb"]
    assert is_redirect_uri(uris[0], HOSTS, uris)
    for other in ("https://game.example.com/cb/", "https://game.example.com/cb?x", "https://game.example.com:443/cb"):
        assert not is_redirect_uri(other, HOSTS, uris)
    assert not is_redirect_uri("https://GAME.example.com/cb", HOSTS, uris)


def test_listed_loopback_uri_matches_with_any_port() -> None:
    uris = ["http://127.0.0.1/cb"]
    assert is_redirect_uri("http://127.0.0.1:51004/cb", ["127.0.0.1"], uris)
    assert not is_redirect_uri("http://127.0.0.1:51004/other", ["127.0.0.1"], uris)
    assert not is_redirect_uri("http://localhost:51004/cb", ["127.0.0.1", "localhost"], uris)
    assert not is_redirect_uri("https://127.0.0.1:51004/cb", ["127.0.0.1"], uris)
    assert not is_redirect_uri("http://127.0.0.1:51004/cb", ["127.0.0.1"], ["app:/cb"])


def test_client_may_have_redirect_uris_without_hosts() -> None:
    assert is_redirect_uri("https://game.example.com/cb", [], ["https://game.example.com/cb"])
    assert not is_redirect_uri("https://game.example.com/x", [], ["https://game.example.com/cb"])
    assert not is_redirect_uri("https://game.example.com/cb", [])


@pytest.mark.parametrize(
    ("uri", "response"),
    [
        ("https://h.example/cb", "https://h.example/cb?code=c&state=s"),
        ("https://h.example/cb?a=1&b=2", "https://h.example/cb?a=1&b=2&code=c&state=s"),
        ("https://h.example/cb?", "https://h.example/cb?code=c&state=s"),
        ("https://h.example/cb?a&", "https://h.example/cb?a&code=c&state=s"),
        ("https://h.example", "https://h.example?code=c&state=s"),
    ],
)
def test_added_parameters_follow_those_of_the_uri(uri: str, response: str) -> None:
    assert Redirect(uri, "").with_parameters(code="c", state=b"s", error=None) == response


def test_state_is_percent_encoded() -> None:
    assert Redirect("https://h.example/", "").with_parameters(state=b'"><\r\n\xff&=') == (
        "https://h.example/?state=%22%3E%3C%0D%0A%FF%26%3D"
    )


@given(st.text(alphabet=st.sampled_from("htps:/@\\.gamexlco?#%0a[]\t evi;"), max_size=60))
def test_accepted_uri_always_has_the_host_as_authority(tail: str) -> None:
    for uri in (tail, f"https://{tail}", f"https://game.example.com{tail}"):
        redirect = match_redirect_uri(uri, HOSTS)
        if isinstance(redirect, Redirect):
            rest = redirect.uri.lower().removeprefix("https://game.example.com")
            assert rest != redirect.uri.lower()
            assert not rest or rest[0] in "/?:"


def test_post_logout_redirect_uri_must_have_an_origin_of_the_client() -> None:
    assert match_post_logout_redirect_uri("https://game.example.com/bye", HOSTS, [], allow_http=False)
    assert match_post_logout_redirect_uri("https://evil.com/bye", HOSTS, [], allow_http=False) is None
    uris = ["https://game.example.com:8443/cb"]
    assert match_post_logout_redirect_uri("https://game.example.com:8443/bye", [], uris, allow_http=False)
    assert match_post_logout_redirect_uri("https://game.example.com/bye", [], uris, allow_http=False) is None
    assert match_post_logout_redirect_uri("https://evil.com/bye", [], uris, allow_http=False) is None
    assert match_post_logout_redirect_uri("https://game.example.com/bye", HOSTS, uris, allow_http=False) is None
    assert match_post_logout_redirect_uri("no URI", [], uris, allow_http=False) is None
    assert match_post_logout_redirect_uri("https://game.example.com/bye", [], [], allow_http=False) is None


def test_listed_post_logout_redirect_uris_match_exactly() -> None:
    listed = ["https://game.example.com/bye"]
    match = match_post_logout_redirect_uri(listed[0], [], [], listed, allow_http=False)
    assert match
    assert match.uri == listed[0]
    assert match_post_logout_redirect_uri("https://game.example.com/x", HOSTS, [], listed, allow_http=False) is None
