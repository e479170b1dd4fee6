"""Follows the change stream as server-sent events, without input or output of its own.

``follow`` is a generator like ``exchange``: it yields what its caller must do, and the events.
"""

import json
import re
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import httpx

from sso.client.call import ApiCall, Record, ServerAnswer, read_body
from sso.client.credentials import Credentials
from sso.client.errors import ClientError, UnexpectedResponse
from sso.client.exchange import PASSING, Send, Step, Wait, get_headers, read_answer

SILENCE_S = 45.0  # there is a heartbeat every 15 seconds
FIRST_PAUSE_S, MAX_PAUSE_S = 1.0, 30.0
MAX_ASKED_S = 60.0  # however long the service asks for
MAX_EVENT_BYTES = 8 << 20
END_OF_EVENT = re.compile(rb"\n\r?\n")
EVENT_STREAM = "text/event-stream"


@dataclass(frozen=True)
class OpenStream(Send):
    """Asks for the response without its body if it is a stream, and otherwise for all of it."""


@dataclass(frozen=True)
class ReadStream:
    """Asks for the next bytes, b"" at the end, however it comes about."""


Outcome: TypeAlias = httpx.Response | httpx.TransportError | bytes | None


FollowSteps: TypeAlias = Generator[Step | ReadStream | Record, Outcome, None]


def follow(credentials: Credentials | None, after: str, retries: int) -> FollowSteps:
    """Yields events for ever. ``reset`` is one: events after the cursor were deleted. Raises ClientError."""
    pause, was_renewed = FIRST_PAUSE_S, False
    while True:
        wait_s = pause
        try:
            headers = {"Accept": EVENT_STREAM}
            if credentials is not None:
                headers |= yield from get_headers(credentials, retries)
            call = ApiCall("GET", "/api/admin/changes", read_body, {"after": after} if after else {})
            outcome = yield OpenStream(call, headers)
            if isinstance(outcome, httpx.Response) and is_stream(outcome):
                was_renewed, events = False, EventParser()
                while isinstance(piece := (yield ReadStream()), bytes) and piece:
                    pause = wait_s = FIRST_PAUSE_S  # a quiet stream has only heartbeats
                    for event in events.feed(piece):
                        after = event["id"]
                        yield event
            elif isinstance(outcome, httpx.Response):
                answer = read_answer(outcome)
                if isinstance(answer, ServerAnswer):
                    raise UnexpectedResponse("GET /api/admin/changes: the response is no stream")
                if answer.status == 400 and after:
                    after = ""
                    yield Record(type="reset")
                    continue
                if answer.status == 401 and not was_renewed and credentials is not None and credentials.forget(headers):
                    was_renewed = True
                    continue
                if answer.status not in PASSING:
                    raise answer
                wait_s = min(float(answer.retry_after or pause), MAX_ASKED_S)
        except ClientError as error:
            if error.reason != "unavailable":
                raise
        yield Wait(wait_s)
        pause = min(2 * pause, MAX_PAUSE_S)


def is_stream(response: httpx.Response) -> bool:
    return response.status_code == 200 and response.headers.get("Content-Type", "").startswith(EVENT_STREAM)


class EventParser:
    """Collects bytes and returns complete events."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, piece: bytes) -> Iterator[Record]:
        frames = self._complete_frames(piece)
        if len(self._rest) > MAX_EVENT_BYTES:
            raise UnexpectedResponse("GET /api/admin/changes: an event is too large")
        for frame in frames:
            lines = (line.partition(b":") for line in frame.split(b"\n"))
            fields = {name: value.removeprefix(b" ") for name, _, value in lines}
            with suppress(ValueError, RecursionError):
                data = json.loads(fields.get(b"data", b""))
                if isinstance(data, dict) and fields.get(b"id"):
                    event = fields.get(b"event", b"").decode(errors="replace")
                    yield Record({"type": event, **data, "id": fields[b"id"].decode(errors="replace")})

    def _complete_frames(self, piece: bytes) -> list[bytes]:
        """Looks for an end only where it can be new, so that a large event in small pieces takes no more time."""
        start = max(len(self._rest) - 2, 0)
        self._rest += piece
        if not END_OF_EVENT.search(self._rest, start):
            return []
        *frames, rest = bytes(self._rest).replace(b"\r\n", b"\n").split(b"\n\n")
        self._rest = bytearray(rest)
        return frames
