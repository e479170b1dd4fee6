"""The origins of browser apps: from the redirect URIs of oidc clients, and from the lists of clients.

They are kept in memory for a few seconds. A new origin is found at once, because an unknown one is looked up in the
database; these look-ups share a statement and run at most five times in a second, whatever the number of requests.
"""

from collections.abc import Callable, Iterable

import structlog
import trio

from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.oauth.clients.redirect_uris import Redirect, browser_origin, match_redirect_uri
from sso.oauth.clients.store import list_origin_rows

MAX_AGE_S = 5.0  # how long a removed origin stays allowed
MIN_INTERVAL_S = 0.2
MAX_ORIGIN_LENGTH = 300

log = structlog.get_logger()


class BrowserOrigins:
    def __init__(self, database: Database, *, allow_http: bool) -> None:
        self._database = database
        self._allow_http = allow_http
        self._lock = trio.Lock()
        self._origins: frozenset[str] = frozenset()
        self._first_party: frozenset[str] = frozenset()  # those of them that belong to first-party clients
        self._hosts: frozenset[str] = frozenset()  # for clients without redirect_uris; any port is allowed
        self._read_at = float("-inf")

    async def is_allowed(self, origin: str) -> bool:
        return await self._find(origin, self._has)

    async def is_first_party(self, origin: str) -> bool:
        """Returns whether a first-party client lists the origin, by itself or by a redirect URI."""
        return await self._find(origin, lambda origin: origin in self._first_party)

    async def _find(self, origin: str, is_known: Callable[[str], bool]) -> bool:
        now = trio.current_time()
        if len(origin) > MAX_ORIGIN_LENGTH:
            return False
        if now - self._read_at < MAX_AGE_S and is_known(origin):
            return True
        try:
            await self._read_after(now)
        except DatabaseError as error:
            log.warning("oauth.origin_lookup_failed", reason=str(error))  # the origins of the last time still count
        return is_known(origin)

    def _has(self, origin: str) -> bool:
        if origin in self._origins:
            return True
        if not self._hosts or browser_origin(origin) != origin:
            return False
        return isinstance(match_redirect_uri(origin, self._hosts, allow_http=self._allow_http), Redirect)

    async def _read_after(self, moment: float) -> None:
        """Reads the origins, unless another task has begun to do so after this moment."""
        async with self._lock:
            if self._read_at >= moment:
                return
            await trio.sleep_until(self._read_at + MIN_INTERVAL_S)
            started = trio.current_time()
            origins: set[str] = set()
            first_party: set[str] = set()
            hosts: set[str] = set()
            for row in await list_origin_rows(self._database):
                listed = {*row["origins"], *self._origins_of(row["redirect_hosts"], row["redirect_uris"])}
                origins |= listed
                first_party |= listed if row["first_party"] else set()
                hosts.update(() if row["redirect_uris"] else row["redirect_hosts"])
            self._origins, self._first_party = frozenset(origins), frozenset(first_party)
            self._hosts, self._read_at = frozenset(hosts), started

    def _origins_of(self, hosts: Iterable[str], uris: Iterable[str]) -> set[str]:
        own_hosts, own_uris = frozenset(hosts), frozenset(uris)  # a search in a list would make the time quadratic
        redirects = (match_redirect_uri(uri, own_hosts, own_uris, allow_http=self._allow_http) for uri in own_uris)
        return {browser_origin(redirect.origin) for redirect in redirects if isinstance(redirect, Redirect)}
