"""The modules of the plan Back-Channel Logout OP."""

from collections.abc import Iterator

import pytest

from tests.conformance.conftest import POST_LOGOUT_URI
from tests.conformance.relying_party import STATE, RelyingParty
from tests.kit.logout_receiver import LogoutReceiver, logout_receiver
from tests.kit.oauth import new_browser, new_site, query_of
from tests.kit.server import Server


@pytest.fixture
def receiver() -> Iterator[LogoutReceiver]:
    with logout_receiver() as receiver:
        yield receiver


@pytest.fixture
def rp(server: Server, receiver: LogoutReceiver) -> RelyingParty:
    site = new_site(
        server,
        profile="oidc",
        redirect_uri="https://rp.example.com/callback",
        post_logout_redirect_uris=[POST_LOGOUT_URI],
        backchannel_logout_uri=receiver.uri,
        backchannel_logout_session_required=True,
    )
    return RelyingParty(site, new_browser(server).sign_in())


def test_oidcc_backchannel_logout_discovery_endpoint_verification(rp: RelyingParty) -> None:
    assert rp.metadata["backchannel_logout_supported"] is True
    assert rp.metadata["backchannel_logout_session_supported"] is True
    assert rp.metadata["end_session_endpoint"].startswith(f"{rp.metadata['issuer']}/")


def test_oidcc_backchannel_rp_initiated_logout(rp: RelyingParty, receiver: LogoutReceiver) -> None:
    id_token = rp.tokens()["id_token"]
    parameters = {"id_token_hint": id_token, "post_logout_redirect_uri": POST_LOGOUT_URI, "state": STATE}
    answer = rp.browser.http.get(rp.metadata["end_session_endpoint"], params=parameters)
    assert answer.headers["Location"].startswith(POST_LOGOUT_URI)
    assert query_of(answer) == {"state": STATE}
    (request,) = receiver.wait()
    assert set(request.form) == {"logout_token"}
    token, claims = rp.claims(request.token), rp.claims(id_token)
    assert (token["sub"], token["sid"]) == (claims["sub"], claims["sid"])
    assert token["events"] == {"http://schemas.openid.net/event/backchannel-logout": {}}
    assert token["jti"]
    assert "nonce" not in token
    assert rp.answer(rp.authorize(prompt="none"))["error"] == "login_required"
