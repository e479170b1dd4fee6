"""The whole sign-in: register, show, wait, close."""

import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import trio

from sso.play.client import GameClient, GameLoginError, GameSession, wait_for_result
from sso.play.screen import Screen
from sso.play.signing import SigningKey
from sso.play.socket import follow


class Interrupted(Exception):
    """By Ctrl-C."""


@dataclass(frozen=True)
class GameLoginOptions:
    base_url: str
    ws_url: str
    key: SigningKey | None = None
    socket: bool = True
    qr: bool = False
    fields: dict[str, str | int] = field(default_factory=dict)
    open: Callable[[str], object] = lambda _link: None


async def log_in(wish: GameLoginOptions, screen: Screen) -> dict[str, Any]:
    """What the service says of who signed in. GameLoginError, or Interrupted."""
    async with GameClient(wish.base_url, wish.key) as client:
        session = await client.register(**wish.fields)
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            screen.invite(session, qr=wish.qr)
            wish.open(session.link)
            outcome = await _wait(client, session, wish, screen, signals)
            screen.clear()
            # After a success for the service's books; after a Ctrl-C so that nobody signs in to a game that has gone.
            with trio.CancelScope(shield=True):
                await client.close(session, "Success" if isinstance(outcome, dict) else "Error")
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


async def _wait(
    client: GameClient, session: GameSession, wish: GameLoginOptions, screen: Screen, signals: Any
) -> dict[str, Any] | Exception:
    """An end of any kind is a value: what passes through a nursery arrives wrapped."""
    outcome: dict[str, Any] | Exception = Interrupted()

    async def leave_on_signal() -> None:
        async for _ in signals:
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(leave_on_signal)
        nursery.start_soon(screen.tick)
        if wish.socket:
            nursery.start_soon(follow, client, session, wish.ws_url, screen.stage)
        try:
            outcome = await wait_for_result(client, session, screen)
        except GameLoginError as error:
            outcome = error
        nursery.cancel_scope.cancel()
    return outcome
