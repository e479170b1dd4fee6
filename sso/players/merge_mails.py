"""The mails about a merge of two accounts that a player has decided.

They also go to the addresses that the merged account had some days ago: a thief changes the address before the merge.
"""

from msgspec import Struct

from sso.accounts.mailed_link_store import list_undo_links
from sso.accounts.model import User
from sso.core.brand import CurrentBrand
from sso.core.language import Text
from sso.db.transaction import Transaction
from sso.mail.content import MailContent
from sso.mail.outbox import Outbox
from sso.players.merge_store import UNDO_DAYS
from sso.upstream.link_conflict_store import masked_login


class MergeMails(Struct, frozen=True):
    outbox: Outbox
    brand: CurrentBrand

    async def send(self, tx: Transaction, user: User, into: User) -> None:
        """Tells the owners of both accounts, in the transaction of the merge."""
        content = merge_mail(user, into, self.brand.name)
        changed = [row["data"]["login"] for row in await list_undo_links(tx, user.user_id)]
        for login in dict.fromkeys((user.login, *changed)):
            await self.outbox.put(tx, login, content, user.lang)
        await self.outbox.put(tx, into.login, content, into.lang)


def merge_mail(user: User, into: User, service_name: str) -> MailContent:
    return MailContent(
        Text("Two accounts for %(service)s are one now", service=service_name),
        (
            Text(
                "The account %(account)s was merged into the account %(into)s, which has its games, purchases and "
                "linked accounts now.",
                account=masked_login(user.login),
                into=masked_login(into.login),
            ),
            Text("If this was not you, ask support for help."),
            Text("Support can separate the accounts for %(days)s days.", days=UNDO_DAYS),
        ),
    )
