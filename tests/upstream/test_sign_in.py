"""Sign-in with other providers: the whole way of each kind, and what follows for accounts."""

import pytest

from tests.kit.server import Server
from tests.upstream.player import (
    add_provider,
    follow,
    is_signed_in,
    link,
    player,
    sign_in,
    sign_out,
)
from tests.upstream.stand_ins import CodeProvider, SteamStandIn


@pytest.mark.parametrize("kind", ["oidc", "oauth2"])
def test_linked_identity_signs_in(server: Server, provider: CodeProvider, kind: str) -> None:
    provider_id = add_provider(server, provider, kind)
    browser = player(server)
    link(browser, provider_id)
    sign_out(browser)
    page = follow(browser, sign_in(browser, provider_id))
    assert page.status_code == 200
    assert browser.login in page.text
    assert is_signed_in(browser)


def test_steam_identity_signs_in(server: Server, steam: SteamStandIn) -> None:
    provider_id = add_provider(server, steam, "steam")
    browser = player(server)
    link(browser, provider_id)
    sign_out(browser)
    assert browser.login in follow(browser, sign_in(browser, provider_id)).text
