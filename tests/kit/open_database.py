"""Databases of tests that run in this process."""

from contextlib import AbstractAsyncContextManager
from typing import Any

from sso.db.database import Database
from sso.db.time_limits import TimeLimits
from tests.kit.server import SLOW_MACHINE_S


def open_database(dsn: str, pool_size: int, **options: Any) -> AbstractAsyncContextManager[Database]:
    """Opens a pool whose calls do not fail on a machine that stalls for a moment."""
    return Database.open(dsn, pool_size, limits=TimeLimits.scaled(SLOW_MACHINE_S), **options)
