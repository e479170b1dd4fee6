"""Clients of a history that sign in, use tickets of a store, reset passwords and accept invitations."""

from contextlib import ExitStack
from functools import partial

import httpx

from tests.histories.racing import at_once, race
from tests.histories.world import CARELESS, STORE, World, login_of
from tests.kit.browser import Browser
from tests.kit.builders import PASSWORD
from tests.kit.mailbox import link_in, mails, path_of
from tests.kit.nodes import Node
from tests.kit.password_reset import SUBJECT, ask_for_link
from tests.kit.server import until
from tests.upstream.stores import send

WRONG_CODES = 12  # more than an account accepts at once
MAIL_S = 10.0


def use_recovery_code(world: World, number: int) -> None:
    """Signs in with the same recovery code at both nodes at once."""
    user_id = CARELESS[number % len(CARELESS)]
    if not world.recovery_codes[user_id]:
        return
    code = world.recovery_codes[user_id].pop()
    world.history.record("issue_recovery_code", code, lambda: httpx.Response(200))
    race(world, "recover", code, [partial(_sign_in, node, user_id, code) for node in world.nodes])


def guess_codes(world: World, number: int) -> None:
    """Sends wrong codes of an authenticator app at both nodes at once."""
    user_id = world.take("guessed")
    if user_id is None:
        return
    sends = [partial(_sign_in, world.nodes[code % 2], user_id, f"{code:06}") for code in range(WRONG_CODES)]
    at_once(*(partial(world.history.record, "guess", user_id, send, 401) for send in sends))


def _sign_in(node: Node, user_id: str, otp: str) -> httpx.Response:
    with node.client() as http:
        return http.post("/proxy/api/login", json={"login": login_of(user_id), "password": PASSWORD, "otp": otp})


def use_ticket(world: World, number: int) -> None:
    """Signs in with the same ticket of a store at both nodes at once: that of a new player, or of a known one."""
    ticket = world.store.ticket(f"player-{number - number % 2}")
    race(world, "use_ticket", ticket, [partial(send, node, STORE, ticket) for node in world.nodes])


def reset_password(world: World, number: int) -> None:
    """Opens the mailed link at both nodes, and chooses a password at both at once."""
    user_id = world.take("forgetful")
    if user_id is None:
        return
    with Browser(world.node()) as browser:
        ask_for_link(browser, login_of(user_id))
    sent = until(lambda: [mail for node in world.nodes for mail in mails(node, login_of(user_id), SUBJECT)], MAIL_S)
    if sent:  # a request is only kept in memory until its mail is written, and may be lost
        link = path_of(link_in(sent[0]))
        password = {"new_password": f"{PASSWORD} new", "repeat_password": f"{PASSWORD} new"}
        _race_link(world, link, "reset", "/reset", password)


def accept_invitation(world: World, number: int) -> None:
    """Opens an invitation at both nodes, and creates the account at both at once."""
    with world.administrator(world.node()) as http:
        invitation = http.post("/invitations", json={"login": f"invited{number}@example.com"}).raise_for_status()
    link = path_of(invitation.json()["data"]["link"])
    _race_link(world, link, "accept", "/register/complete", {"nick": "Newcomer", "password": PASSWORD})


def _race_link(world: World, link: str, operation: str, action: str, fields: dict[str, str]) -> None:
    world.history.record(f"issue_{operation}_link", link, lambda: httpx.Response(200))
    with ExitStack() as stack:
        browsers = [stack.enter_context(Browser(node)) for node in world.nodes]
        for browser in browsers:
            page = browser.get(link)
            if page.is_redirect:
                browser.follow(page)
        race(world, operation, link, [partial(browser.submit, action, **fields) for browser in browsers], 303)
