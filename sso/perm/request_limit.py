"""Limits requests to the permission endpoints that write, or that may be expensive.

They count towards the limit of the management API and use its share of the database's connections. The reads that games
and web sites make for each login are not limited: permissions and checks without reasons, and the caller's own
information.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from sso.db.connection_share import ConnectionShares
from sso.db.rate_limit import RateLimiter
from sso.perm.accepted_credentials import ENDPOINT_RULES
from sso.perm.authorization import Authorizer
from sso.perm.caller import Caller
from sso.perm.errors import TooManyAdminRequests

# The endpoints with frequent reads, each with the options that make a read expensive.
_EXPENSIVE_OPTIONS = {"/user/info": frozenset(), "/check": {"reason"}, "/meta/data": {"at", "explain"}}


class PermissionRequestLimit:
    def __init__(self, shares: ConnectionShares, rate: RateLimiter, authorizer: Authorizer) -> None:
        self._shares = shares
        self._rate = rate
        self._authorizer = authorizer

    async def enter(self, path: str, fields: dict[str, Any], caller: Caller) -> AbstractContextManager[None]:
        """Counts the request and returns the limit of the connections that it uses.

        Raises TooManyAdminRequests if the caller has sent too many.
        """
        if is_frequent_read(path, fields):
            return nullcontext()
        is_counted = not _is_save_of_own_service(path, fields, caller)
        if is_counted and (wait_s := await self._rate.add_subject(caller.subject)):
            raise TooManyAdminRequests(wait_s)
        return self._shares.limit_management(caller.subject, is_root=await self._authorizer.is_root(caller))


def is_frequent_read(path: str, fields: dict[str, Any]) -> bool:
    if path not in _EXPENSIVE_OPTIONS or (path == "/meta/data" and fields.get("action") != "get"):
        return False
    options = fields.get("options")
    if not isinstance(options, dict):
        return True
    values = (options.get(name) for name in _EXPENSIVE_OPTIONS[path])
    return all(value is None or value is False for value in values)


def _is_save_of_own_service(path: str, fields: dict[str, Any], caller: Caller) -> bool:
    """Returns whether a game server saves the data of a user at its own application, which it does as often as users
    play."""
    if path != "/meta/data" or fields.get("action") != "save" or caller.service_id is None:
        return False
    return ENDPOINT_RULES[path].application_of(fields, caller.service_id) == caller.service_id
