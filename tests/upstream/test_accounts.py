"""Accounts and identities: new accounts, linking and unlinking on the account page, tokens that are kept."""

from typing import Any

import orjson
import pytest
import trio

from sso.accounts.errors import LastWayToSignIn
from sso.accounts.model import User
from sso.core.encryption import Keyring
from sso.services import Services
from sso.state.apply import Applier
from sso.state.document import parse
from sso.upstream.linked_identities import tokens_purpose
from sso.upstream.model import UpstreamIdentity
from sso.upstream.provider_store import count_links
from tests.kit.browser import mailed_codes, query
from tests.kit.builders import PASSWORD, add_user
from tests.kit.long_tests import IS_LONG_RUN
from tests.kit.oauth import Browser
from tests.kit.server import Server
from tests.upstream.player import (
    add_provider,
    follow,
    go,
    is_signed_in,
    link,
    player,
    press,
    sign_in,
    sign_out,
    start_link,
)
from tests.upstream.stand_ins import CodeProvider, Person, SteamStandIn


def make_old(server: Server, browser: Browser) -> None:
    """Makes the last authentication of the user's sessions older than what counts as recent."""
    query(
        server,
        """UPDATE browser_sessions s SET authenticated = now() - interval '1 hour'
        FROM users u WHERE u.user_id = s.user_id AND u.login = $1""",
        browser.login,
    )


def test_trusted_verified_address_creates_an_account(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider, trusted_email=True)
    browser = player(server)
    provider.person = Person(email="New.Player@example.com", name="Newcomer")
    page = follow(browser, sign_in(browser, provider_id, "/account/history"))
    assert "New.Player@example.com" in page.text
    wrong = press(browser, "/login/identity", "/login/identity/create", nick=" ")
    assert wrong.status_code == 422
    assert 'role="alert"' in wrong.text
    answer = press(browser, "/login/identity", "/login/identity/create", nick="Newcomer")
    assert answer.headers["Location"] == "/login?next=/account/history"
    (user,) = query(server, "SELECT * FROM users WHERE login = 'New.Player@example.com'")
    assert (user["email_verified"], user["nick"], user["password_hash"]) == (True, "Newcomer", None)
    assert is_signed_in(browser)
    sign_out(browser)
    sign_in(browser, provider_id)
    assert is_signed_in(browser)


def test_user_who_was_revoked_while_linking_is_told_that_nothing_was_linked(
    server: Server, provider: CodeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example because the password was changed in another browser, while the provider was asked."""
    provider_id = add_provider(server, provider)
    browser = player(server).sign_in()
    answer = start_link(browser, provider_id)
    redeem = provider._token

    def revoke_and_redeem(form: dict[str, str], headers: Any) -> dict[str, Any]:
        query(server, "UPDATE users SET valid_from = valid_from + 1 WHERE login = $1", browser.login)
        return redeem(form, headers)

    monkeypatch.setattr(provider, "_token", revoke_and_redeem)
    page = go(browser, go(browser, answer.headers["Refresh"].partition("url=")[2]).headers["Location"])
    assert page.status_code == 409
    assert "so nothing was linked" in page.text
    assert not query(server, "SELECT FROM linked_identities WHERE provider_id = $1", provider_id)


def test_unlinking_the_only_way_to_sign_in_is_refused(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider, trusted_email=True)
    browser = player(server)
    provider.person = Person(email=f"only-{provider_id}@example.com")
    sign_in(browser, provider_id)
    press(browser, "/login/identity", "/login/identity/create", nick="Only")
    answer = press(browser, "/account", "/account/identities/unlink")
    assert answer.status_code == 409
    assert "Without it you could not sign in any more." in answer.text
    query(
        server,
        """INSERT INTO passkeys (id, credential_id, user_id, public_key, sign_count)
        SELECT $1, 'x', user_id, 'x', 0 FROM users WHERE login = $2""",
        provider_id,
        provider.person.email,
    )
    answer = press(browser, "/account", "/account/identities/unlink")
    assert answer.headers["Location"] == "/account?done=identity-unlinked#identities"


def test_address_that_reads_like_another_is_not_used(server: Server, provider: CodeProvider) -> None:
    """Without the odd character it would be the address of someone else."""
    provider_id = add_provider(server, provider, trusted_email=True)
    browser = player(server)
    for address in ("own\0er@example.com", "owner@example.com\n", " owner@example.com"):
        provider.person = Person(email=address)
        page = follow(browser, sign_in(browser, provider_id))
        assert "No account yet" in page.text
        assert "owner@example.com" not in page.text
        assert "/login/identity/create" not in page.text


@pytest.mark.parametrize(("trusted", "verified"), [(False, True), (True, False)])
def test_other_addresses_are_verified_by_mail(
    server: Server, provider: CodeProvider, trusted: bool, verified: bool
) -> None:
    provider_id = add_provider(server, provider, trusted_email=trusted)
    browser = player(server)
    provider.person = Person(email="claimed@example.com", email_verified=verified)
    page = follow(browser, sign_in(browser, provider_id, "/account/history"))
    assert "claimed@example.com" not in page.text
    assert 'href="/register?next=/login/identity/link"' in page.text
    assert 'href="/login?next=/account/history"' in page.text  # Cancel


def test_steam_player_registers_with_an_address_and_is_linked(server: Server, steam: SteamStandIn) -> None:
    provider_id = add_provider(server, steam, "steam")
    browser = player(server)
    address = f"{provider_id}@example.com"
    assert "No account yet" in follow(browser, sign_in(browser, provider_id)).text
    sent = press(browser, "/register?next=/login/identity/link", "/register", email=address)
    assert sent.headers["Location"] == "/register/code?next=/login/identity/link"
    code = mailed_codes(server, address)[-1]
    answer = press(browser, sent.headers["Location"], "/register/code", otp=code)
    path, password = answer.headers["Location"], "seven crowbars in the lambda complex"
    answer = press(browser, path, "/register/complete", nick="Gordon", password=password)
    assert answer.headers["Location"] == "/login/identity/link"
    press(browser, "/login/identity/link", "/login/identity/link")
    sign_out(browser)
    assert address in follow(browser, sign_in(browser, provider_id)).text


def test_account_page_links_and_unlinks(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider)
    browser = player(server).sign_in()
    answer = start_link(browser, provider_id)
    url = answer.headers["Refresh"].partition("url=")[2]
    answer = go(browser, go(browser, url).headers["Location"])
    assert answer.headers["Location"] == "/account?done=identity-linked#identities"
    page = follow(browser, answer).text
    assert "Your accounts are linked." in page
    assert "Ann of Elsewhere" in page
    answer = press(browser, "/account", "/account/identities/unlink")
    assert "The link has been removed." in follow(browser, answer).text
    sign_out(browser)
    assert "No account yet" in follow(browser, sign_in(browser, provider_id)).text
    history = [row["kind"] for row in query(server, HISTORY, browser.login)]
    assert history == ["identity_linked", "identity_unlinked"]
    mails = query(server, "SELECT subject FROM outbox WHERE recipient = $1", browser.login)
    files = [path.read_text() for path in (server.folder / "data" / "mail").glob("*") if path.is_file()]
    assert len(mails) + sum(browser.login in mail for mail in files) >= 2


HISTORY = """SELECT e.kind FROM account_events e JOIN users u USING (user_id)
    WHERE u.login = $1 AND e.kind LIKE 'identity%' ORDER BY e.id"""


def test_linking_needs_a_recent_login(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider)
    browser = player(server).sign_in()
    make_old(server, browser)
    answer = start_link(browser, provider_id)
    assert answer.status_code == 422
    assert 'role="alert"' in answer.text
    assert start_link(browser, provider_id, current_password="wrong").status_code == 422
    assert "Refresh" in start_link(browser, provider_id, current_password=PASSWORD).headers


def test_sign_in_with_a_provider_does_not_replace_the_password_for_important_changes(
    server: Server, provider: CodeProvider
) -> None:
    """The provider may not have asked anything, so the session does not count as recently authenticated."""
    provider_id = add_provider(server, provider)
    browser = player(server)
    link(browser, provider_id)
    sign_out(browser)
    sign_in(browser, provider_id)
    assert press(browser, "/account", "/account/identities/unlink", current_password="").status_code == 422
    answer = press(browser, "/account", "/account/identities/unlink", current_password=PASSWORD)
    assert answer.headers["Location"] == "/account?done=identity-unlinked#identities"


def test_identity_of_another_account_cannot_be_linked(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider)
    owner, other = player(server), player(server).sign_in()
    link(owner, provider_id)
    url = start_link(other, provider_id).headers["Refresh"].partition("url=")[2]
    answer = go(other, go(other, url).headers["Location"])
    assert answer.headers["Location"] == "/login/identity/conflict"
    page = follow(other, answer)  # which names the other account only so that its owner recognizes it
    assert "•••@" in page.text
    assert owner.login not in page.text


@pytest.mark.parametrize("keep", [True, False])
def test_tokens_are_kept_encrypted_or_not_at_all(server: Server, provider: CodeProvider, keep: bool) -> None:
    provider_id = add_provider(server, provider, keep_tokens=keep)
    browser = player(server)
    link(browser, provider_id)
    (row,) = query(server, "SELECT id, tokens_sealed FROM linked_identities WHERE provider_id = $1", provider_id)
    if not keep:
        assert row["tokens_sealed"] is None
        return
    assert not any(token in row["tokens_sealed"] for token in provider.tokens)
    keyring = Keyring.from_file(server.folder / "data" / "secret.key")
    tokens = orjson.loads(keyring.decrypt(tokens_purpose(row["id"]), row["tokens_sealed"]))
    assert tokens["access_token"] in provider.tokens


def test_removed_provider_keeps_no_links(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider)
    browser = player(server)
    link(browser, provider_id)
    sign_out(browser)
    refused = server.sso("idp", "delete", provider_id, check=False)
    assert "1 players sign in with it, 0 of them" in refused.stdout + refused.stderr
    server.sso("idp", "delete", provider_id, "--yes")
    assert browser.http.get(f"/login/upstream/{provider_id}").status_code == 404
    assert query(server, "SELECT * FROM linked_identities WHERE provider_id = $1", provider_id) == []


async def test_two_concurrent_changes_do_not_remove_the_last_two_ways_to_sign_in(services: Services) -> None:
    records = [{"id": name, "kind": "steam"} for name in ("one", "two")]
    await Applier(services.database, services.hasher, services.operations).apply(parse({"identity_providers": records}))
    for number in range(10 if IS_LONG_RUN else 3):
        user = await add_user(services, password=None)
        for record in records:
            provider = await services.upstream.providers.get(record["id"])
            assert provider
            assert await services.upstream.links.link(user, provider, UpstreamIdentity(f"person {number}"))
        refused = 0

        async def unlink(link_id: str, user: User = user) -> None:
            nonlocal refused
            try:
                await services.upstream.links.unlink(user, link_id)
            except LastWayToSignIn:
                refused += 1

        async with trio.open_nursery() as nursery:
            for identity in await services.upstream.links.list(user.user_id):
                nursery.start_soon(unlink, identity.id)
        assert refused == 1
        assert len(await services.upstream.links.list(user.user_id)) == 1


async def test_link_to_a_disabled_provider_is_no_way_to_sign_in(services: Services) -> None:
    records = [{"id": name, "kind": "steam", "disabled": name == "off"} for name in ("on", "off")]
    await Applier(services.database, services.hasher, services.operations).apply(parse({"identity_providers": records}))
    user = await add_user(services, password=None)
    for record in records:
        provider = await services.upstream.providers.get(str(record["id"]))
        assert provider
        assert await services.upstream.links.link(user, provider, UpstreamIdentity("person"))
    links = {link.provider_id: link.id for link in await services.upstream.links.list(user.user_id)}
    with pytest.raises(LastWayToSignIn):
        await services.upstream.links.unlink(user, links["on"])
    assert await count_links(services.database, "on") == (1, 1)
    assert await services.upstream.links.unlink(user, links["off"])
