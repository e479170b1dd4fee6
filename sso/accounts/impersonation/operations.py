"""What administrators do to look at the account of a player, with the notices to the player and the audit entries."""

from typing import Protocol

from msgspec import Struct

from sso.accounts.history.events import SUPPORT, EventKind
from sso.accounts.history.store import insert_event
from sso.accounts.impersonation import store
from sso.accounts.impersonation.store import Impersonation
from sso.accounts.model import User
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.brand import CurrentBrand
from sso.core.errors import Conflict, Forbidden
from sso.core.ids import secret_token
from sso.core.language import Text
from sso.core.net import Address
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.mail.content import MailContent
from sso.mail.outbox import Outbox

PATH = "/impersonate"
LINK_S = 60
MAX_MINUTES = 30
SUBJECT = Text("Support has opened your account at %(service)s")
NOTICE = Text(
    "Someone from support has opened your account to help you. For at most 30 minutes, they see your account page. "
    "They cannot sign in to games or sites as you, or change your password, your two-step sign-in or your e-mail "
    "address."
)
ADVICE = Text("To end it at once, sign out everywhere else on your account page.")


class ImpersonationRights(Protocol):
    """Judges by the permissions at the moment of the call."""

    async def may_impersonate(self, user_id: str, address: Address, *, may_write: bool) -> bool:
        """Returns whether this administrator may look at accounts, or change something there."""

    async def is_protected(self, user: User, address: Address | None) -> bool:
        """Returns whether the user has, or may have, administrative rights."""


class Impersonations(Struct, frozen=True):
    database: Database
    rights: ImpersonationRights
    outbox: Outbox
    brand: CurrentBrand
    base_url: str

    async def create_link(
        self, actor: AuditActor, user: User, address: Address | None, *, reason: str, minutes: int, may_write: bool
    ) -> str:
        """Returns the URL of a link that works once. The caller has checked the rights of the actor."""
        if not actor.user_id and not actor.operator:  # a service: nobody could say who has looked
            raise Forbidden("a person must sign in to look at the account of a user")
        if user.user_id == actor.user_id:
            raise Forbidden("you cannot look at your own account as support")
        if await self.rights.is_protected(user, address):
            raise Forbidden("the account of a user with administrative rights cannot be opened")
        if user.is_guest or user.disabled or user.deletion_due is not None:
            raise Conflict("the user has no account page: a guest, or a disabled or closed account")
        secret = await self.database.transaction(self._create, actor, user, reason, minutes, may_write)
        return f"{self.base_url}{PATH}?token={secret}"

    async def _create(
        self, tx: Transaction, actor: AuditActor, user: User, reason: str, minutes: int, may_write: bool
    ) -> str:
        after = {"reason": reason, "minutes": minutes, "writes": may_write}
        await trail.write(tx, actor, "user.impersonate", user.user_id, None, after)
        return await store.create_link(
            tx,
            user.user_id,
            actor.user_id or None,
            actor.operator,
            may_write=may_write,
            minutes=minutes,
            link_s=LINK_S,
        )

    async def find_link(self, link_secret: str) -> Impersonation | None:
        return await store.find_link(self.database, link_secret) if link_secret else None

    async def start(self, link_secret: str, address: Address) -> tuple[Impersonation, str] | None:
        """Uses the link up, and tells the player. Returns the visit and the secret of its cookie, or None."""
        secret = secret_token()
        started = await self.database.transaction(self._start, link_secret, secret, address)
        return (started, secret) if started else None

    async def _start(self, tx: Transaction, link_secret: str, secret: str, address: Address) -> Impersonation | None:
        started = await store.start(tx, link_secret, secret)
        if started is None:
            return None
        user = started.user
        content = MailContent(Text(SUBJECT, service=self.brand.name), (NOTICE, ADVICE))
        await self.outbox.put(tx, user.login, content, user.lang)
        # Without the address and the browser, which are those of the administrator.
        await insert_event(tx, user.user_id, EventKind.OPENED_BY_SUPPORT, "", "", {"by": SUPPORT})
        after = {"minutes": started.minutes, "writes": started.may_write}
        await trail.write(tx, _actor(started, address), "user.impersonation_begin", user.user_id, None, after)
        return started

    async def find(self, secret: str, address: Address) -> Impersonation | None:
        """Returns the visit of a cookie. It ends as soon as one of both users has other rights than it needs."""
        found = await store.find(self.database, secret)
        if found is None or await self.rights.is_protected(found.user, address):
            return None
        if found.impersonator is None:
            return found
        is_allowed = await self.rights.may_impersonate(found.impersonator, address, may_write=found.may_write)
        return found if is_allowed else None

    async def end(self, impersonation: Impersonation, address: Address) -> None:
        await self.database.transaction(self._end, impersonation, address)

    async def _end(self, tx: Transaction, impersonation: Impersonation, address: Address) -> None:
        if await store.end(tx, impersonation.id):
            before, actor = {"open": True}, _actor(impersonation, address)
            user_id = impersonation.user.user_id
            await trail.write(tx, actor, "user.impersonation_end", user_id, before, {"open": False})

    async def record_change(self, impersonation: Impersonation, address: Address, path: str) -> None:
        """Writes into the audit trail that the administrator sends this form in place of the player."""
        actor, user_id = _actor(impersonation, address), impersonation.user.user_id
        await trail.write(self.database, actor, "user.impersonated_change", user_id, None, {"form": path})


def _actor(impersonation: Impersonation, address: Address) -> AuditActor:
    return AuditActor(impersonation.impersonator or "", address=str(address), operator=impersonation.operator)
