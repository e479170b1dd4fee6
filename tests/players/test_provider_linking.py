"""Identity providers on the page of a link session: a newcomer is upgraded."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.kit.browser import query
from tests.kit.builders import PASSWORD
from tests.kit.game import Game
from tests.kit.guest import FACTOR, Device, bearer
from tests.kit.oauth import close_all
from tests.kit.registration import mailed_link, mails_to, new_address
from tests.kit.server import Server
from tests.upstream.conftest import provider
from tests.upstream.player import add_provider, follow, player, press, sign_in
from tests.upstream.stand_ins import CodeProvider, Person

__all__ = ["provider"]


@pytest.fixture
def game(server: Server) -> Iterator[Game]:
    with Game(server) as game:
        yield game
    close_all()


@pytest.mark.parametrize("trusted", [True, False])
def test_a_newcomer_of_a_provider_keeps_the_user_id_of_the_guest(
    server: Server, client: httpx.Client, game: Game, provider: CodeProvider, trusted: bool
) -> None:
    """With a verified address the newcomer confirms a nickname, without one the usual registration comes first."""
    provider_id = add_provider(server, provider, trusted_email=trusted)
    address = new_address()
    provider.person = Person(subject=f"newcomer {trusted}", email=address, name="Newcomer")
    device = Device()
    guest = device.sign_in(client)
    session = game.register(bearer(guest), link="1", factor=FACTOR)
    browser = player(server)
    page = follow(browser, sign_in(browser, provider_id, session.page))
    assert session.match in page.text  # somebody who did not start the game must notice
    if trusted:
        answer = press(browser, "/login/identity", "/login/identity/create", nick="Newcomer")
    else:
        answer = _register(browser, address)
        assert answer.headers["Location"] == "/login/identity/link"
        answer = press(browser, "/login/identity/link", "/login/identity/link")
    follow(browser, answer)
    press(browser, session.decision, f"{session.decision}/continue")
    data = session.poll().json()
    assert (data["status"], data["linked"], data["user_id"]) == ("OK", "upgraded", guest["user_id"])
    assert device.sign_in(client)["user_id"] == guest["user_id"]
    (row,) = query(server, "SELECT user_id FROM linked_identities WHERE provider_id = $1", provider_id)
    assert row["user_id"] == guest["user_id"]
    assert len(query(server, "SELECT FROM users WHERE lower(login) = lower($1)", address)) == 1


def _register(browser: Any, address: str) -> httpx.Response:
    path = f"/register?next={quote('/login/identity/link')}"
    press(browser, path, "/register", email=address)
    link = mailed_link(mails_to(browser.server, address)[0])
    return press(browser, link, "/register/complete", nick="Ann", password=PASSWORD)
