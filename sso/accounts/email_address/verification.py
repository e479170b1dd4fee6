"""Verifies that a user reads the mails to the address of the account, by a link in a mail."""

from sso.accounts.history.events import EventKind, record_event
from sso.accounts.mailed_link_store import MailedLinks
from sso.accounts.model import User
from sso.accounts.user_change_store import set_verified
from sso.accounts.user_store import UserStore, lock_user
from sso.core.brand import CurrentBrand
from sso.core.language import Text
from sso.db.database import Database
from sso.db.rate_limit import claim_turn, turn_wait
from sso.db.transaction import Transaction
from sso.mail.content import MailContent
from sso.mail.outbox import Outbox

PURPOSE = "email_verification"
LINK_S = 24 * 3600
RESEND_S = 120


class EmailVerification:
    def __init__(
        self, database: Database, users: UserStore, links: MailedLinks, outbox: Outbox, brand: CurrentBrand
    ) -> None:
        self._database = database
        self._users = users
        self._links = links
        self._outbox = outbox
        self._brand = brand

    async def send(self, user: User, language: str) -> bool:
        """Mails a link to the user's address. Returns False if the last one was sent less than RESEND_S ago."""

        async def work(tx: Transaction) -> bool:
            if not await claim_turn(tx, _turn(user), RESEND_S):
                return False
            url = await self._links.create(tx, PURPOSE, "/email/verify", LINK_S, user.user_id, login_key=user.login_key)
            await self._outbox.put(tx, user.login, _mail(url, self._brand.name), language)
            return True

        return await self._database.transaction(work)

    async def wait_s(self, user: User) -> int:
        """Returns the seconds until the next mail may be sent; 0 if it may be sent now."""
        return await turn_wait(self._database, _turn(user))

    async def find(self, secret: str) -> User | None:
        """Returns the user of the link, or None if it does not work."""
        link = await self._links.find(PURPOSE, secret)
        user = await self._users.get(link.user_id) if link and link.user_id else None
        if link is None or user is None or user.disabled or link.data.get("login_key") != user.login_key:
            return None
        return user

    async def confirm(self, secret: str) -> bool:
        """Marks the address as verified. Returns False if the link does not work. One of several calls succeeds."""
        if (user := await self.find(secret)) is None:
            return False

        async def work(tx: Transaction) -> bool:
            await lock_user(tx, user.user_id)
            if await self._links.use(tx, PURPOSE, secret) is None:
                return False
            await mark_verified(tx, user)
            await self._links.revoke(tx, PURPOSE, user.user_id)
            return True

        return await self._database.transaction(work)


async def mark_verified(tx: Transaction, user: User) -> None:
    """Marks the address that the user had when it was read as verified, unless it has changed since."""
    if await set_verified(tx, user.user_id, user.login_key):
        await record_event(tx, user.user_id, EventKind.EMAIL_VERIFIED)


def _turn(user: User) -> str:
    return f"verification mail:{user.user_id}:{user.login_key}"


def _mail(url: str, service_name: str) -> MailContent:
    return MailContent(
        Text("Verify your e-mail address for %(service)s", service=service_name),
        (Text("To confirm that this e-mail address belongs to your account, open this link:"),),
        (
            Text(
                "The link works once and expires in %(hours)s hours. If you have no account here, ignore this e-mail.",
                hours=LINK_S // 3600,
            ),
        ),
        link=url,
        link_label=Text("Verify my e-mail address"),
    )
