"""The interface by which the writer passes effective changes on, in the transaction of the write."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from sso.db.transaction import Transaction
from sso.perm.changes.impact import PermissionChange


class ChangeRecorder(Protocol):
    async def record(
        self,
        tx: Transaction,
        changes: Sequence[PermissionChange],
        unevaluated: Mapping[int, int],
        touched: Mapping[int, Collection[str]],
    ) -> None:
        """Records the changes in the transaction that makes them.

        ``unevaluated`` has the applications at which more users may be affected than were evaluated, each with the
        number of these users. ``changes`` has no change at these applications. ``touched``: see `Impact`.
        """


class NoRecorder:
    """Records nothing."""

    async def record(
        self,
        tx: Transaction,
        changes: Sequence[PermissionChange],
        unevaluated: Mapping[int, int],
        touched: Mapping[int, Collection[str]],
    ) -> None:
        pass
