"""Shares of the connection pool: work that may be expensive uses a few connections, so logins always find free ones.

A request says at its edge which share it uses and for whom. From then on each of its database calls waits for a turn in
that share before it takes a connection of the pool. A lane, such as a user or a project, has one connection of a share
at a time, and lanes take turns. A request that names no share, such as a login or a poll, takes any free connection.

Batches name no share: a batch serves many callers and is cheap.
"""

from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TypeVar

from msgspec import Struct

from sso.core.fair_queue import FairQueue, QueueFull
from sso.db.errors import Unavailable

T = TypeVar("T")

MAX_WAITING = 500  # calls; beyond it, the queue refuses the call with the latest turn
MAX_WAIT_S = 10.0
MAX_EVALUATION_WAIT_S = 35.0  # longer than an evaluation may take


class ConnectionShare:
    """At most ``size`` connections of the pool, for which a call waits for at most ``max_wait_s``."""

    def __init__(self, size: int, max_wait_s: float = MAX_WAIT_S) -> None:
        self.size = size
        self._queue = FairQueue(size, MAX_WAITING, max_wait_s=max_wait_s, max_per_lane=1)

    def __len__(self) -> int:
        """Returns how many calls wait."""
        return len(self._queue)

    @asynccontextmanager
    async def turn(self, lanes: tuple[Hashable, ...]) -> AsyncIterator[None]:
        """Holds a connection's place within the block. Raises Unavailable if the caller waits for too long."""
        try:
            async with self._queue.slot(*lanes):
                yield
        except QueueFull:
            raise Unavailable("too many calls are waiting") from None


class ShareUse(Struct, frozen=True):
    share: ConnectionShare
    lanes: tuple[Hashable, ...]
    is_merge: bool = False


current_share: ContextVar[ShareUse | None] = ContextVar("current_share", default=None)
_reads_for_sign_in: ContextVar[bool] = ContextVar("reads_for_sign_in", default=False)


class ConnectionShares:
    """The shares of a pool. The rest of it, two connections of eight and one of five, is left to logins alone.

    Root has at least two, so that there is one for short calls while root evaluates permissions.
    """

    def __init__(self, pool_size: int) -> None:
        self.management = ConnectionShare(max(1, pool_size // 4))
        self.evaluation = ConnectionShare(max(1, pool_size // 8), MAX_EVALUATION_WAIT_S)
        self.root = ConnectionShare(max(2, pool_size // 4), MAX_EVALUATION_WAIT_S)
        rest = pool_size - self.management.size - self.evaluation.size - self.root.size
        # Of five connections, the last one is for logins.
        self.merges = ConnectionShare(1, MAX_EVALUATION_WAIT_S) if rest > 1 else self.management

    def limit_management(self, caller: str, *, is_root: bool) -> AbstractContextManager[None]:
        """Limits the database calls of a request of a caller who manages records. Root has connections of its own."""
        return _use(self.root if is_root else self.management, (caller,))

    def limit_read(self, *lanes: Hashable) -> AbstractContextManager[None]:
        """Limits a read of much data for a request that names no share. It then uses the connections of management."""
        is_free = _reads_for_sign_in.get() or current_share.get() is not None
        return nullcontext() if is_free else _use(self.management, lanes)

    @contextmanager
    def limit_evaluation(self, *lanes: Hashable) -> Iterator[None]:
        """Limits calls that may take seconds, one at a time for each of the lanes and for the caller of the request.

        Root evaluates with the connections of root, and still has another one for short calls. A merge of users keeps
        its connection.
        """
        outer = current_share.get()
        use: AbstractContextManager[None]
        if outer is not None and outer.share is self.root:
            use = _use(self.root, ("evaluation", *lanes))
        elif outer is not None and outer.is_merge:
            use = _use(outer.share, (*outer.lanes, *lanes), is_merge=True)
        else:
            use = self.limit_document(*lanes)
        with use:
            yield

    def limit_document(self, *lanes: Hashable) -> AbstractContextManager[None]:
        """Like `limit_evaluation`, for work of minutes: if root does it, root's own connections stay free."""
        outer = current_share.get()
        return _use(self.evaluation, (*(outer.lanes if outer else ()), *lanes))

    def limit_merge(self, *lanes: Hashable) -> AbstractContextManager[None]:
        """Limits merges of users and their previews, which players may start and which must not wait for documents.

        Root merges with the connections of root.
        """
        outer = current_share.get()
        if outer is not None and outer.share is self.root:
            return self.limit_evaluation(*lanes)
        return _use(self.merges, (*(outer.lanes if outer else ()), *lanes), is_merge=True)


def reads_for_sign_in() -> AbstractContextManager[None]:
    """A sign-in reads the facts about its own user only, and does not wait for the turn of other reads."""
    return _set(_reads_for_sign_in, True)


def without_share() -> AbstractContextManager[None]:
    """For short reads whose result other requests wait for: a login must not wait for the turn of another caller."""
    return _set(current_share, None)


def _use(
    share: ConnectionShare, lanes: tuple[Hashable, ...], *, is_merge: bool = False
) -> AbstractContextManager[None]:
    return _set(current_share, ShareUse(share, lanes, is_merge))


@contextmanager
def _set(variable: ContextVar[T], value: T) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
