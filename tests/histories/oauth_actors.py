"""Clients of a history that use OAuth, devices and game sessions."""

import random
from functools import partial

import httpx

from tests.histories.racing import UNDECIDED, race
from tests.histories.world import World
from tests.kit.device import Device, confirm, start_device
from tests.kit.game import Game, press_continue
from tests.kit.oauth import Site

ROTATIONS = 4  # of a refresh token before its grant is revoked
PEOPLE = ("9301", "9302")


def use_site(world: World, number: int) -> None:
    """Redeems a code at both nodes at once, or once; then likewise each refresh token; then revokes the grant."""
    history = world.history
    sites = [world.site(node) for node in world.nodes]
    code = _new_code(world, sites[0])
    history.record("issue_code", code, lambda: httpx.Response(200))
    is_raced = number % 2 == 0
    answer = race(world, "redeem", code, [partial(site.redeem, code) for site in sites[: 1 + is_raced]])
    for _ in range(ROTATIONS):
        if answer is None or is_raced:  # the second redemption has revoked the grant
            return
        token = answer.json()["refresh_token"]
        history.record("issue_refresh_token", token, lambda: httpx.Response(200))
        answer = race(world, "refresh", token, [partial(site.refresh, token) for site in sites])
    if answer is None:
        return
    refresh, access = answer.json()["refresh_token"], answer.json()["access_token"]
    history.record("use_access_token", access, lambda: sites[0].userinfo(access))
    history.record("revoke", access, lambda: random.choice(sites).revoke(refresh))
    for site in sites:
        history.record("use_access_token", access, partial(site.userinfo, access))


def reuse_refresh_token(world: World, number: int) -> None:
    """Sends a refresh token that was replaced, which ends all tokens of its grant."""
    sites = [world.oidc_site(node) for node in world.nodes]
    answer = sites[0].redeem(_new_code(world, sites[0])).raise_for_status()
    first = answer.json()["refresh_token"]
    for _ in range(2):
        answer = random.choice(sites).refresh(answer.json()["refresh_token"]).raise_for_status()
    newest = answer.json()["refresh_token"]
    world.history.record("reuse", first, lambda: random.choice(sites).refresh(first), 400)
    world.history.record("use_family", first, lambda: random.choice(sites).refresh(newest))


def _new_code(world: World, site: Site) -> str:
    with world.browser(random.choice(PEOPLE)) as browser:
        page = browser.get("/proxy/oauth/authorize", params=site.query())
        return httpx.URL(page.headers["Location"]).params["code"]


def play(world: World, number: int) -> None:
    """Registers a game, confirms in the browser, and polls once, or at both nodes at once."""
    address = f"127.{random.randint(100, 200)}.{random.randint(0, 250)}.{random.randint(1, 250)}"
    games = [Game(node, address) for node in world.nodes]
    try:
        session = games[0].register()
        with world.browser("9301") as browser:
            shown = press_continue(browser, session)
            world.history.record("confirm", session.gsid, lambda: shown)
        race(world, "deliver", session.gsid, [partial(_poll, game, session.gsid) for game in games[: 1 + number % 2]])
    finally:
        for game in games:
            game.http.close()


def _poll(game: Game, gsid: str) -> httpx.Response:
    answer = game.ask("getGsidResult", gsid)
    if answer.status_code != 200 or answer.json()["status"] == "OK":
        return answer
    is_held_to_the_end = answer.json()["status"] == "RETRY"
    return UNDECIDED if is_held_to_the_end else httpx.Response(409)


def use_device(world: World, number: int) -> None:
    """Confirms the sign-in of a device, which asks for its tokens once, or at both nodes at once."""
    sites = [world.device_site(node) for node in world.nodes]
    device = start_device(sites[0])
    with world.browser(random.choice(PEOPLE)) as browser:
        shown = confirm(browser, device)
        world.history.record("confirm_device", device.gsid, lambda: shown)
    race(world, "redeem_device", device.gsid, [partial(_ask, device, site) for site in sites[: 1 + number % 2]])


def _ask(device: Device, site: Site) -> httpx.Response:
    answer = device.ask(site.http)
    is_early = answer.status_code == 400 and answer.json()["error"] in ("authorization_pending", "slow_down")
    return UNDECIDED if is_early else answer
