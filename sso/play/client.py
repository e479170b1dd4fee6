"""The requests of a game's sign-in: register a session, ask for its result, close it."""

import json
import math
import ssl
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import httpx
import trio

from sso.play.signing import SigningKey

PATH = "/proxy/api/gameSession"
HOLD_S = 45  # the service holds a poll for 30 seconds; whoever waits less never hears its answer
QUICK_S = 15
MAX_WAIT_S = 21 * 60  # no session lives longer than 20 minutes
AWAY_S = 60  # so long a service may be away, as when it is restarted: the session outlives that
AWAY_CODES = (502, 503, 504)
PAUSE_S = 1.0


class GameLoginError(Exception):
    """It came to nothing; one line that says why."""


@dataclass(frozen=True)
class GameSession:
    gsid: str
    link: str  # to open in a browser
    match: str  # two words that the game shows, and the page too
    location: str  # the secret part of the header Location, as a query


@dataclass(frozen=True)
class Answer:
    code: int
    body: dict[str, Any]
    headers: httpx.Headers

    @property
    def retry_after(self) -> float:
        text = self.headers.get("Retry-After", "")
        return float(text) if text.isdecimal() else PAUSE_S


class GameClient:
    def __init__(self, base_url: str, key: SigningKey | None = None) -> None:
        self.base_url = base_url.rstrip("/")
        self.key = key
        # The machine's own certificates, as its browser uses them.
        self._http = httpx.AsyncClient(verify=ssl.create_default_context())

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.__aexit__(kind, error, trace)

    async def register(self, **fields: str | int) -> GameSession:
        """Begin: whatever of getGsid's fields the game wants to send."""
        if self.key:
            fields["public_key"] = self.key.public
        try:
            answer = await self._post("getGsid", fields, QUICK_S)
        except httpx.TimeoutException:
            raise GameLoginError(f"{self.base_url} does not answer") from None
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise GameLoginError(f"{self.base_url} cannot be reached: {_reason(error)}") from None
        if answer.body.get("status") != "OK":
            raise GameLoginError(f"no session was registered: {_said(answer)}")
        gsid = answer.body["gsid"]
        location = urlsplit(answer.headers.get("Location", "")).query
        return GameSession(gsid, f"{self.base_url}/?gsid={gsid}", answer.body["match"], location)

    async def poll(self, session: GameSession) -> Answer:
        """One request, which the service answers when there is something to say, or after 30 seconds."""
        return await self._post("getGsidResult", {"gsid": session.gsid}, HOLD_S, session)

    async def close(self, session: GameSession, status: Literal["Success", "Error"]) -> None:
        """Tell the service how it ended. Nothing depends on it, so that a failure is none."""
        with trio.move_on_after(3):
            with suppress(httpx.TransportError, GameLoginError):
                await self._post("closeGsid", {"gsid": session.gsid, "status": status}, QUICK_S, session)

    async def _post(self, name: str, fields: Any, answer_s: float, session: GameSession | None = None) -> Answer:
        # A signature is over these very bytes: they are made once, and sent as they are.
        body = json.dumps(fields).encode()
        headers = {"Content-Type": "application/json"}
        url = f"{self.base_url}{PATH}/{name}"
        if session and self.key:
            headers["Request-Sign"] = self.key.sign(body)
        elif session and session.location:
            url += f"?{session.location}"  # without it the address would do, as long as it stays the same
        limits = httpx.Timeout(answer_s, connect=QUICK_S)
        response = await self._http.post(url, content=body, headers=headers, timeout=limits)
        return Answer(response.status_code, self._parsed(response), response.headers)

    def _parsed(self, response: httpx.Response) -> dict[str, Any]:
        try:
            body = response.json()
        except ValueError:
            body = None
        if response.status_code in AWAY_CODES and not isinstance(body, dict):  # of what stands before the service
            return {"status": "ERROR", "error": f"HTTP {response.status_code}"}
        if not isinstance(body, dict) or "status" not in body:
            raise GameLoginError(
                f"{self.base_url} is no sign-on service: it answers with HTTP {response.status_code}"
                + (f" and leads to {response.headers['Location']}" if response.is_redirect else "")
            )
        return body


class Waiting:
    """What the game does until it has a result. Override what the player shall see."""

    def asked_to_wait(self, seconds: int) -> None: ...

    def server_is_away(self) -> None: ...

    def socket_was_lost(self) -> None: ...


async def wait_for_result(client: GameClient, session: GameSession, waiting: Waiting) -> dict[str, Any]:
    """Poll by the client rules until somebody has signed in; their data. GameLoginError otherwise."""
    away_since = math.inf
    with trio.move_on_after(MAX_WAIT_S):
        while True:
            try:
                answer = await client.poll(session)
            except httpx.TimeoutException:
                continue  # rule 1: ask again, at once
            except httpx.TransportError as error:
                away_since = min(away_since, trio.current_time())
                if trio.current_time() - away_since > AWAY_S:
                    raise GameLoginError(f"the service has gone: {_reason(error)}") from None
                waiting.server_is_away()
                await trio.sleep(PAUSE_S)
                continue
            away_since = math.inf
            match answer.body["status"]:
                case "OK":
                    return answer.body
                case "RETRY":  # rule 2: not before the delay is over, 0 included
                    waiting.asked_to_wait(answer.body["delay"])
                    await trio.sleep(answer.body["delay"])
                case "CANCELLED":  # rule 4: our socket is gone; who did not mean that asks again, the session lives
                    waiting.socket_was_lost()
                case _ if answer.code in AWAY_CODES:  # it is the service that cannot, not the session that ended
                    waiting.server_is_away()
                    await trio.sleep(answer.retry_after)
                case _:  # rule 3: stop
                    raise GameLoginError(_said(answer))
    raise GameLoginError("nobody signed in within 20 minutes")


ENDS = {
    "session denied": "the sign-in was denied in the browser",
    "session closed": "the session was closed",
    "session expired": "nobody signed in in time: the session has expired",
}


def _said(answer: Answer) -> str:
    error = str(answer.body.get("error", f"HTTP {answer.code}"))
    if answer.code == 403:
        return f"the service refused it; its operator finds out why with: sso why {error}"
    return ENDS.get(error, error)


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
