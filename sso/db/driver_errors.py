"""Translates the errors of asyncpg into those of :mod:`sso.db.errors`."""

from typing import NoReturn

import asyncpg

from sso.db.errors import TransactionConflict, Unavailable, UniqueViolation

# All that a call of the driver may raise. An InternalClientError means that the connection was lost at a bad moment.
DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)

_CONFLICTS = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
_UNAVAILABLE = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # shutdown, starting up, statement timeout
    asyncpg.InsufficientResourcesError,  # disk full, too many connections
    asyncpg.PostgresSystemError,  # I/O errors of the server
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.LockNotAvailableError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InternalClientError,
    asyncpg.InterfaceError,
)


def raise_translated(error: BaseException) -> NoReturn:
    """Raises the DatabaseError for ``error``, or ``error`` itself. The driver's messages are dropped: they may quote
    values."""
    if isinstance(error, asyncpg.UniqueViolationError):
        raise UniqueViolation(str(error.constraint_name)) from None
    if isinstance(error, _CONFLICTS):
        raise TransactionConflict(type(error).__name__) from None
    if isinstance(error, _UNAVAILABLE) and not isinstance(error, asyncpg.DataError):
        raise Unavailable(type(error).__name__) from None
    if isinstance(error, asyncpg.PostgresError):
        error.detail = error.hint = None  # they quote whole rows, and this error is logged
    raise error
