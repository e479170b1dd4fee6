"""Errors of the database, by what the caller can do about them."""

from sso.core.errors import OperatorError


class DatabaseError(OperatorError):
    pass


class Unavailable(DatabaseError):
    """The database is unreachable, too busy or read-only: retry in a moment."""


class Unreachable(Unavailable):
    """No connection could be opened: the text names each host with the reason."""


class ReadOnly(Unavailable):
    """The server does not accept writes: it has become a standby. Nothing was written."""


class LockTimeout(Unavailable):
    """Another transaction holds a lock for too long. Nothing was written."""


class DeadlineExceeded(Unavailable):
    """The database did not answer in time. Whether the statement was executed is not known."""


class TransactionConflict(DatabaseError):
    """The transaction conflicted with another one and was rolled back: run it again."""


class UniqueViolation(DatabaseError):
    """A value that must be unique exists already; ``constraint`` names the constraint."""

    def __init__(self, constraint: str) -> None:
        super().__init__(constraint)
        self.constraint = constraint
