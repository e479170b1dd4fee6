"""Records changes of effective permissions, which the writer of permissions has computed."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from sso.change_stream.events import Change, ChangeType, record_changes
from sso.change_stream.store import FACTS_CHANGED
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

    @property
    def size(self) -> int: ...


MAX_LISTED_USERS = 10_000  # whose facts change; for more of them there is one event
# Of the rules of one event, in characters. An event has less than a megabyte, which all receivers take.
MAX_EVENT_SIZE = 200_000


class PermissionChangeRecorder:
    async def record(
        self,
        tx: Transaction,
        changes: Sequence[EffectiveChange],
        unevaluated: Mapping[int, int],
        touched: Mapping[int, Collection[str]],
    ) -> None:
        """Records an event for each change, and one for each application of ``unevaluated``.

        These are the applications at which too many users may be affected to list them, with their number. The changes
        that are too long for an event are counted there as well. ``touched`` is for replicas: the users whose facts may
        have changed all the same, by application.
        """
        too_long = [change for change in changes if change.size > MAX_EVENT_SIZE]
        counts = {**Counter(change.application_id for change in too_long), **unevaluated}
        summaries = [
            Change(ChangeType.APPLICATION_CHANGED, application_id=application_id, data={"users": users})
            for application_id, users in sorted(counts.items())
        ]
        listed = [_permission_change(change) for change in changes if change.size <= MAX_EVENT_SIZE]
        effective = [*listed, *summaries]
        reported = {change.application_id for change in effective}
        if too_long:
            touched = _with_users(touched, too_long)
        await record_changes(tx, [*effective, *_facts_changes(touched, reported)])


def _with_users(
    touched: Mapping[int, Collection[str]], changes: Sequence[EffectiveChange]
) -> Mapping[int, Collection[str]]:
    users = {application_id: set(user_ids) for application_id, user_ids in touched.items()}
    for change in changes:
        users.setdefault(change.application_id, set()).add(change.user_id)
    return users


def _facts_changes(touched: Mapping[int, Collection[str]], reported: set[int | None]) -> Iterator[Change]:
    """Any event of an application makes its replicas look at its roles again; ``reported`` have one already."""
    for application_id, user_ids in sorted(touched.items()):
        if len(user_ids) > MAX_LISTED_USERS:
            yield Change(FACTS_CHANGED, application_id=application_id, data={"everyone": True})
        elif not user_ids and application_id not in reported:  # only its roles, or its project
            yield Change(FACTS_CHANGED, application_id=application_id)
        for user_id in sorted(user_ids) if len(user_ids) <= MAX_LISTED_USERS else ():
            yield Change(FACTS_CHANGED, user_id, application_id)


def _permission_change(change: EffectiveChange) -> Change:
    data = {"gained": list(change.gained), "lost": list(change.lost)}
    return Change(ChangeType.PERMISSIONS_CHANGED, change.user_id, change.application_id, data)
