"""Pending authorizations as this worker has saved them: most browsers soon send the sign-in form to it."""

from collections import OrderedDict

from sso.db.database import Database
from sso.oauth.model import AuthorizationRequest, PendingAuthorization

MAX_AUTHORIZATIONS = 4096
MAX_CHARACTERS = 2000  # of one authorization


class RememberedAuthorizations:
    """Each one can be taken once. Later its row is read: other requests may have changed it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # With the epoch of the connections, in the order in which they were saved.
        self._pending: OrderedDict[str, tuple[int, PendingAuthorization]] = OrderedDict()

    def put(self, pending: PendingAuthorization) -> None:
        if _size(pending.request) > MAX_CHARACTERS:
            return
        self._pending[pending.id] = self._database.epoch, pending
        while self._pending and (len(self._pending) > MAX_AUTHORIZATIONS or self._oldest_has_expired()):
            self._pending.popitem(last=False)

    def take(self, request_id: str) -> PendingAuthorization | None:
        """Returns None if it was taken before, has expired, or was saved by another worker or at another server."""
        epoch, pending = self._pending.pop(request_id, (0, None))
        if pending is None or epoch != self._database.epoch or pending.expires <= self._database.clock.utc():
            return None
        return pending

    def _oldest_has_expired(self) -> bool:
        _, pending = next(iter(self._pending.values()))
        return pending.expires <= self._database.clock.utc()


def _size(request: AuthorizationRequest) -> int:
    texts = (request.state, request.nonce, request.login_hint, request.ui_locales, request.claims)
    return sum(len(text) for text in texts if text)
