"""QR codes for authenticator apps, drawn in a thread that is bounded and fair.

Drawing one takes 10 to 40 ms, so a page without a QR code is shown to a client that asks for many: the page has the key
as text, too. Each page has a new secret, so there is nothing to cache.
"""

from sso.core.errors import ServerBusy
from sso.core.fair_thread import FairThread
from sso.core.net import Address
from sso.db.database import Database
from sso.db.rate_limit import RateLimiter

PER_MINUTE = 20  # for one user
MAX_WAITING_PER_CLIENT = 2


class QrCodes:
    def __init__(self, database: Database) -> None:
        self._rate = RateLimiter(database, "QR code", PER_MINUTE)
        self._thread = FairThread(MAX_WAITING_PER_CLIENT)

    async def svg(self, user_id: str, client: Address, text: str) -> str | None:
        """Returns the QR code as an SVG image, or None if the user or the client asks for too many."""
        if await self._rate.add_subject(f"user {user_id}"):
            return None
        try:
            return await self._thread.run(client, _draw, text)
        except ServerBusy:
            return None


def _draw(text: str) -> str:
    import segno  # not above: few workers draw one

    return str(segno.make(text, error="m").svg_inline(omitsize=True, border=1))
