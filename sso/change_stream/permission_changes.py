"""Records changes of effective permissions, which the writer of permissions has computed."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from sso.change_stream.events import Change, ChangeType, record_changes
from sso.db.transaction import Transaction


class EffectiveChange(Protocol):
    """The permissions that one user gains and loses at one application."""

    @property
    def user_id(self) -> str: ...

    @property
    def application_id(self) -> int: ...

    @property
    def gained(self) -> Sequence[str]: ...

    @property
    def lost(self) -> Sequence[str]: ...


class PermissionChangeRecorder:
    async def record(self, tx: Transaction, changes: Sequence[EffectiveChange], unevaluated: Mapping[int, int]) -> None:
        """Records an event for each change, and one for each application of ``unevaluated``.

        These are the applications at which too many users may be affected to list them, with their number.
        """
        summaries = [
            Change(ChangeType.APPLICATION_CHANGED, application_id=application_id, data={"users": users})
            for application_id, users in sorted(unevaluated.items())
        ]
        await record_changes(tx, [*map(_permission_change, changes), *summaries])


def _permission_change(change: EffectiveChange) -> Change:
    data = {"gained": list(change.gained), "lost": list(change.lost)}
    return Change(ChangeType.PERMISSIONS_CHANGED, change.user_id, change.application_id, data)
