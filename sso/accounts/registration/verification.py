"""The first step of a registration: a mail with a link and a code shows that the address belongs to the user.

Known and unknown addresses are treated alike: the same statements run, one mail is sent, and the same page follows. The
owner of an existing account gets another mail. A code is bound to the visit cookie of the browser that asked for it; a
link works in any browser.
"""

import secrets
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sso.accounts.mailed_link_store import MailedLink, MailedLinks
from sso.accounts.model import mailbox_key
from sso.accounts.registration.mails import existing_account_mail, verification_mail
from sso.accounts.registration.store import count_code_attempt, find_login, set_code, use_code
from sso.accounts.user_store import is_login_used
from sso.core.brand import CurrentBrand
from sso.core.encryption import Keyring
from sso.core.ids import digest
from sso.db.database import Database
from sso.db.rate_limit import WindowLimiter
from sso.db.transaction import Transaction
from sso.mail.outbox import Outbox

PATH = "/register"
PURPOSE = "registration"
LINK_S = 24 * 3600
CODE_S = 1800
MAX_CODE_ATTEMPTS = 5
# The limit of one recipient. Its window is shorter than the life of a link, so a recipient for whom strangers have used
# up the limit has a mail with a link that works.
MAILS_PER_RECIPIENT, RECIPIENT_WINDOW_S = 5, 3600


class AddressVerification:
    def __init__(
        self,
        database: Database,
        keyring: Keyring,
        links: MailedLinks,
        outbox: Outbox,
        brand: CurrentBrand,
        base_url: str,
    ) -> None:
        self._database = database
        self._keyring = keyring
        self._links = links
        self._outbox = outbox
        self._brand = brand
        self._base_url = base_url
        self._recipients = WindowLimiter("registration mail", MAILS_PER_RECIPIENT, RECIPIENT_WINDOW_S)

    async def send_mail(self, login: str, visit: str, next_path: str, language: str) -> int:
        """Mails a link and a code. Returns 0, or the seconds to wait if the recipient got too many mails.

        ``visit`` is the secret of the browser's visit cookie, ``next_path`` where the browser continues afterwards.
        """
        code, visit_digest = f"{secrets.randbelow(10**6):06}", digest(visit)
        mac = self._keyring.mac(_code_purpose(visit_digest), code)

        async def work(tx: Transaction) -> int:
            if wait_s := await self._recipients.add(tx, mailbox_key(login)):
                return wait_s
            is_known = await is_login_used(tx, login)
            await set_code(tx, visit_digest, login, mac, CODE_S)
            link = await self._links.create(tx, PURPOSE, PATH, LINK_S, **_link_data(login, visit_digest, next_path))
            content = verification_mail(self._brand.name, link, code, CODE_S // 60)
            existing = existing_account_mail(self._brand.name, f"{self._base_url}/login", f"{self._base_url}/forgot")
            await self._outbox.put(tx, login, existing if is_known else content, language)
            return 0

        return await self._database.transaction(work)

    async def pending_login(self, visit: str) -> str | None:
        """Returns the address to which the last code of this browser was mailed, or None if there is none."""
        return await find_login(self._database, digest(visit))

    async def exchange_code(self, visit: str, code: str, next_path: str) -> str | None:
        """Returns the secret of a link for a correct code, which works once, or None.

        The attempt is counted before it is judged.
        """
        visit_digest = digest(visit)
        row = await count_code_attempt(self._database, visit_digest, MAX_CODE_ATTEMPTS)
        if row is None or not self._keyring.verify_mac(row["code"], _code_purpose(visit_digest), code):
            return None
        data = _link_data(row["login"], visit_digest, next_path)

        async def work(tx: Transaction) -> str | None:
            if not await use_code(tx, visit_digest, row["code"]):
                return None
            return _secret(await self._links.create(tx, PURPOSE, PATH, LINK_S, **data))

        return await self._database.transaction(work)


def was_requested_by(link: MailedLink, visit: str) -> bool:
    """Returns whether the browser with this visit cookie has asked for the link."""
    return bool(visit) and link.data.get("visit") == digest(visit).hex()


def _link_data(login: str, visit_digest: bytes, next_path: str) -> dict[str, Any]:
    return {"login": login, "next": next_path, "visit": visit_digest.hex()}


def _secret(url: str) -> str:
    return parse_qs(urlsplit(url).query)["token"][0]


def _code_purpose(visit_digest: bytes) -> str:
    return f"registration code:{visit_digest.hex()}"
