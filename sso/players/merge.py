"""Merges a user into another one, and undoes it within some days: the one operation for players and administrators.

Keys, store accounts, roles, memberships, groups, own data at applications, tags and purchases move. Nothing is
overwritten: what both users have stays as the second one has it. The first user is disabled, and its id stays as an
alias. Its login, password, passkeys and consents are not moved.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from msgspec import Struct

from sso.accounts.bans.operations import BanOperations
from sso.accounts.history.events import EventKind, record_event
from sso.accounts.model import GUEST_TAG, User
from sso.accounts.user_store import lock_user, revoke_and_record, revoke_everything
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.change_stream.events import Change, ChangeType, record_changes
from sso.core.errors import Conflict, NotFound
from sso.core.field_errors import FieldError
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.perm.changes.scope import Scope
from sso.perm.changes.writer import PermissionWriter, WriteMode, Written
from sso.perm.stores.facts import read_service_rights
from sso.personal_data.games.request_store import delete_answers
from sso.players import merge_store as store
from sso.players.merge_store import LINK_TABLES, PERMISSION_TABLES, UNDO_DAYS

Moves = dict[str, Any]
# Called with what has moved, in the transaction; raises an error if the caller may not do it.
CheckMoves = Callable[[Transaction, Moves], Awaitable[None]]


class MergeResult(Struct, frozen=True):
    moves: Moves
    warnings: tuple[str, ...]  # what both users have, and so was not moved


async def allow_all(_tx: Transaction, _moves: Moves) -> None:
    """The check of a player who holds both users."""


class UserMerges:
    def __init__(self, database: Database, writer: PermissionWriter, bans: BanOperations) -> None:
        self._database = database
        self._writer = writer
        self._bans = bans

    async def merge(
        self,
        mode: WriteMode,
        user_id: str,
        into: str,
        check: CheckMoves = allow_all,
        *,
        of_guest: bool = False,
        decided_by: User | None = None,
    ) -> Written[MergeResult]:
        """Merges ``user_id`` into ``into``, or says what that would do. Raises Conflict, NotFound or FieldError.

        ``of_guest``: the first user must still be a guest. ``decided_by``: the user who decided, as read with the
        session of the browser; raises Conflict if the user was revoked since. Merges and previews use connections of
        their own, one at a time for each user: players who open the page of a preview often do not keep logins waiting.
        """
        if user_id == into:
            raise FieldError(("into",), "is the same user")
        with self._database.shares.limit_merge(f"user {user_id}", f"user {into}"):
            return await self._merge(mode, user_id, into, check, of_guest, decided_by)

    async def _merge(
        self, mode: WriteMode, user_id: str, into: str, check: CheckMoves, of_guest: bool, decided_by: User | None
    ) -> Written[MergeResult]:
        scope = await self._scope(user_id, into)
        applications = scope.changed_applications

        async def work(tx: Transaction) -> MergeResult:
            first, second = await self._lock(tx, user_id, into)
            if of_guest and not first.is_guest:
                raise Conflict(f"{user_id} is no guest any more")
            if decided_by is not None:
                decider = first if decided_by.user_id == first.user_id else second
                if decider.valid_from != decided_by.valid_from:
                    raise Conflict(f"{decider.user_id} was signed out meanwhile")
            await self._require_mergeable(tx, first, second)
            moved, warnings = await _move(tx, first, second)
            if not {row["application_id"] for name in ("games", "assignments") for row in moved[name]} <= applications:
                raise Conflict("the first user was changed meanwhile; try again")
            await check(tx, moved)
            await self._follow_bans(tx, into, moved)
            await revoke_everything(tx, user_id)
            await store.close_merged(tx, user_id, into, moved, was_disabled=first.disabled)
            await record_event(tx, into, EventKind.USER_MERGED)
            names = {"from": user_id, "into": into}
            await record_changes(tx, [Change(ChangeType.USER_MERGED, into, data=names)])
            await trail.write(tx, mode.actor, "user.merge", user_id, {"merged_into": None}, {"merged_into": into})
            return MergeResult(public_moves(moved), tuple(warnings))

        return await self._writer.write(mode, scope, work)

    async def unmerge(self, mode: WriteMode, into: str, user_id: str, check: CheckMoves = allow_all) -> list[str]:
        """Undoes a merge. Returns what was changed since, which stays as it is.

        If ways to sign in go back, everything issued to ``into`` ends: the device of the first user may have signed in
        with them, and the login of a link session does not name the key. Their bans go with them, also those that
        named the first user while it was merged: ``into`` has got these.
        """
        scope = await self._scope(into, user_id)

        async def work(tx: Transaction) -> list[str]:
            first, second = await self._lock(tx, user_id, into)
            merge = await store.find_merge(tx, user_id)
            if merge is None or merge["into_id"] != into or first.merged_into != into:
                raise Conflict(f"{user_id} was not merged into {into}")
            if not merge["can_be_undone"]:
                raise Conflict(f"a merge can be undone for {UNDO_DAYS} days")
            if second.merged_into is not None:
                raise Conflict(f"{into} was merged into {second.merged_into} since; undo that first")
            if first.deletion_due is not None:  # it would be erased as soon as it is disabled
                raise Conflict(f"the account {user_id} is closed; restore it first")
            moved = merge["moved"]
            await check(tx, moved)
            changed = await _move_back(tx, user_id, second, moved)
            if any(moved.get(name) for name in LINK_TABLES):
                await revoke_and_record(tx, into)
            await delete_answers(tx, into, user_id)
            await store.reopen_merged(tx, user_id, disabled=merge["was_disabled"])
            await store.mark_keys(tx, user_id)
            await self._follow_bans(tx, user_id, moved)
            names = {"from": user_id, "into": into}
            await record_changes(tx, [Change(ChangeType.USER_UNMERGED, into, data=names)])
            await trail.write(tx, mode.actor, "user.unmerge", user_id, {"merged_into": into}, {"merged_into": None})
            return changed

        return (await self._writer.write(mode, scope, work)).result

    async def merged_into(self, user_id: str) -> str | None:
        """Returns the user whom this one was merged into."""
        return await store.merged_into(self._database, user_id)

    async def recent(self, user_id: str) -> list[tuple[str, datetime]]:
        """Returns the users who were merged into this one and can still be separated, and when, the last one first."""
        return await store.recent_merges(self._database, user_id)

    async def _scope(self, user_id: str, into: str) -> Scope:
        """Everything of either user: a merge changes only the records that the first one has."""
        applications, projects = await store.scope_of(self._database, user_id)
        records = frozenset((user, application) for user in (user_id, into) for application in applications)
        return Scope(records=records, projects=projects, accounts=frozenset((user_id, into)))

    async def _lock(self, tx: Transaction, user_id: str, into: str) -> tuple[User, User]:
        """Locks both in the order of their ids, as every other merge does."""
        users = {name: await lock_user(tx, name) for name in sorted((user_id, into))}
        first, second = users[user_id], users[into]
        if first is None:
            raise NotFound("there is no such user")
        if second is None:
            raise FieldError(("into",), "there is no such user")
        return first, second

    async def _require_mergeable(self, tx: Transaction, first: User, second: User) -> None:
        if first.merged_into is not None:
            raise Conflict(f"{first.user_id} was merged into {first.merged_into}")
        for user in (first, second):
            if user.is_test_player:  # many people know its password
                raise Conflict(f"{user.user_id} is a test player, and test players cannot be merged")
            if user.deletion_due is not None:
                raise Conflict(f"the account {user.user_id} is closed")
        if first.bans:  # a ban must not end by a merge
            raise Conflict(f"{first.user_id} is banned; lift the ban first, or ban the other user")
        if second.disabled:
            raise Conflict(f"{second.user_id} is disabled")
        if second.is_guest and not first.is_guest:
            raise FieldError(("into",), "is a guest; only a guest can be merged into a guest")
        if await self._is_administrator(tx, first) and await self._is_administrator(tx, second):
            raise Conflict("both users have administrative rights; take them from one of them first")

    async def _follow_bans(self, tx: Transaction, user_id: str, moved: Moves) -> None:
        """Gives the user the bans of the keys and store accounts that it has got, and these the user's."""
        for identity in await store.identities_of(tx, user_id, moved):
            await self._bans.link_identity(tx, user_id, identity)

    async def _is_administrator(self, tx: Transaction, user: User) -> bool:
        if user.is_guest:
            return False
        rights = await read_service_rights(tx, user.user_id, int(self._database.clock.now()))
        if rights.is_root or rights.rules or rights.over_central:
            return True
        return bool(await store.kept_rows(tx, "memberships", user.user_id))


async def _move(tx: Transaction, first: User, second: User) -> tuple[Moves, list[str]]:
    """Returns everything that has moved, as `_move_back` needs it, and warnings about what could not."""
    moved: Moves = {}
    warnings = []
    for name in PERMISSION_TABLES:
        moved[name] = await store.move_rows(tx, name, first.user_id, second.user_id)
        if name == "games":
            kept = await store.kept_rows(tx, name, first.user_id)
            warnings += [
                f"both users have data at application {row['application_id']}: that of {second.user_id} is kept"
                for row in kept
            ]
    for name in LINK_TABLES:
        moved[name] = await store.move_links(tx, name, first.user_id, second.user_id)
    await store.mark_keys(tx, second.user_id)
    moved["tags"] = [tag for tag in first.tags if tag != GUEST_TAG and tag not in second.tags]
    moved["purchases"] = [item for item in first.purchases if item not in second.purchases]
    if moved["tags"] or moved["purchases"]:
        tags, purchases = [*second.tags, *moved["tags"]], [*second.purchases, *moved["purchases"]]
        await store.set_attributes(tx, second.user_id, tags, purchases)
    return moved, warnings


async def _move_back(tx: Transaction, user_id: str, second: User, moved: Moves) -> list[str]:
    """Returns what was changed since the merge."""
    changed = []
    for name in PERMISSION_TABLES:
        rows = await store.return_rows(tx, name, user_id, second.user_id, moved.get(name, []))
        changed += [_text(name, row) for row in rows]
    for name in LINK_TABLES:
        gone = await store.return_links(tx, name, user_id, second.user_id, moved.get(name, []))
        changed += [f"{name}: {link_id} was removed" for link_id in gone]
    added_tags, added_purchases = moved.get("tags", []), moved.get("purchases", [])
    changed += [f"tags: {tag} was removed" for tag in added_tags if tag not in second.tags]
    changed += [f"purchases: {item} was removed" for item in added_purchases if item not in second.purchases]
    tags = [tag for tag in second.tags if tag not in added_tags]
    purchases = [item for item in second.purchases if item not in added_purchases]
    await store.set_attributes(tx, second.user_id, tags, purchases)
    return changed


def _text(name: str, row: dict[str, Any]) -> str:
    _, keys = PERMISSION_TABLES[name]
    return f"{name}: {', '.join(str(row[key]) for key in keys if row[key] != '')} was changed or deleted"


def public_moves(moved: Moves) -> Moves:
    """Returns what moves as people and programs see it: names, without the data themselves."""
    named = {
        name: [{key: row[key] for key in keys} for row in moved[name]] for name, (_, keys) in PERMISSION_TABLES.items()
    }
    return {**moved, **named}


def actor_mode(actor: AuditActor, *, dry_run: bool = False) -> WriteMode:
    """Assertions of applications cannot stop a merge; those that fail are in the audit trail."""
    return WriteMode(dry_run, override=True, actor=actor)
