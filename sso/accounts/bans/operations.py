"""Bans users and lifts bans: the operations of the management API, the console, commands, and the job that ends bans.

The user's row is locked first. A sign-in that is in progress either commits before, and is ended here, or sees the ban.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from sso.accounts.bans.identity_store import link_identity, mark_identities
from sso.accounts.bans.store import (
    StoredBan,
    applications_of,
    count_bans,
    delete_ban,
    end_sign_ins,
    insert_ban,
    scope_exists,
)
from sso.accounts.history.events import EventKind, record_event
from sso.accounts.user_store import lock_user, revoke_everything
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.change_stream.events import Change, ChangeType, record_changes
from sso.core.ban import Ban
from sso.core.errors import Conflict, NotFound
from sso.core.field_errors import FieldError
from sso.core.ids import record_id
from sso.db.transaction import Transaction

MAX_BANS = 50  # of one user


class BanEnding(Protocol):
    """What a service has issued to a user."""

    async def end(self, tx: Transaction, user_id: str, ban: Ban, applications: Sequence[int] | None) -> None:
        """Ends what belongs to the applications. None: to any or none."""


class NewBan(Struct, frozen=True):
    reason: str = ""
    note: str = ""
    until: int | None = None
    application_id: int | None = None
    project_id: str | None = None


class BanOperations:
    def __init__(self, endings: Sequence[BanEnding]) -> None:
        self._endings = endings

    async def ban(self, tx: Transaction, actor: AuditActor, user_id: str, new: NewBan) -> StoredBan:
        """Bans the user, and ends at once what was issued to the user in the scope. Sites are notified."""
        user = await lock_user(tx, user_id)
        if user is None:
            raise NotFound("user not found")
        if user.merged_into is not None:  # a merged user does nothing any more, so the ban would have no effect
            raise Conflict(f"{user_id} was merged into {user.merged_into}")
        for field in ("application_id", "project_id"):
            record = getattr(new, field)
            if record is not None and not await scope_exists(tx, field, record):
                raise FieldError(("scope", field), f"there is no such {field.removesuffix('_id')}")
        if await count_bans(tx, user_id) >= MAX_BANS:
            raise Conflict(f"the user has {MAX_BANS} bans; lift one first")
        ban = Ban(record_id(), new.reason, new.until, new.application_id, new.project_id)
        stored = await insert_ban(tx, ban, user_id, new.note, actor.user_id)
        await mark_identities(tx, user_id, ban.ban_id)
        await self._end_issued(tx, user_id, ban)
        data = {"ban_id": ban.ban_id, "scope": ban.scope, "until": ban.until, "reason": ban.reason}
        change = Change(ChangeType.USER_BANNED, user_id, ban.application_id, data)
        await record_changes(tx, [change])
        await record_event(tx, user_id, EventKind.BANNED, **_event_detail(ban))
        await _audit(tx, actor, "user.ban", user_id, ban, None, data)
        return stored

    async def unban(self, tx: Transaction, actor: AuditActor, user_id: str, ban_id: str) -> StoredBan | None:
        """Lifts one ban; others stay. Returns None if there is no such ban. Nothing that was ended comes back."""
        user = await lock_user(tx, user_id)  # None: the user was erased
        stored = await delete_ban(tx, user_id, ban_id)
        if stored is None:
            return None
        ban = stored.ban
        data = {"ban_id": ban.ban_id, "scope": ban.scope}
        await record_changes(tx, [Change(ChangeType.USER_UNBANNED, user_id, ban.application_id, data)])
        if user is not None:
            await record_event(tx, user_id, EventKind.UNBANNED, **_event_detail(ban))
        before = {**data, "until": ban.until, "reason": ban.reason}
        await _audit(tx, actor, "user.unban", user_id, ban, before, None)
        return stored

    async def link_identity(self, tx: Transaction, user_id: str, identity: bytes) -> None:
        """Gives a user, whom the caller has locked, the bans of a linked identity, and ends what was issued."""
        for ban in await link_identity(tx, user_id, identity):
            await self._end_issued(tx, user_id, ban)

    async def _end_issued(self, tx: Transaction, user_id: str, ban: Ban) -> None:
        applications = None if ban.is_of_all else await applications_of(tx, ban)
        for ending in self._endings:
            await ending.end(tx, user_id, ban, applications)
        if applications is None:
            await revoke_everything(tx, user_id, is_ban=True)
        else:
            await end_sign_ins(tx, user_id, applications)


def _event_detail(ban: Ban) -> dict[str, Any]:
    return {"app_id": ban.application_id} if ban.application_id is not None else {}


async def _audit(  # without the note, because users can export the entries about themselves
    tx: Transaction, actor: AuditActor, operation: str, user_id: str, ban: Ban, before: Any, after: Any
) -> None:
    project_id, application_id = ban.project_id, ban.application_id
    await trail.write(
        tx, actor, operation, user_id, before, after, project_id=project_id, application_id=application_id
    )
