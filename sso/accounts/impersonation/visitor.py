"""Decides what a request may do that has the cookie of an administrator who looks at the account of a player.

This is the only place that accepts the cookie. Everything that is not listed here is refused at the account page, and
elsewhere the request counts as one of the administrator, with their own session or none.
"""

from msgspec import Struct
from quart import g, request

from sso.accounts.impersonation.operations import Impersonations
from sso.accounts.impersonation.store import Impersonation
from sso.accounts.session_store import Session
from sso.core.errors import Forbidden
from sso.core.language import Text
from sso.web.cookies import IMPERSONATION_COOKIE, read_cookie
from sso.web.csrf import csrf_token
from sso.web.request import client_address

ACCOUNT = "/account"
END = "/account/impersonation/end"
VISIBLE = frozenset({ACCOUNT, "/account/history"})
# What may be changed if the visit may change something: nothing that the user signs in with, or has agreed to.
WRITABLE = frozenset({"/account/profile", "/account/sessions/end", "/account/games/end"})
IMPERSONATED = "impersonated"  # ``auth`` of such a session; it proves nothing about the user


class NotAsSupport(Forbidden):
    """The request would do something that only the player may do."""

    message = Text("You are looking at the account of someone else, and cannot do this for them.")


class Banner(Struct, frozen=True):
    """What the pages show above everything else."""

    name: str  # of the player
    may_write: bool
    csrf: str
    action: str = END


class ImpersonatedVisits:
    def __init__(self, impersonations: Impersonations) -> None:
        self._impersonations = impersonations

    async def session(self) -> Session | None:
        """Returns the session in which the administrator sees the account, None if this request is not part of one.

        Raises NotAsSupport. From then on, pages of this request have the banner, and events are those of support.
        """
        if not _is_account_page(request.path) or not (secret := read_cookie(IMPERSONATION_COOKIE)):
            return None
        visit = await self.find(secret)
        if visit is None:
            return None
        user = visit.user
        g.impersonation = Banner(user.nick or user.login, visit.may_write, csrf_token(secret))
        if request.method not in ("GET", "HEAD") and visit.may_write and request.path in WRITABLE:
            await self._impersonations.record_change(visit, client_address(), request.path)
        elif request.method not in ("GET", "HEAD") or request.path not in VISIBLE:
            raise NotAsSupport
        assert visit.started is not None  # it has a cookie
        return Session(visit.id, user, visit.started, IMPERSONATED, secret)

    async def find(self, secret: str) -> Impersonation | None:
        return await self._impersonations.find(secret, client_address())


def _is_account_page(path: str) -> bool:
    return path == ACCOUNT or path.startswith(f"{ACCOUNT}/")
