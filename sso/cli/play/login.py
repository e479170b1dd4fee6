"""The complete game login: register, show the link, wait, close."""

import signal
from collections.abc import Callable
from typing import Any

import trio
from msgspec import Struct, field

from sso.cli.play.client import GameClient, GameLoginError, GameSession, wait_for_result
from sso.cli.play.guest_key import GuestKey
from sso.cli.play.screen import Screen
from sso.cli.play.signing import SigningKey
from sso.cli.play.socket import follow


class Interrupted(Exception):
    """The user pressed Ctrl-C."""


class GameLoginOptions(Struct, frozen=True):
    base_url: str
    ws_url: str
    key: SigningKey | None = None
    guest_key: GuestKey | None = None
    socket: bool = True
    qr: bool = False
    fields: dict[str, str | int] = field(default_factory=dict)
    open: Callable[[str], object] = lambda _link: None


async def log_in_guest(options: GameLoginOptions) -> dict[str, Any]:
    """Returns the login data of the guest. Raises GameLoginError."""
    assert options.guest_key is not None
    async with GameClient(options.base_url) as client:
        return await client.sign_in_guest(options.guest_key, options.fields)


async def log_in(options: GameLoginOptions, screen: Screen) -> dict[str, Any]:
    """Returns the login data. Raises GameLoginError or Interrupted."""
    async with GameClient(options.base_url, options.key) as client:
        guest = await client.sign_in_guest(options.guest_key, options.fields) if options.guest_key else {}
        session = await client.register(guest.get("jwt", ""), **options.fields)
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            screen.invite(session, qr=options.qr)
            options.open(session.link)
            outcome = await _wait(client, session, options, screen, signals)
            screen.clear()
            # Report a success; after Ctrl-C, make the link unusable.
            with trio.CancelScope(shield=True):
                await client.close(session, "Success" if isinstance(outcome, dict) else "Error")
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


async def _wait(
    client: GameClient, session: GameSession, options: GameLoginOptions, screen: Screen, signals: Any
) -> dict[str, Any] | Exception:
    """Returns the login data or the error. An error is returned because a nursery would wrap it in a group."""
    outcome: dict[str, Any] | Exception = Interrupted()

    async def cancel_on_signal() -> None:
        async for _ in signals:
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(cancel_on_signal)
        nursery.start_soon(screen.tick)
        if options.socket:
            nursery.start_soon(follow, client, session, options.ws_url, screen.stage)
        try:
            outcome = await wait_for_result(client, session, screen)
        except GameLoginError as error:
            outcome = error
        nursery.cancel_scope.cancel()
    return outcome
