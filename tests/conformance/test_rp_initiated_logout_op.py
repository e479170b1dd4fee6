"""The modules of the plan RP-Initiated Logout OP."""

import httpx
import pytest

from tests.conformance.conftest import POST_LOGOUT_URI
from tests.conformance.relying_party import STATE, RelyingParty
from tests.kit.oauth import Site, new_browser, query_of
from tests.kit.server import Server


@pytest.fixture
def rp(server: Server, site: Site) -> RelyingParty:
    return RelyingParty(site, new_browser(server).sign_in())


def log_out(rp: RelyingParty, **parameters: str) -> httpx.Response:
    return rp.browser.http.get(rp.metadata["end_session_endpoint"], params=parameters)


def is_signed_in(rp: RelyingParty) -> bool:
    """Asks like the suite: an authorization request with prompt=none."""
    return "code" in rp.answer(rp.authorize(prompt="none"))


def confirm(rp: RelyingParty, page: httpx.Response) -> None:
    """The user confirms, and sees that they are signed out."""
    assert page.status_code == 200
    assert is_signed_in(rp)
    answer = rp.browser.submit(page, {})
    assert answer.status_code == 200
    assert not is_signed_in(rp)


def modified(token: str) -> str:
    """Returns the token with another signature."""
    head, _, signature = token.rpartition(".")
    return f"{head}.{'A' * 8}{signature[8:]}"


def assert_error_page(rp: RelyingParty, answer: httpx.Response) -> None:
    assert answer.status_code == 400
    assert "Location" not in answer.headers
    assert is_signed_in(rp)


def test_oidcc_rp_initiated_logout_discovery_endpoint_verification(rp: RelyingParty) -> None:
    assert rp.metadata["end_session_endpoint"].startswith(f"{rp.metadata['issuer']}/")


def test_oidcc_rp_initiated_logout(rp: RelyingParty) -> None:
    hint = rp.tokens()["id_token"]
    answer = log_out(rp, id_token_hint=hint, post_logout_redirect_uri=POST_LOGOUT_URI, state=STATE)
    assert answer.status_code == 303
    assert answer.headers["Location"].startswith(POST_LOGOUT_URI)
    assert query_of(answer) == {"state": STATE}
    assert not is_signed_in(rp)


def test_oidcc_rp_initiated_logout_bad_post_logout_redirect_uri(rp: RelyingParty) -> None:
    uri = POST_LOGOUT_URI.replace("post_logout_redirect", "other")
    answer = log_out(rp, id_token_hint=rp.tokens()["id_token"], post_logout_redirect_uri=uri, state=STATE)
    assert_error_page(rp, answer)


def test_oidcc_rp_initiated_logout_modified_id_token_hint(rp: RelyingParty) -> None:
    hint = modified(rp.tokens()["id_token"])
    assert_error_page(rp, log_out(rp, id_token_hint=hint, post_logout_redirect_uri=POST_LOGOUT_URI, state=STATE))


def test_oidcc_rp_initiated_logout_no_id_token_hint(rp: RelyingParty) -> None:
    assert_error_page(rp, log_out(rp, post_logout_redirect_uri=POST_LOGOUT_URI, state=STATE))


def test_oidcc_rp_initiated_logout_no_params(rp: RelyingParty) -> None:
    confirm(rp, log_out(rp))


def test_oidcc_rp_initiated_logout_no_post_logout_redirect_uri(rp: RelyingParty) -> None:
    answer = log_out(rp, id_token_hint=rp.tokens()["id_token"], state=STATE)
    assert answer.status_code == 200
    assert not is_signed_in(rp)


def test_oidcc_rp_initiated_logout_no_state(rp: RelyingParty) -> None:
    answer = log_out(rp, id_token_hint=rp.tokens()["id_token"], post_logout_redirect_uri=POST_LOGOUT_URI)
    assert answer.headers["Location"] == POST_LOGOUT_URI
    assert not is_signed_in(rp)


def test_oidcc_rp_initiated_logout_only_state(rp: RelyingParty) -> None:
    confirm(rp, log_out(rp, state=STATE))


def test_oidcc_rp_initiated_logout_query_added_to_post_logout_redirect_uri(rp: RelyingParty) -> None:
    uri = f"{POST_LOGOUT_URI}?foo=bar"
    answer = log_out(rp, id_token_hint=rp.tokens()["id_token"], post_logout_redirect_uri=uri, state=STATE)
    assert_error_page(rp, answer)


def test_oidcc_rp_initiated_logout_bad_id_token_hint(rp: RelyingParty) -> None:
    answer = log_out(rp, id_token_hint="not-a-token", post_logout_redirect_uri=POST_LOGOUT_URI, state=STATE)
    assert_error_page(rp, answer)
