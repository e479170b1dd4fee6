"""How long calls of the database may take.

PostgreSQL ends a slow statement shortly before our own deadline, so that its outcome is known.
"""

from msgspec import Struct
from msgspec.structs import replace

COMMAND_CONNECT_S = 10.0  # for a new connection of a command
COMMAND_S = 70.0  # for a transaction of a command
LOCK_WAIT_S = 0.4  # how long a contended transaction waits for a lock before it gives its connection back


class TimeLimits(Struct, frozen=True):
    connect_s: float  # for a new connection to a host
    queue_s: float  # for the wait for a free connection
    statement_s: float  # for a single statement, with the wait for a connection
    transaction_s: float  # for a transaction that has a connection

    @classmethod
    def scaled(cls, statement_s: float) -> "TimeLimits":
        """Returns limits in fixed proportions. Transactions have more time, since they wait for each other's locks."""
        return cls(
            connect_s=0.75 * statement_s,
            queue_s=0.75 * statement_s,
            statement_s=statement_s,
            transaction_s=2.5 * statement_s,
        )

    @classmethod
    def of_command(cls, statement_s: float) -> "TimeLimits":
        """Returns limits for commands, for which no request waits: on a busy machine they take their time."""
        limits = cls.scaled(statement_s)
        return replace(
            limits,
            connect_s=max(COMMAND_CONNECT_S, limits.connect_s),
            transaction_s=max(COMMAND_S, limits.transaction_s),
        )

    @property
    def session_sql(self) -> list[str]:
        """The statements that set the limits of a new connection."""
        return [
            f"SET statement_timeout = {_milliseconds(0.9 * self.statement_s)}",
            f"SET lock_timeout = {_milliseconds(0.75 * self.statement_s)}",
            f"SET idle_in_transaction_session_timeout = {_milliseconds(2 * self.transaction_s)}",
        ]

    @property
    def begin_sql(self) -> str:
        """The SQL that begins a transaction with its limits."""
        return self._begin(0.6 * self.transaction_s)

    @property
    def begin_contended_sql(self) -> str:
        """Like `begin_sql`, for a transaction that does not keep its connection while it waits for locks."""
        return self._begin(LOCK_WAIT_S)

    def _begin(self, lock_s: float) -> str:
        return (
            f"BEGIN;SET LOCAL statement_timeout = {_milliseconds(0.9 * self.transaction_s)}"
            f";SET LOCAL lock_timeout = {_milliseconds(lock_s)}"
        )


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


USUAL = TimeLimits.scaled(2.0)
