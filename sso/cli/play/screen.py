"""The terminal output: the link, the match code, a status line, and the result."""

import io
import json
import sys
import time
from datetime import datetime
from typing import Any, TextIO

import segno
import trio

from sso.cli.play.client import GameSession, PollCallbacks

SECRETS = ("token", "stoken", "jwt")
SHOWN_CHARACTERS = 8  # of a secret
STAGES = {
    "": "waiting for the browser",
    "opened": "the page is open",
    "signing_in": "signing in",
    "second_factor": "second factor",
    "confirmed": "confirmed",
    "denied": "denied",
}

LINKED = {
    "upgraded": "The guest is this account now.",
    "merged": "The guest was merged into this account.",
}


class Screen(PollCallbacks):
    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._live = out.isatty()
        self._began = time.monotonic()
        self._status = ""

    def invite(self, session: GameSession, *, qr: bool) -> None:
        if qr:
            self._say(_qr(session.link, self._out.encoding))
        self._say("Open this link in a browser and sign in:")
        self._say(f"\n    {_clean(session.link)}\n")
        self._say("The page must show these words:")
        self._say(f"\n    {self._bold(session.match)}\n")
        self.stage("")

    def stage(self, name: str) -> None:
        self._show(STAGES.get(name) or name)

    def on_delay(self, seconds: int) -> None:
        if seconds:
            self._show(f"the service is busy, polling again in {seconds} s")

    def on_outage(self) -> None:
        self._show("the service is not available, trying again")

    def on_cancelled(self) -> None:
        self._show("the connection was lost, trying again")

    async def tick(self) -> None:
        """Updates the clock of the status line on a terminal."""
        while self._live:
            self._draw()
            await trio.sleep(1)

    def clear(self) -> None:
        if self._live:
            self._write("\r\x1b[K")
        self._status = ""

    def result(self, data: dict[str, Any]) -> None:
        self.clear()
        kind = "guest" if data.get("guest") else "user"
        self._say(f"Signed in as {self._bold(data.get('nick'))}, {kind} {_clean(data.get('user_id'))}.")
        if data.get("linked"):
            self._say(LINKED.get(data["linked"], _clean(data["linked"])))
        for name in SECRETS:
            if data.get(name):
                life = f"  {_life(data)}" if name == "token" else ""
                self._say(f"  {name:<12}{_clean(data[name])[:SHOWN_CHARACTERS]}…{life}")
        for application, rules in (data.get("permissions") or {}).items():
            held = ", ".join(map(_clean, rules)) or "no permissions"
            self._say(f"  {'application':<12}{_clean(application)}: {held}")

    def _show(self, status: str) -> None:
        status = _clean(status)
        if status == self._status:
            return
        self._status = status
        if self._live:
            self._draw()
        else:
            self._say(status)

    def _draw(self) -> None:
        if self._status:
            seconds = int(time.monotonic() - self._began)
            self._write(f"\r\x1b[K{seconds // 60}:{seconds % 60:02}  {self._status} … (Ctrl-C to leave)")

    def _bold(self, value: object) -> str:
        return f"\x1b[1m{_clean(value)}\x1b[0m" if self._live else _clean(value)

    def _say(self, text: str) -> None:
        self._write(f"{text}\n")

    def _write(self, text: str) -> None:
        """Replaces characters that the terminal cannot show."""
        self._out.write(text.encode(self._out.encoding, "replace").decode(self._out.encoding))
        self._out.flush()


def print_line(text: str) -> None:
    print(_clean(text), flush=True)


def print_json(data: dict[str, Any]) -> None:
    json.dump(data, sys.stdout, indent=2)
    print(flush=True)


def _life(data: dict[str, Any]) -> str:
    seconds = int(data["token_exp"])
    until = datetime.fromtimestamp(time.time() + seconds).astimezone()
    return f"valid for {_length(seconds)}, until {until:%Y-%m-%d %H:%M}"


def _length(seconds: int) -> str:
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} seconds"


def _qr(link: str, encoding: str) -> str:
    drawn = io.StringIO()
    segno.make(link, error="l").terminal(out=drawn, border=2, compact=True)
    try:
        drawn.getvalue().encode(encoding)
    except UnicodeEncodeError:
        return ""
    return drawn.getvalue()


def _clean(value: object) -> str:
    """Replaces control characters, so that received text cannot control the terminal."""
    return "".join(c if c.isprintable() else "?" for c in str(value))
