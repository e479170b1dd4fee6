"""The clients of a history. Each repeats its work until it is told to stop; several run at once, at both nodes."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import httpx

from tests.histories.world import CARELESS, CENTRAL, DISABLED, GAME, LIMITED_ROLE, MEMBERS, ROOTS, World, login_of
from tests.kit.builders import PASSWORD
from tests.kit.game import Game, press_continue
from tests.kit.nodes import Node

ROTATIONS = 4  # of a refresh token before its grant is revoked
PAUSE_S = 0.02

Send = Callable[[], httpx.Response]


class Actor(threading.Thread):
    """A client. What breaks its work, such as a page that is not answered, makes it begin anew."""

    def __init__(self, name: str, world: World, work: Callable[[World, int], None], stopping: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self._world, self._work, self._stopping = world, work, stopping
        self.rounds = 0
        self.interruptions: Counter[str] = Counter()

    def run(self) -> None:
        while not self._stopping.wait(PAUSE_S):
            self.rounds += 1
            try:
                self._work(self._world, self.rounds)
            except (httpx.HTTPError, AssertionError, KeyError) as error:
                self.interruptions[f"{type(error).__name__} {str(error).splitlines()[:1]}"] += 1


@contextmanager
def acting(world: World) -> Iterator[list[Actor]]:
    """Runs all clients. At the end, each finishes its round."""
    stopping = threading.Event()
    kinds = (use_site, use_site, play, play, use_recovery_code, take_role, take_role, disable, disable, remove_roots)
    actors = [Actor(f"{work.__name__}-{number}", world, work, stopping) for number, work in enumerate(kinds)]
    for actor in actors:
        actor.start()
    try:
        yield actors
    finally:
        stopping.set()
        for actor in actors:
            actor.join()


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def use_site(world: World, number: int) -> None:
    """Redeems a code at both nodes at once, or once; then likewise each refresh token; then revokes the grant."""
    history = world.history
    sites = [world.site(node) for node in world.nodes]
    with world.browser(random.choice(("9301", "9302"))) as browser:
        page = browser.get("/proxy/oauth/authorize", params=sites[0].query())
        code = httpx.URL(page.headers["Location"]).params["code"]
        history.record("issue_code", code, lambda: page, 302)
    is_raced = number % 2 == 0
    redeem = [partial(site.redeem, code) for site in sites[: 1 + is_raced]]
    tokens = _race(world, "redeem", code, redeem)
    for _ in range(ROTATIONS):
        if tokens is None or is_raced:  # the second redemption has revoked the grant
            return
        token = tokens["refresh_token"]
        history.record("issue_refresh_token", token, lambda: httpx.Response(200))
        tokens = _race(world, "refresh", token, [partial(site.refresh, token) for site in sites])
    if tokens is None:
        return
    refresh, access = tokens["refresh_token"], tokens["access_token"]
    history.record("use_access_token", access, lambda: sites[0].userinfo(access))
    history.record("revoke", access, lambda: random.choice(sites).revoke(refresh))
    for site in sites:
        history.record("use_access_token", access, partial(site.userinfo, access))


def _race(world: World, operation: str, subject: str, sends: Sequence[Send]) -> dict[str, Any] | None:
    """Sends the same request to both nodes at once. Returns the answer of the one that succeeded."""
    answers = at_once(*(partial(world.history.record, operation, subject, send) for send in sends))
    won = [answer.json() for answer in answers if answer is not None and answer.status_code == 200]
    return won[0] if won else None


def play(world: World, number: int) -> None:
    """Registers a game, confirms in the browser, and polls at both nodes at once."""
    address = f"127.{random.randint(100, 200)}.{random.randint(0, 250)}.{random.randint(1, 250)}"
    games = [Game(node, address) for node in world.nodes]
    try:
        session = games[0].register()
        with world.browser("9301") as browser:
            shown = press_continue(browser, session)
            world.history.record("confirm", session.gsid, lambda: shown)
        _race_polls(world, session.gsid, games)
    finally:
        for game in games:
            game.http.close()


def _race_polls(world: World, gsid: str, games: list[Game]) -> None:
    def poll(game: Game) -> httpx.Response:
        answer = game.ask("getGsidResult", gsid)
        if answer.status_code == 200 and answer.json()["status"] == "RETRY":
            return httpx.Response(503)  # held to the end without a result: nothing is known
        return answer

    at_once(*(partial(world.history.record, "deliver", gsid, partial(poll, game)) for game in games))


def use_recovery_code(world: World, number: int) -> None:
    """Signs in with the same recovery code at both nodes at once."""
    user_id = CARELESS[number % len(CARELESS)]
    if not world.recovery_codes[user_id]:
        return
    code = world.recovery_codes[user_id].pop()
    world.history.record("issue_recovery_code", code, lambda: httpx.Response(200))
    body = {"login": login_of(user_id), "password": PASSWORD, "otp": code}

    def sign_in(node: Node) -> httpx.Response:
        with node.client() as http:
            return http.post("/proxy/api/login", json=body)

    _race(world, "recover", code, [partial(sign_in, node) for node in world.nodes])


def take_role(world: World, number: int) -> None:
    """Gives a user a role that only some may have at a time, and takes it again."""
    mine = MEMBERS[::2] if threading.current_thread().name.endswith("5") else MEMBERS[1::2]
    user_id = mine[number % len(mine)]
    with world.administrator(world.node()) as http:
        world.history.record("join", user_id, partial(save_roles, http, user_id, GAME, LIMITED_ROLE))
        world.history.record("leave", user_id, partial(save_roles, http, user_id, GAME))


def disable(world: World, number: int) -> None:
    """Disables a user who was never disabled."""
    mine = DISABLED[::2] if threading.current_thread().name.endswith("7") else DISABLED[1::2]
    if number > len(mine):
        return
    user_id = mine[number - 1]
    with world.administrator(world.node()) as http:
        body = {"disabled": True}
        world.history.record("user_disabled", user_id, partial(http.patch, f"/users/{user_id}", json=body))


def remove_roots(world: World, number: int) -> None:
    """Takes the role of all administrators at once, then gives it back."""
    with world.administrator(world.nodes[0]) as first, world.administrator(world.nodes[1]) as second:
        removals = [
            partial(
                world.history.record, "remove_root", f"{number}:{user_id}", partial(save_roles, http, user_id, CENTRAL)
            )
            for user_id, http in zip(ROOTS, (first, second), strict=True)
        ]
        at_once(*removals)
        for user_id in ROOTS:
            save_roles(first, user_id, CENTRAL, "root").raise_for_status()


def save_roles(http: httpx.Client, user_id: str, application_id: int, *roles: str) -> httpx.Response:
    body = {"application_id": application_id, "roles": roles}
    return http.patch(f"/users/{user_id}/permissions", json=body)
