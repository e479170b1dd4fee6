"""Games and players. A game registers a session and polls; a player, signed in in a browser, confirms.

Clients repeat what a client may repeat: a request without an answer, or with 408, 502, 503 or 504.
"""

import random
import re
from html import unescape
from typing import Any

import httpx
import trio

from scripts.local_cluster.ledger import Ledger

PASSWORD = "a password to try"
GAME = "/proxy/api/gameSession"
POLL_S = 40.0  # longer than a poll is held
REQUEST_S = 10.0
PAUSE_S = 0.5  # before a request is repeated
UNAVAILABLE = (408, 502, 503, 504)  # 408: the proxy, about a connection that was opened and not used in time
_FORM = re.compile(r'<form method="post" action="(?P<action>[^"]+/continue)">(?P<fields>.*?)</form>', re.DOTALL)
_FIELD = re.compile(r'name="([^"]+)" value="([^"]*)"')
_CSRF = re.compile(r'name="csrf" value="([^"]+)"')


def login(user: int) -> str:
    return f"load{user}@example.com"


class Player:
    """A browser that is signed in."""

    def __init__(self, user: int, ledger: Ledger, base_url: str) -> None:
        self._user = user
        self._ledger = ledger
        self._http = httpx.AsyncClient(base_url=base_url, timeout=REQUEST_S, headers={"Origin": base_url})

    async def sign_in(self) -> None:
        page = await self._http.get("/login")
        csrf = _CSRF.search(page.text)
        assert csrf, page.text
        body = {"csrf": csrf[1], "login": login(self._user), "password": PASSWORD}
        answer = await self._http.post("/login", data=body)
        assert answer.status_code == 303, answer.text

    async def close(self) -> None:
        await self._http.aclose()

    async def redirect(self, path: str) -> str:
        """Returns the address to which the browser is sent."""
        response = await self._request("GET", path, follow=False)
        return str(response.headers.get("Location", ""))

    async def confirm(self, gsid: str) -> bool:
        """Returns whether the session was confirmed, by this attempt or by an earlier one without an answer."""
        attempted = False
        while True:
            page = await self._request("GET", f"/?gsid={gsid}")
            form = _FORM.search(page.text)
            if not form:
                return attempted
            fields = {name: unescape(value) for name, value in _FIELD.findall(form["fields"])}
            attempted = True
            answer = await self._request("POST", unescape(form["action"]), fields, repeat=False)
            if answer is not None and answer.status_code in (200, 303):
                return True

    async def _request(
        self, method: str, path: str, fields: Any = None, repeat: bool = True, follow: bool = True
    ) -> Any:
        options = {"data": fields, "follow_redirects": follow and method == "GET"}
        return await request(self._http, self._ledger, method, path, repeat=repeat, **options)


class Game:
    def __init__(self, http: httpx.AsyncClient, ledger: Ledger, confirm_after_s: float, check_after_s: float) -> None:
        self._http = http
        self._ledger = ledger
        self._confirm_after_s = confirm_after_s
        self._check_after_s = check_after_s

    async def log_in(self, user: int, player: Player) -> None:
        """A whole login. It is lost if the player has confirmed it and the game never gets it."""
        self._ledger.started += 1
        answer = await self._post("getGsid")
        if "gsid" not in answer:
            self._ledger.failures[f"getGsid {answer.get('error')}"] += 1
            return
        gsid = answer["gsid"]
        confirmed_at: list[float] = []

        async def confirm() -> None:
            await trio.sleep(self._confirm_after_s * random.uniform(0.5, 1.5))
            if await player.confirm(gsid):
                self._ledger.confirmed += 1
                confirmed_at.append(trio.current_time())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(confirm)
            with self._ledger.a_game_waits():
                result = await self._poll(gsid)
        if result["status"] == "OK":
            wake_up_s = trio.current_time() - confirmed_at[0] if confirmed_at else 0.0
            self._ledger.record_delivery(user, result["token"], max(0.0, wake_up_s))
            await trio.sleep(self._check_after_s)
            if problem := await self.problem_with(result["token"]):
                self._ledger.record_wrong(f"{gsid} of {login(user)}: {problem}")
        elif confirmed_at:
            self._ledger.lost.append(f"{gsid}: {result}")

    async def _poll(self, gsid: str) -> dict[str, Any]:
        while True:
            answer = await self._post("getGsidResult", gsid=gsid)
            if answer["status"] != "RETRY":
                return answer
            await trio.sleep(answer["delay"])

    async def _post(self, name: str, **fields: str) -> dict[str, Any]:
        response = await request(self._http, self._ledger, "POST", f"{GAME}/{name}", json=fields)
        body: dict[str, Any] = response.json()
        return body

    async def user_id(self, user: int) -> str:
        body = {"login": login(user), "password": PASSWORD, "nojwt": "1"}
        response = await request(self._http, self._ledger, "POST", "/proxy/api/login", json=body)
        return str(response.json()["user_id"])

    async def problem_with(self, token: str) -> str:
        """Returns how the service refuses a session token, or nothing if it accepts it."""
        answer = await request(
            self._http, self._ledger, "POST", "/proxy/api/login", json={"token": token, "nojwt": "1"}
        )
        return "" if answer.status_code == 200 else f"session token refused: {answer.status_code} {answer.text[:200]}"


def game_http(base_url: str) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=2000, max_keepalive_connections=50)
    return httpx.AsyncClient(base_url=base_url, timeout=POLL_S, limits=limits)


async def request(
    http: httpx.AsyncClient, ledger: Ledger, method: str, path: str, repeat: bool = True, **content: Any
) -> Any:
    """Returns the response. Repeats the request until there is one, or returns None if it must not be repeated."""
    while True:
        try:
            response = await http.request(method, path, **content)
            if response.status_code not in UNAVAILABLE:
                return response
            ledger.failures[str(response.status_code)] += 1
        except (httpx.NetworkError, httpx.TimeoutException, httpx.RemoteProtocolError) as error:
            ledger.failures[type(error).__name__] += 1
        if not repeat:
            return None
        await trio.sleep(PAUSE_S)
