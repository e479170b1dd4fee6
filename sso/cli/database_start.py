"""Waits for a database that is not reachable yet, and migrates it."""

import time
from functools import partial

from sso.cli.child_work import run_in_child
from sso.cli.echo import echo
from sso.cli.progress import Progress
from sso.core.database_url import database_hosts
from sso.db.errors import Unavailable, Unreachable
from sso.db.migrate import is_current, migrate
from sso.db.standalone import CONNECT_S, fetch_value

RETRY_S = 0.5
REPEAT_S = 10.0  # the same reason is printed again after this time
LOCKED = "a table or row that another session uses, such as a backup; it tries again, and other nodes go on serving"


def migrate_database(dsn: str, wait_s: float, *, in_child: bool = False) -> None:
    """Migrates the database. Retries for ``wait_s`` while it is not reachable, and prints why.

    ``in_child`` migrates in a child process: Alembic takes 35 MB, which a service would keep.
    """
    deadline = time.monotonic() + wait_s
    waiting = _WaitingLines("waiting for the database at ")
    while True:
        remaining = max(0.0, deadline - time.monotonic())
        try:
            if wait_s:
                fetch_value(dsn, "SELECT 1", connect_s=min(CONNECT_S, max(1.0, remaining)))
            if is_current(dsn):
                return
            work = partial(_migrate, dsn)
            if in_child:
                run_in_child(work)
            else:
                work()
        except Unavailable as error:
            reason = _with_hosts(dsn, error)
            if time.monotonic() >= deadline:
                raise Unreachable(_failure(reason, wait_s)) from None
            waiting.show(reason)
        else:
            return
        time.sleep(min(RETRY_S, max(0.0, deadline - time.monotonic())))


def _migrate(dsn: str) -> None:
    waiting = _WaitingLines("the migration waits for ")
    with Progress("migrating the database") as progress:
        migrate(dsn, progress.count, lambda: waiting.show(LOCKED))


class _WaitingLines:
    def __init__(self, beginning: str) -> None:
        self._beginning = beginning
        self._reason = ""
        self._shown = 0.0

    def show(self, reason: str) -> None:
        if reason != self._reason or time.monotonic() - self._shown >= REPEAT_S:
            echo(self._beginning + reason, err=True)
            self._reason, self._shown = reason, time.monotonic()


def _with_hosts(dsn: str, error: Unavailable) -> str:
    """Returns the error with the hosts in front, which an Unreachable names itself."""
    return str(error) if isinstance(error, Unreachable) else f"{', '.join(map(str, database_hosts(dsn)))}: {error}"


def _failure(reason: str, wait_s: float) -> str:
    waited = f" within {wait_s:.0f} s" if wait_s else ""
    return f"the database cannot be reached{waited} ({reason}): check SSO_DATABASE_URL and that the database runs"
