"""The test program of ``sso.client`` on a game server: server_driver.py [--async] BASE_URL FOLDER.

The contract says what it reads and prints. With ``--async`` it does the same with the asynchronous clients.
"""

import json
import sys
import time
from contextlib import aclosing
from typing import Any

import trio

from sso.client import (
    AsyncPlayerVerifier,
    AsyncSsoClient,
    ClientError,
    PlayerRefused,
    PlayerVerifier,
    RuleQuestion,
    ServiceClient,
    SsoClient,
    WebhookRefused,
    read_webhook,
)

Command = dict[str, Any]


def show(**event: Any) -> None:
    print(json.dumps(event), flush=True)


def show_change(event: Command) -> int:
    """Returns how many changes this is."""
    if event["type"] == "reset":
        show(event="reset")
        return 0
    show(event="change", id=event["id"], type=event["type"])
    return 1


class Driver:
    def __init__(self, url: str) -> None:
        self._url = url
        self._sso = SsoClient(url)
        self._now: float | None = None
        self._verifier: PlayerVerifier | None = None

    def clock(self) -> float:
        return time.time() if self._now is None else self._now

    def credentials(self, command: Command) -> None:
        self._sso = SsoClient(self._url, ServiceClient(command["client_id"], command["client_secret"]))

    def verify(self, command: Command) -> None:
        self._now = command.get("now")
        self._verifier = self._verifier or PlayerVerifier(self._url, issuer=command.get("issuer"), clock=self.clock)
        player = self._verifier.verify(command["jwt"], command.get("factor"))
        show(event="verified", user_id=player.user_id, auth=player.auth)

    def check(self, command: Command) -> None:
        show(event="checked", answers=self._sso.check([RuleQuestion(**item) for item in command["questions"]]))

    def follow(self, command: Command) -> None:
        left = command["count"]
        for event in self._sso.changes(command["after"]):
            left -= show_change(event)
            if not left:
                break

    def webhook(self, command: Command) -> None:
        event = read_webhook(command["secret"], command["headers"], command["body"].encode(), command["now"])
        show(event="webhook", id=event["id"], type=event["type"])

    async def run(self, command: Command) -> None:
        getattr(self, command["do"])(command)


class AsyncDriver(Driver):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._async_sso = AsyncSsoClient(url)
        self._async_verifier: AsyncPlayerVerifier | None = None

    async def run(self, command: Command) -> None:
        match command["do"]:
            case "credentials":
                credentials = ServiceClient(command["client_id"], command["client_secret"])
                self._async_sso = AsyncSsoClient(self._url, credentials)
            case "verify":
                self._now = command.get("now")
                issuer = command.get("issuer")
                self._async_verifier = self._async_verifier or AsyncPlayerVerifier(
                    self._url, issuer=issuer, clock=self.clock
                )
                player = await self._async_verifier.verify(command["jwt"], command.get("factor"))
                show(event="verified", user_id=player.user_id, auth=player.auth)
            case "check":
                questions = [RuleQuestion(**item) for item in command["questions"]]
                show(event="checked", answers=await self._async_sso.check(questions))
            case "follow":
                left = command["count"]
                async with aclosing(self._async_sso.changes(command["after"])) as changes:
                    async for event in changes:
                        left -= show_change(event)
                        if not left:
                            break
            case "webhook":
                self.webhook(command)


async def main(*arguments: str) -> None:
    *options, url, _ = arguments
    driver = AsyncDriver(url) if options == ["--async"] else Driver(url)
    for line in sys.stdin:
        try:
            await driver.run(json.loads(line))
        except ClientError as error:
            show(event="failed", reason=error.reason)
        except (PlayerRefused, WebhookRefused) as error:
            show(event="refused", reason=error.reason)


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:])
