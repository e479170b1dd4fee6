"""A code that is issued by the statement that counts the password and starts the session."""

from collections.abc import Mapping
from typing import Any

from sso.db.batch.skip_locked import SkipLockedBatch
from sso.db.transaction import Row


class CodeAtSignIn:
    """It is not issued if the client has changed, or if the user is banned there: the flow then goes on as usual."""

    def __init__(self, statement: SkipLockedBatch, code: str, values: Mapping[str, Any]) -> None:
        self.statement = statement
        self.values = values
        self.code = code
        self.is_issued = False

    def receive_row(self, row: Row) -> None:
        self.is_issued = row["is_issued"]
