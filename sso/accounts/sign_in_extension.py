"""A sign-in with a password that has a further effect in the statement that starts the session."""

from collections.abc import Mapping
from typing import Any, Protocol

from sso.accounts.guarded_statements import guarded_by_user
from sso.accounts.login.rate_limit_store import SUCCESS_COLUMNS
from sso.accounts.session_statements import NEW_SESSION_COLUMNS, start_and_count
from sso.db.batch.skip_locked import SkipLockedBatch
from sso.db.database import Database
from sso.db.transaction import Row


class SignInExtension(Protocol):
    """A statement that starts a session after a correct password, like `start_and_count`, and has further effects."""

    @property
    def statement(self) -> SkipLockedBatch: ...

    @property
    def values(self) -> Mapping[str, Any]:
        """The values of its further columns."""

    def receive_row(self, row: Row) -> None: ...


def extended_sign_in(
    database: Database, name: str, ctes: str, result: str, columns: Mapping[str, str]
) -> SkipLockedBatch:
    """Returns the statement of an extension, see `start_and_count`. ``columns`` are those of ``ctes``."""
    all_columns = NEW_SESSION_COLUMNS | SUCCESS_COLUMNS | dict(columns)
    return guarded_by_user(database, name, start_and_count(ctes, result), all_columns)
