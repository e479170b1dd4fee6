"""Clients that note when the service answered: one write every 100 ms, and polls that are held.

Runs where the clients are, until its standard input is closed, and prints what it noted as JSON.
"""

import json
import sys
import time
from dataclasses import asdict, dataclass, field

import httpx
import trio

from scripts.local_cluster.clients import GAME, game_http
from scripts.local_cluster.layout import BASE_URL

WRITE_INTERVAL_S = 0.1
POLLS = 60
REPEAT_S = 0.05
HELD_S = 1.0  # a poll without an answer for this long is held


@dataclass
class Notes:
    """Times are those of the monotonic clock, which all processes of a host share."""

    writes: list[tuple[float, float]] = field(default_factory=list)  # start and end of each successful write
    errors: list[tuple[float, str]] = field(default_factory=list)  # of writes
    polls_broken: list[float] = field(default_factory=list)
    polls_held_again: list[float] = field(default_factory=list)


class Probe:
    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self.notes = Notes()

    async def run(self, stop: trio.Event) -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(POLLS):
                nursery.start_soon(self._hold_poll)
            nursery.start_soon(self._write, nursery)
            await stop.wait()
            nursery.cancel_scope.cancel()

    async def _write(self, nursery: trio.Nursery) -> None:
        while True:
            nursery.start_soon(self._write_once)
            await trio.sleep(WRITE_INTERVAL_S)

    async def _write_once(self) -> None:
        began = time.monotonic()
        try:
            response = await self._http.post(f"{GAME}/getGsid", json={})
        except httpx.TransportError as error:
            self.notes.errors.append((time.monotonic(), type(error).__name__))
            return
        if response.status_code == 200:
            self.notes.writes.append((began, time.monotonic()))
        else:
            self.notes.errors.append((time.monotonic(), str(response.status_code)))

    async def _hold_poll(self) -> None:
        """Holds a poll. One that breaks is repeated until it is held again."""
        gsid = await self._register()
        broken = False
        while True:
            began = time.monotonic()
            with trio.move_on_after(HELD_S) if broken else trio.CancelScope() as waiting:
                answered = await self._poll(gsid)
            if waiting.cancelled_caught:  # it was held; the next one stays open
                self.notes.polls_held_again.append(began)
                broken = False
            elif not answered:
                if not broken:
                    self.notes.polls_broken.append(time.monotonic())
                broken = True
                await trio.sleep(REPEAT_S)

    async def _register(self) -> str:
        while True:
            try:
                return str((await self._http.post(f"{GAME}/getGsid", json={})).json()["gsid"])
            except (httpx.TransportError, ValueError, KeyError):
                await trio.sleep(REPEAT_S)

    async def _poll(self, gsid: str) -> bool:
        """Returns whether the service answered, for example that the client may poll again."""
        try:
            response = await self._http.post(f"{GAME}/getGsidResult", json={"gsid": gsid})
        except httpx.TransportError:
            return False
        return response.status_code == 200


async def main() -> None:
    stop = trio.Event()
    async with game_http(BASE_URL) as http, trio.open_nursery() as nursery:
        probe = Probe(http)
        nursery.start_soon(probe.run, stop)
        await trio.to_thread.run_sync(sys.stdin.read)
        stop.set()
    print(json.dumps(asdict(probe.notes)))


if __name__ == "__main__":
    trio.run(main)
