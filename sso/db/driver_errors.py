"""Translates the errors of asyncpg into :mod:`sso.db.errors`."""

import socket
import ssl
from typing import NoReturn

import asyncpg

from sso.db.errors import DatabaseError, LockTimeout, ReadOnly, TransactionConflict, Unavailable, UniqueViolation

# All that a call of the driver may raise. An InternalClientError means that the connection was lost at a bad moment.
DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)

_CONFLICTS = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.ForeignKeyViolationError,  # another transaction has deleted the parent since the statement has read it
    # A migration may change the columns that a prepared statement returns. Outside a transaction, the driver prepares
    # it again; a transaction must begin again.
    asyncpg.InvalidCachedStatementError,
)
_UNAVAILABLE = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # shutdown, starting up, statement timeout
    asyncpg.InsufficientResourcesError,  # disk full, too many connections
    asyncpg.PostgresSystemError,  # I/O errors of the server
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InternalClientError,
    asyncpg.InterfaceError,
)

# Reasons why a host cannot be used, for messages that name the host first.
_REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (ConnectionRefusedError, "refuses connections"),
    (TimeoutError, "does not answer"),
    (socket.gaierror, "has no address"),
    (ssl.SSLCertVerificationError, "has a certificate that is not trusted"),
    (ssl.SSLError, "fails to negotiate TLS"),
    (ConnectionError, "closes the connection"),
    (OSError, "cannot be reached"),
    (asyncpg.TargetServerAttributeNotMatched, "is a standby or read-only"),
    (asyncpg.CannotConnectNowError, "is starting or stopping"),
    (asyncpg.AdminShutdownError, "is stopping"),
    (asyncpg.TooManyConnectionsError, "has no free connection"),
    (asyncpg.InvalidAuthorizationSpecificationError, "rejects the user or the password"),
    (asyncpg.InvalidCatalogNameError, "does not have the database"),
    (asyncpg.PostgresConnectionError, "closes the connection"),
)


def describe_failure(error: BaseException) -> str:
    """Returns a few words without values from the driver's message, which may quote a password."""
    return next((reason for kind, reason in _REASONS if isinstance(error, kind)), type(error).__name__)


def is_read_only(error: BaseException) -> bool:
    """Whether a server refused to write because it is a standby or its settings forbid it."""
    return isinstance(error, asyncpg.ReadOnlySQLTransactionError)


def _describe_conflict(error: BaseException) -> str:
    return " of ".join(filter(None, (type(error).__name__, getattr(error, "constraint_name", None))))


def raise_translated(error: BaseException) -> NoReturn:
    """Raises the DatabaseError for ``error``, or ``error`` itself. The driver's messages are dropped: they may quote
    values."""
    if isinstance(error, DatabaseError):
        raise error
    if isinstance(error, asyncpg.UniqueViolationError):
        raise UniqueViolation(str(error.constraint_name)) from None
    if isinstance(error, _CONFLICTS):
        raise TransactionConflict(_describe_conflict(error)) from None
    if isinstance(error, asyncpg.LockNotAvailableError):
        raise LockTimeout("another transaction holds a lock") from None
    if is_read_only(error):
        raise ReadOnly("the database is read-only") from None
    if isinstance(error, asyncpg.InsufficientPrivilegeError):  # the message has names of tables and the like only
        raise DatabaseError(f"{error.args[0]}: the account must own the database and all in it") from None
    if isinstance(error, _UNAVAILABLE) and not isinstance(error, asyncpg.DataError):
        raise Unavailable(describe_failure(error)) from None
    if isinstance(error, asyncpg.PostgresError):
        error.detail = error.hint = None  # they quote whole rows, and this error is logged
    raise error
