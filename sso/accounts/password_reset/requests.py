"""Requests for a link that resets a password. They are handled in the background.

The response to a request therefore depends on nothing that the database knows about the account, not even in its
duration. An unknown address takes the same steps: its link has no user, and its mail no recipient.
"""

from datetime import datetime

import structlog
import trio
from msgspec import Struct

from sso.accounts.errors import LoginBusy
from sso.accounts.history.texts import format_day
from sso.accounts.mailed_link_store import MailedLinks, count_links
from sso.accounts.user_change_store import lock_user_for_reset
from sso.core.brand import CurrentBrand
from sso.core.language import Text, in_language
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.transaction import Transaction
from sso.mail.content import MailContent
from sso.mail.outbox import Outbox

PURPOSE = "password_reset"
LINK_S = 30 * 60
# An account gets no further link if it got MAX_LINKS within WINDOW_S that are all unused. So a stranger can neither
# flood the mailbox of the owner nor leave the owner without a link that works for a while.
MAX_LINKS, WINDOW_S = 3, 10 * 60
MAX_WAITING = 1000
BUSY_RETRY_S = 5
DRAIN_S = 5


log = structlog.get_logger()


class ResetRequest(Struct, frozen=True):
    login: str
    next_path: str  # where to continue afterwards; "" if there is nothing to continue
    language: str


class ResetRequests:
    def __init__(self, database: Database, links: MailedLinks, outbox: Outbox, brand: CurrentBrand) -> None:
        self._database = database
        self._links = links
        self._outbox = outbox
        self._brand = brand
        self._sender, self._receiver = trio.open_memory_channel[ResetRequest](MAX_WAITING)
        self._unhandled = 0
        self._handled = trio.Event()

    def submit(self, request: ResetRequest) -> None:
        """Raises LoginBusy if too many requests wait."""
        try:
            self._sender.send_nowait(request)
        except trio.WouldBlock:
            raise LoginBusy(BUSY_RETRY_S) from None
        self._unhandled += 1

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            request = await self._receiver.receive()
            try:
                await self.handle(request)
            except DatabaseError as error:
                log.warning("password_reset.request_failed", reason=str(error))
            finally:
                self._unhandled -= 1
                self._handled.set()

    async def wait_until_handled(self) -> None:
        """Waits until all requests are handled, for at most DRAIN_S, before the worker ends."""
        with trio.move_on_after(DRAIN_S):
            while self._unhandled:
                self._handled = trio.Event()
                await self._handled.wait()

    async def handle(self, request: ResetRequest) -> None:
        await self._database.transaction(self._send_link, request)

    async def _send_link(self, tx: Transaction, request: ResetRequest) -> None:
        row = await lock_user_for_reset(tx, request.login)
        user_id, recipient, due = (row["user_id"], row["login"], row["deletion_due"]) if row else (None, "", None)
        if await count_links(tx, PURPOSE, user_id, WINDOW_S) >= MAX_LINKS:
            return
        url = await self._links.create(tx, PURPOSE, "/reset", LINK_S, user_id, next=request.next_path)
        mail = _mail(url, self._brand.name, _closed_text(due, request.language))
        await self._outbox.put(tx, recipient, mail, request.language)


def _closed_text(due: datetime | None, language: str) -> tuple[Text, ...]:
    """Says how to keep an account that is going to be deleted."""
    if due is None:
        return ()
    with in_language(language):
        date = format_day(due)
    return (
        Text(
            "Your account is closed and will be deleted on %(date)s. To keep it, choose a new password before that day "
            "and then confirm that you want to keep your account.",
            date=date,
        ),
    )


def _mail(url: str, service_name: str, closed: tuple[Text, ...]) -> MailContent:
    return MailContent(
        Text("Choose a new password for %(service)s", service=service_name),
        (*closed, Text("Someone asked for a new password for your account. To choose one, open this link:")),
        (
            Text(
                "The link works once and expires in %(minutes)s minutes. If you did not ask for it, you can ignore "
                "this e-mail: your password stays as it is.",
                minutes=LINK_S // 60,
            ),
        ),
        link=url,
        link_label=Text("Choose a new password"),
    )
