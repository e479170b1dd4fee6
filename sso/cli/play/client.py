"""The requests of a game login: register a session, poll for its result, close it."""

import json
import math
import re
import secrets
import ssl
import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import httpx
import trio
from msgspec import Struct

from sso.cli.play.guest_key import GuestKey
from sso.cli.play.signing import SigningKey

PATH = "/proxy/api/gameSession"
GUEST = "/proxy/api/guest"
POLL_TIMEOUT_S = 45  # longer than the 30 seconds for which the service holds a poll
REQUEST_TIMEOUT_S = 15
MAX_WAIT_S = 21 * 60  # no session lives longer than 20 minutes
MAX_OUTAGE_S = 60  # a session outlives a restart of the service
OUTAGE_CODES = (429, 502, 503, 504)  # the session continues
RETRY_S = 1.0
MAX_RESPONSE_BYTES = 1 << 20
RECORD_ID = re.compile(r"[0-9a-f]+")  # of a refused request; other errors are texts


class GameLoginError(Exception):
    """The login failed; the message is one line with the reason."""


class GameSession(Struct, frozen=True):
    gsid: str
    link: str  # for the browser
    match: str  # two words that both the game and the page show
    location: str  # the secret part of the header Location, as a query


class Answer(Struct, frozen=True):
    code: int
    body: dict[str, Any]
    headers: httpx.Headers

    @property
    def retry_after(self) -> float:
        text = self.headers.get("Retry-After", "")
        return float(text) if text.isdecimal() else RETRY_S


class GameClient:
    def __init__(self, base_url: str, key: SigningKey | None = None) -> None:
        self.base_url = base_url.rstrip("/")
        self.key = key
        # Trust the certificates of the machine, like its browsers.
        self._http = httpx.AsyncClient(verify=ssl.create_default_context())

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.__aexit__(kind, error, trace)

    async def sign_in_guest(self, key: GuestKey, fields: dict[str, str | int]) -> dict[str, Any]:
        """Returns the login data of the guest of the key. The first request with a key creates the guest."""
        proof = {"public_key": key.public, "ts": int(time.time()), "nonce": secrets.token_urlsafe(24)}
        body = json.dumps({**fields, **proof}).encode()
        answer = await self._first_answer(f"{self.base_url}{GUEST}", body, {"Request-Sign": key.sign(body)})
        if answer.code == 404:
            raise GameLoginError("the service has no guests: its operator turns them on with SSO_GUESTS=on")
        if answer.body.get("status") != "OK":
            raise GameLoginError(f"the guest was not signed in: {_error_text(answer)}")
        return answer.body

    async def register(self, guest_jwt: str = "", **fields: str | int) -> GameSession:
        """Registers a session with the given fields of getGsid.

        With the user JWT of a guest, the player keeps what the guest has.
        """
        if self.key:
            fields["public_key"] = self.key.public
        headers = {}
        if guest_jwt:
            fields["link"] = "1"
            headers = {"Authorization": f"Bearer {guest_jwt}", "Factor": str(fields["factor"])}
        answer = await self._first_answer(f"{self.base_url}{PATH}/getGsid", json.dumps(fields).encode(), headers)
        if answer.body.get("status") != "OK":
            raise GameLoginError(f"the session was not registered: {_error_text(answer)}")
        gsid = answer.body["gsid"]
        location = urlsplit(answer.headers.get("Location", "")).query
        return GameSession(gsid, f"{self.base_url}/?gsid={gsid}", answer.body["match"], location)

    async def poll(self, session: GameSession) -> Answer:
        """Sends one poll, which the service answers when there is a result, or after 30 seconds."""
        return await self._post("getGsidResult", {"gsid": session.gsid}, POLL_TIMEOUT_S, session)

    async def close(self, session: GameSession, status: Literal["Success", "Error"]) -> None:
        """Reports the end of the login to the service. Ignores failures, because nothing depends on it."""
        with trio.move_on_after(3):
            with suppress(httpx.TransportError, GameLoginError):
                await self._post("closeGsid", {"gsid": session.gsid, "status": status}, REQUEST_TIMEOUT_S, session)

    async def _first_answer(self, url: str, body: bytes, headers: dict[str, str]) -> Answer:
        """Sends the first request to the service, which may be no service at all."""
        try:
            return await self._send(url, body, headers, REQUEST_TIMEOUT_S)
        except httpx.TimeoutException:
            raise GameLoginError(f"{self.base_url} does not respond") from None
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise GameLoginError(f"{self.base_url} cannot be reached: {_reason(error)}") from None

    async def _post(self, name: str, fields: Any, timeout_s: float, session: GameSession) -> Answer:
        # The signature covers exactly these bytes.
        body = json.dumps(fields).encode()
        headers = {}
        url = f"{self.base_url}{PATH}/{name}"
        if self.key:
            headers["Request-Sign"] = self.key.sign(body)
        elif session.location:
            url += f"?{session.location}"  # proves the session even if the client's address changes
        return await self._send(url, body, headers, timeout_s)

    async def _send(self, url: str, body: bytes, more_headers: dict[str, str], timeout_s: float) -> Answer:
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", **more_headers}
        limits = httpx.Timeout(timeout_s, connect=REQUEST_TIMEOUT_S)
        async with self._http.stream("POST", url, content=body, headers=headers, timeout=limits) as response:
            content = bytearray()
            async for piece in response.aiter_raw():
                content += piece
                if len(content) > MAX_RESPONSE_BYTES:
                    raise GameLoginError(f"{self.base_url} sent a response of more than {MAX_RESPONSE_BYTES} bytes")
        return Answer(response.status_code, self._parse(response, bytes(content)), response.headers)

    def _parse(self, response: httpx.Response, content: bytes) -> dict[str, Any]:
        try:
            body = json.loads(content)
        except ValueError:
            body = None
        if response.status_code in OUTAGE_CODES and not isinstance(body, dict):  # from a proxy before the service
            return {"status": "ERROR", "error": f"HTTP {response.status_code}"}
        if not isinstance(body, dict) or "status" not in body:
            raise GameLoginError(
                f"{self.base_url} is not a sign-on service: it responded with HTTP {response.status_code}"
                + (f" and a redirect to {response.headers['Location']}" if response.is_redirect else "")
            )
        return body


class PollCallbacks:
    """Callbacks while the game waits for a result; a user interface overrides them."""

    def on_delay(self, seconds: int) -> None: ...

    def on_outage(self) -> None: ...

    def on_cancelled(self) -> None: ...


async def wait_for_result(client: GameClient, session: GameSession, callbacks: PollCallbacks) -> dict[str, Any]:
    """Polls by the client rules of the interface. Returns the login data or raises GameLoginError."""
    outage_since = math.inf
    with trio.move_on_after(MAX_WAIT_S):
        while True:
            try:
                answer = await client.poll(session)
            except httpx.TimeoutException:
                continue  # rule 1: poll again at once
            except httpx.TransportError as error:
                outage_since = min(outage_since, trio.current_time())
                if trio.current_time() - outage_since > MAX_OUTAGE_S:
                    raise GameLoginError(f"the service is not available: {_reason(error)}") from None
                callbacks.on_outage()
                await trio.sleep(RETRY_S)
                continue
            outage_since = math.inf
            match answer.body["status"]:
                case "OK":
                    return answer.body
                case "RETRY":  # rule 2: wait for the delay, even if it is 0
                    callbacks.on_delay(answer.body["delay"])
                    await trio.sleep(answer.body["delay"])
                case "CANCELLED":  # rule 4: the WebSocket was lost, but the session continues
                    callbacks.on_cancelled()
                case _ if answer.code in OUTAGE_CODES:  # the service is unavailable or busy; the session continues
                    callbacks.on_outage()
                    await trio.sleep(answer.retry_after)
                case _:  # rule 3: stop
                    raise GameLoginError(_error_text(answer))
    raise GameLoginError("no user signed in within 20 minutes")


END_TEXTS = {
    "session denied": "the sign-in was denied in the browser",
    "session closed": "the session was closed",
    "session expired": "no user signed in in time: the session has expired",
}


def _error_text(answer: Answer) -> str:
    error = str(answer.body.get("error", f"HTTP {answer.code}"))
    if isinstance(ban := answer.body.get("ban"), dict):
        return f"the player is banned: {ban.get('reason') or 'no reason is given'}"
    if "reason" in answer.body:  # a service of scripts/run explains the record
        return f"the service refused the request: {answer.body['reason']}"
    if answer.code == 403 and RECORD_ID.fullmatch(error):
        return f"the service refused the request; its operator can look up the reason: sso why {error}"
    return END_TEXTS.get(error, error)


def _reason(error: BaseException) -> str:
    """Returns the text of the error, or of its first cause that has one: httpx and Trio wrap TLS errors in others."""
    texts: list[str] = []
    link: BaseException | None = error
    while link is not None:
        texts.append(str(link))
        link = link.__cause__ or link.__context__
    return next((text for text in texts if text), type(error).__name__)
