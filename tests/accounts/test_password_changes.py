"""One of several concurrent password changes succeeds; those based on the old state of the user fail."""

import asyncio
import threading

import asyncpg

from sso.core.ids import digest
from tests.kit.browser import Browser, fresh_browser, new_user, query
from tests.kit.builders import PASSWORD
from tests.kit.server import Server, until

OWNERS, THIEFS = "the owner's new one", "the thief's new one"
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


class LockedRow:
    """A counter that a transaction in another thread locks until it is released."""

    def __init__(self, server: Server, key: bytes) -> None:
        self._dsn = server.settings["SSO_DATABASE_URL"]
        self._key = key
        self._locked, self._release = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._hold()))

    def __enter__(self) -> "LockedRow":
        self._thread.start()
        assert self._locked.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._release.set()
        self._thread.join()

    async def _hold(self) -> None:
        connection = await asyncpg.connect(self._dsn)
        async with connection.transaction():
            assert await connection.fetch("SELECT FROM throttle WHERE key = $1 FOR UPDATE", self._key)
            self._locked.set()
            await asyncio.to_thread(self._release.wait, 30)
        await connection.close()


def change(browser: Browser, new: str) -> int:
    fields = {"current_password": PASSWORD, "new_password": new, "repeat_password": new}
    return browser.submit("/account/password", **fields).status_code


def test_delayed_password_change_does_not_undo_a_newer_one(server: Server) -> None:
    login = new_user(server)
    with fresh_browser(server, login) as thief, fresh_browser(server, login) as owner:
        thief.open_account()
        thief.submit("/account/password", current_password="wrong", new_password=THIEFS, repeat_password=THIEFS)
        ((session_id,),) = query(
            server, "SELECT id FROM browser_sessions WHERE digest = $1", digest(thief.cookie() or "")
        )
        answers: list[int] = []
        late = threading.Thread(target=lambda: answers.append(change(thief, THIEFS)))
        with LockedRow(server, digest(f"device:{login}:session {session_id}")):
            late.start()
            until(
                lambda: query(server, WAITING)[0][0]
            )  # the old password was correct; its success is waiting to be counted
            owner.open_account()
            assert change(owner, OWNERS) == 303
        late.join()
        assert not thief.is_signed_in
        assert owner.is_signed_in
    with Browser(server) as browser:
        assert browser.sign_in(login, THIEFS).status_code == 401
        assert browser.sign_in(login, OWNERS).status_code == 303
