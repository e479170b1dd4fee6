"""Merges the guest of a game's session into the account of the player who is signed in to the page of the session."""

from msgspec import Struct

from sso.accounts.guest_upgrade_store import GuestLink
from sso.accounts.model import User
from sso.audit.trail import AuditActor
from sso.core.errors import ApiError, Conflict
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.gsid.guest_merges import GuestPreview, GuestRefused, StoreAccountElsewhere
from sso.perm.engine.rules import without_section
from sso.players.merge import Moves, UserMerges, actor_mode
from sso.upstream.link_conflict_store import LinkConflicts
from sso.upstream.linked_identities import LinkedIdentities


class _SessionEnded(Conflict):
    """The session has ended, or its guest is linked already."""

    message = "the session of the game has ended"


class GuestLinking(Struct, frozen=True):
    """Implements `sso.gsid.guest_merges.GuestMerges`."""

    database: Database
    merges: UserMerges
    conflicts: LinkConflicts
    links: LinkedIdentities

    async def conflict(self, link: GuestLink) -> StoreAccountElsewhere | None:
        conflict = await self.conflicts.of_guest(link.guest_id)
        return StoreAccountElsewhere(conflict.provider, conflict.identity) if conflict else None

    async def preview(self, link: GuestLink, user: User) -> GuestPreview | GuestRefused | None:
        if not await link.is_open(self.database):
            return None
        return await preview_merge(self.merges, link.guest_id, user)

    async def merge(self, link: GuestLink, user: User) -> bool:
        """Merges the guest and notifies the user.

        Returns False if the session has ended, the guest is no guest any more, or the user or the guest was revoked.
        """

        async def check(tx: Transaction, _moves: Moves) -> None:
            if not await link.mark(tx, "merged"):
                raise _SessionEnded
            await self.links.notify_of_guest(tx, user.user_id)

        try:
            mode = actor_mode(AuditActor(user_id=user.user_id))
            await self.merges.merge(mode, link.guest_id, user.user_id, check, of_guest=True, decided_by=user)
        except ApiError:
            return False
        return True

    async def is_merged(self, link: GuestLink, user: User) -> bool:
        return await self.merges.merged_into(link.guest_id) == user.user_id


async def preview_merge(merges: UserMerges, user_id: str, into: User) -> GuestPreview | GuestRefused | None:
    """Returns what would move to the account, and what it would gain. Returns None if one of them does not exist."""
    mode = actor_mode(AuditActor(user_id=into.user_id), dry_run=True)
    try:
        written = await merges.merge(mode, user_id, into.user_id)
    except Conflict:
        return GuestRefused()
    except ApiError:
        return None
    moves = written.result.moves
    changes = [change for change in written.impact.changes if change.user_id == into.user_id]
    return GuestPreview(
        keys=len(moves["keys"]),
        store_accounts=len(moves["store_accounts"]),
        application_ids=tuple(sorted({row["application_id"] for row in (*moves["games"], *moves["assignments"])})),
        roles=tuple(row["name"] for row in moves["assignments"]),
        groups=len(moves["groups"]),
        tags=tuple(moves["tags"]),
        purchases=tuple(moves["purchases"]),
        gains=tuple(sorted({without_section(entry) for change in changes for entry in change.gained})),
    )
