"""Measures the clock of the database (`sso/db/clock.py`)."""

import structlog
import trio

from sso.db.clock import DatabaseClock
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.statement import Statement
from sso.db.transaction import Transaction

INTERVAL_S = 60.0
SAMPLES = 3  # per measurement; the one with the shortest round trip counts
LARGE_OFFSET_S = 1.0  # the host's clock differs so much that a warning is due

_TIME = Statement("SELECT CAST(extract(epoch FROM clock_timestamp()) AS float)")
log = structlog.get_logger()


async def measure_clock(database: Database, samples: int = SAMPLES) -> None:
    measured = await database.transaction(_take_samples, database.clock, samples)
    database.clock.record(*min(measured, key=lambda sample: sample[2] - sample[0]))


async def _take_samples(tx: Transaction, clock: DatabaseClock, count: int) -> list[tuple[float, float, float]]:
    """Runs next to the connection, so that a sample does not include the wait for it."""
    return [(clock.steady(), await tx.value(_TIME), clock.steady()) for _ in range(count)]


async def run(database: Database, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Measures again every minute, and logs a warning when the host's clock begins to be far off."""
    task_status.started()
    was_far_off = False
    while True:
        offset = database.clock.host_offset()
        is_far_off = abs(offset) > LARGE_OFFSET_S
        if is_far_off and not was_far_off:
            log.warning("clock.host_drifted", seconds=round(offset, 1))
        was_far_off = is_far_off
        await trio.sleep(INTERVAL_S)
        try:
            await measure_clock(database)
        except DatabaseError as error:
            log.warning("clock.measurement_failed", reason=str(error))
