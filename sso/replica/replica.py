"""A replica in this process: a thread follows the service, and other threads ask.

``Replica`` is for programs with threads, ``AsyncReplica`` for Trio and asyncio. Both answer from memory; they ask the
service only about users who are not in the copy yet, and about subjects that are named by their logins.
"""

import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import structlog

from sso.client.credentials import ServiceClient
from sso.client.errors import ClientError, MissingRight, RecordNotFound, SignInRequired
from sso.core.errors import ApiError, RetryLater
from sso.perm.replica.answers import CHECK, ReplicaRequest
from sso.replica.clock import ReplicaClock
from sso.replica.copy_keeper import CopyKeeper
from sso.replica.feed import Feed
from sso.replica.request_thread import RequestThread
from sso.replica.snapshot_file import SnapshotFile

MAX_STALE_S = 60.0
REVISION_WAIT_S = 5.0
SIDE_ANSWER_S = 5.0  # for a request that somebody waits for
ABSENT_S = 1.0  # how long it is remembered that a user does not exist
MAX_ABSENT = 10_000
POLL_S = 10  # how long the service holds a request
FIRST_PAUSE_S, MAX_PAUSE_S = 0.2, 5.0
REFUSALS = (SignInRequired, MissingRight, RecordNotFound)

log = structlog.get_logger()


class ReplicaUnavailable(RetryLater):
    """The replica has no copy, or one that is too old, or not the revision that was asked for."""

    status = 503
    code = "temporarily_unavailable"

    def __init__(self, message: str) -> None:
        super().__init__(1)
        self.message = message
        self.args = (message,)


class ReplicaAnswer(NamedTuple):
    body: dict[str, Any]
    revision: str
    staleness: float  # seconds


class Replica:
    """Answers whether users have rules at one application, as the service does for a service client of it."""

    def __init__(
        self,
        application: int,
        *,
        server: str,
        client_id: str,
        client_secret: str,
        data_dir: Path | str | None = None,
        max_stale_s: float = MAX_STALE_S,
        serve_stale: bool = False,
        **options: Any,
    ) -> None:
        """Without ``data_dir`` nothing is kept on disk. With ``serve_stale``, it goes on answering above
        ``max_stale_s``, unless the service refuses the client. ``options`` are those of
        ``httpx.AsyncClient``, such as ``verify``."""
        self.application = application
        self._max_stale_s = max_stale_s
        self._serve_stale = serve_stale
        self._clock = ReplicaClock()
        credentials = ServiceClient(client_id, client_secret)
        self._requests = RequestThread()
        self._feed = Feed(self._requests, server, application, credentials, **options)
        self._side_feed = Feed(self._requests, server, application, credentials, answer_s=SIDE_ANSWER_S, **options)
        purpose = f"{server.rstrip('/')} {application} {client_id}"
        file = SnapshotFile(Path(data_dir), client_secret, purpose) if data_dir is not None else None
        self._keeper = CopyKeeper(self._clock, file)
        self._stopped = threading.Event()
        self._ready = threading.Event()
        self._evaluating = threading.Lock()  # what is computed for a user is not made for several threads at a time
        self._catching_up = threading.Lock()
        self._is_refused = False  # by the service, at the last attempt: the client or the application may be removed
        self._absent: dict[str, float] = {}
        self._thread = threading.Thread(target=self._follow, name="replica", daemon=True)

    def start(self) -> None:
        """Reads the copy on disk, and begins to follow the service. If it fails, the replica is closed."""
        if self._stopped.is_set() or self._thread.ident is not None:
            raise RuntimeError("a replica can be started once, and not after it was closed")
        try:
            self._keeper.restore()
            if self._keeper.copy is not None:
                self._ready.set()
            self._requests.start()
            self._thread.start()
        except BaseException:
            self.close()
            raise
        if self._stopped.is_set():  # by another thread, which may have found nothing to end yet
            self.close()
            raise RuntimeError("the replica was closed while it started")

    def wait_until_ready(self, timeout_s: float | None = None) -> bool:
        """Waits for the first copy. Returns False after ``timeout_s``, or if the replica is closed without one."""
        self._ready.wait(timeout_s)
        return self._keeper.copy is not None

    def close(self) -> None:
        """Ends everything that waits for the service at this moment. Can be called again."""
        self._stopped.set()
        self._requests.close()
        if self._thread.is_alive():
            self._thread.join()
        self._keeper.close()
        self._ready.set()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def revision(self) -> str:
        """The cursor of the change stream up to which the copy is complete; empty without a copy."""
        return self._keeper.cursor

    @property
    def staleness(self) -> float | None:
        """Seconds since the copy was known to be current."""
        return self._clock.staleness()

    def __len__(self) -> int:
        """Returns the number of users in the copy."""
        return len(self._keeper.copy or ())

    def check(
        self,
        user_id: str,
        rule: str,
        *,
        param: str | None = None,
        project_id: str | None = None,
        at_least: str | None = None,
    ) -> bool:
        """Returns whether the user has the rule. A user who does not exist has none.

        ``at_least`` is a revision of the service that the answer must not be older than. Raises ReplicaUnavailable.
        """
        question = {"user_id": user_id, "rule": rule, "param": param, "project_id": project_id}
        answer = self.answer(CHECK, {"data": {"questions": [question]}}, at_least).body["data"][0]
        return bool(answer["allow"])

    def answer(self, path: str, fields: dict[str, Any], at_least: str | None = None) -> ReplicaAnswer:
        """Returns the answer to the body of a request at one of the paths of the service. Raises ApiError."""
        request = ReplicaRequest.read(path, fields, self.application)
        if at_least is not None and not self.reaches(at_least):
            self._catch_up(at_least)
        self.require_current()
        errors: dict[str, ApiError] = {}
        if request.logins:
            request = request.with_logins({login: self._find_login(login) for login in request.logins})
        if unknown := self.unknown_users(request):
            errors = self._fetch(unknown)
        return self.answer_now(request, errors)

    def answer_now(self, request: ReplicaRequest, errors: dict[str, ApiError] | None = None) -> ReplicaAnswer:
        """Answers from memory, without waiting for anything."""
        staleness = self.require_current()
        copy, revision = self._keeper.copy, self._keeper.cursor
        assert copy is not None
        with self._evaluating:
            body = request.answer(copy, int(self._clock.now()), errors)
        return ReplicaAnswer(body, revision, staleness)

    def is_immediate(self, request: ReplicaRequest, at_least: str | None) -> bool:
        """Returns whether the answer needs nothing from the service."""
        reached = at_least is None or self.reaches(at_least)
        return reached and not request.logins and not self.unknown_users(request)

    def reaches(self, revision: str) -> bool:
        return bool(self._keeper.cursor) and int(self._keeper.cursor) >= int(revision)

    def unknown_users(self, request: ReplicaRequest) -> list[str]:
        copy, moment = self._keeper.copy, time.monotonic()
        if copy is None:
            return []
        unknown = (user_id for user_id in request.user_ids if user_id not in copy)
        return [user_id for user_id in unknown if self._absent.get(user_id, 0) < moment]

    def require_current(self) -> float:
        """Returns the staleness. Raises ReplicaUnavailable."""
        staleness = self._clock.staleness()
        if self._is_refused and (staleness is None or staleness > self._max_stale_s):
            raise ReplicaUnavailable("the service refuses the client of this replica")
        if staleness is None or self._keeper.copy is None:
            raise ReplicaUnavailable("the replica has not read the permissions of the application yet")
        if staleness > self._max_stale_s and not self._serve_stale:
            raise ReplicaUnavailable(f"the replica has not reached the service for {staleness:.0f} seconds")
        return staleness

    def _catch_up(self, revision: str) -> None:
        """Reads changes until the copy has the revision. Raises ReplicaUnavailable."""
        deadline = time.monotonic() + REVISION_WAIT_S
        while time.monotonic() < deadline and not self._stopped.is_set():
            with self._catching_up:  # one request at a time for all that wait
                if self.reaches(revision):
                    return
                try:
                    self._keeper.follow(self._side_feed, 0)
                except ClientError as error:
                    log.info("replica.catch_up_failed", reason=str(error))
            if self.reaches(revision):
                return
            self._stopped.wait(0.05)
        raise ReplicaUnavailable("the replica does not have this revision yet")

    def _find_login(self, login: str) -> str | ApiError:
        try:
            row = self._side_feed.find_login(login)
        except ClientError:
            return ReplicaUnavailable("the service cannot be asked for this login")
        return row[0] if row else ""

    def _fetch(self, user_ids: list[str]) -> dict[str, ApiError]:
        """Reads users who are not in the copy. Returns the error for each if that is not possible."""
        try:
            absent = self._keeper.fetch(self._side_feed, user_ids)
        except ClientError:
            error = ReplicaUnavailable("this user is not in the replica, and the service cannot be asked")
            return dict.fromkeys(user_ids, error)
        if len(self._absent) > MAX_ABSENT:
            self._absent.clear()
        self._absent.update(dict.fromkeys(absent, time.monotonic() + ABSENT_S))
        return {}

    def _follow(self) -> None:
        pause = FIRST_PAUSE_S
        while not self._stopped.is_set():
            try:
                if self._keeper.needs_snapshot:
                    self._keeper.load(self._feed)
                    if not self._keeper.needs_snapshot:
                        self._ready.set()
                        log.info("replica.loaded", users=len(self), revision=self.revision)
                self._keeper.follow(self._feed, POLL_S)
                pause, self._is_refused = FIRST_PAUSE_S, False
            except Exception as error:  # a response that cannot be read must not end the thread
                if self._stopped.is_set():
                    return
                self._is_refused = isinstance(error, REFUSALS)
                log.warning("replica.follow_failed", reason=str(error), retry_s=pause)
                self._stopped.wait(pause)
                pause = min(2 * pause, MAX_PAUSE_S)
