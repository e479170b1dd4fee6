"""A small load: users who log in repeatedly, and a journal of all responses.

Users, rate, requests and time are bounded. Everything that the server has acknowledged in the journal must stay true,
whatever happens to the server.
"""

import http.client
import itertools
import json
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

from tests.kit.long_tests import IS_LONG_RUN

LOGIN = "/proxy/api/login"
KEYS = "/proxy/oauth/keys"
RESPONSE_TIMEOUT_S = 60.0  # longer than any limit of the server, so that a hanging request shows in the journal
MAX_REQUESTS = 5000  # per user
REUSES = 10  # requests per connection, so that a restarted worker gets connections
CHECKERS = 4
CHECKED_TOKENS = (
    15 if IS_LONG_RUN else 4
)  # newest tokens of a user; checking them creates more, up to the limit of a user
PAUSE_S = 0.01 if IS_LONG_RUN else 0.1  # between two requests of a user
RETRY_PAUSE_S = 0.05 if IS_LONG_RUN else 0.1  # after a request that failed


class Person(NamedTuple):
    login: str
    password: str


@dataclass(frozen=True)
class Entry:
    """One request and its outcome."""

    what: str
    began: float  # monotonic clock
    took: float
    port: int  # source port of the connection; 0 if there was none
    status: int = 0  # 0: no response
    retry_after: str = ""
    error: str = ""  # the exception, if there was no response
    retried: bool = False  # sent again because the connection had been closed while idle

    @property
    def ended(self) -> float:
        return self.began + self.took


class Answer(NamedTuple):
    status: int
    retry_after: str
    data: dict[str, Any]


class Connection:
    """A connection to one server, opened again after an error or after ``REUSES`` requests."""

    def __init__(self, base_url: str, timeout_s: float = RESPONSE_TIMEOUT_S) -> None:
        self._address = urlsplit(base_url).netloc
        self._timeout_s = timeout_s
        self._http: http.client.HTTPConnection | None = None
        self.uses = 0
        self.port = 0

    def ask(self, method: str, path: str, body: dict[str, str] | None = None) -> Answer:
        """Raises OSError or HTTPException if there is no response, and closes the connection."""
        try:
            connection = self._open()
            connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
            response = connection.getresponse()
            content = response.read()
        except BaseException:
            self.close()
            raise
        self.uses += 1
        data = json.loads(content) if response.headers.get("Content-Type") == "application/json" else {}
        answer = Answer(response.status, response.headers.get("Retry-After", ""), data)
        if self.uses >= REUSES or response.will_close:
            self.close()
        return answer

    def _open(self) -> http.client.HTTPConnection:
        if self._http is None:
            self.uses = self.port = 0
            self._http = http.client.HTTPConnection(self._address, timeout=self._timeout_s)
            self._http.connect()
            self.port = self._http.sock.getsockname()[1]
        return self._http

    def close(self) -> None:
        if self._http is not None:
            self._http.close()
            self._http = None
            self.uses = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Token(str):
    """A session token of a user."""

    __slots__ = ("user_id",)
    user_id: str

    @classmethod
    def of(cls, data: dict[str, Any]) -> "Token":
        token = cls(data["token"])
        token.user_id = data["user_id"]
        return token


class Journal:
    """Requests and responses, in the order of the responses."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        # Tokens that the server has issued. Each must stay valid until the user has too many newer ones.
        self.tokens: list[str] = []
        self.secrets: set[str] = set()

    def record_tokens(self, data: dict[str, Any]) -> None:
        self.secrets |= {data[name] for name in ("token", "stoken", "jwt") if data.get(name)}
        if "token" in data:
            self.tokens.append(Token.of(data))

    def answered(self, *statuses: int) -> list[Entry]:
        return [entry for entry in list(self.entries) if entry.status in statuses]

    def broken(self) -> list[Entry]:
        return [entry for entry in list(self.entries) if not entry.status]

    def since(self, moment: float) -> list[Entry]:
        return [entry for entry in list(self.entries) if entry.began >= moment]

    def statuses(self) -> set[int]:
        """The statuses of all responses."""
        return {entry.status for entry in list(self.entries) if entry.status}

    def slowest(self) -> float:
        return max((entry.took for entry in list(self.entries)), default=0.0)

    def count(self) -> dict[str, int]:
        """Counts the entries by status or error, for messages."""
        names = sorted(str(entry.status or entry.error) for entry in list(self.entries))
        return {name: len(list(group)) for name, group in itertools.groupby(names)}


class Load:
    """Generates load inside a ``with`` block. Each user is a thread with one connection and one request at a time.

    With ``retry``, a request on a connection that was closed while idle is sent once more, as HTTP clients do.
    """

    def __init__(
        self,
        base_url: str,
        people: Sequence[Person],
        *,
        pause: float = PAUSE_S,
        max_seconds: float = 180.0,
        retry: bool = False,
    ) -> None:
        self.journal = Journal()
        self._base_url = base_url
        self._pause = pause
        self._max_seconds = max_seconds
        self._retry = retry
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run_user, args=(person,), daemon=True) for person in people]
        self.journal.secrets |= {person.password for person in people}

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stops the load and waits for the last response."""
        self._stop.set()
        for thread in self._threads:
            thread.join(RESPONSE_TIMEOUT_S + 5)
            assert not thread.is_alive(), "a request hangs"

    def wait_for(self, answers: int, status: int = 200, since: float = 0.0, seconds: float = 60.0) -> float:
        """Waits until so many logins that began after ``since`` got this status. Returns the end of the last one."""
        end = time.monotonic() + seconds
        while True:
            logins = [entry for entry in self.journal.since(since) if entry.status == status and entry.what != "keys"]
            if len(logins) >= answers:
                return logins[answers - 1].ended
            assert time.monotonic() < end, f"fewer than {answers} responses {status}: {self.journal.count()}"
            time.sleep(0.01)

    def _run_user(self, person: Person) -> None:
        end = time.monotonic() + self._max_seconds
        token = ""
        by_password = {"login": person.login, "password": person.password, "factor": "load"}
        with Connection(self._base_url) as connection:
            for number in range(MAX_REQUESTS):
                if self._stop.is_set() or time.monotonic() > end:
                    return
                match number % 4:
                    case 3:
                        answer = self._ask(connection, "keys", "GET", KEYS, None)
                    case 2 if token:
                        answer = self._ask(connection, "token", "POST", LOGIN, {"token": token})
                    case _:
                        answer = self._ask(connection, "password", "POST", LOGIN, by_password)
                if answer and answer.status == 200 and "token" in answer.data:
                    token = answer.data["token"]
                time.sleep(self._pause if answer and answer.status == 200 else max(self._pause, RETRY_PAUSE_S))

    def _ask(
        self, connection: Connection, what: str, method: str, path: str, body: dict[str, str] | None
    ) -> Answer | None:
        began = time.monotonic()
        retried = False
        while True:
            idle = connection.uses > 0
            try:
                answer = connection.ask(method, path, body)
            except (OSError, http.client.HTTPException) as error:
                if self._retry and idle and not retried:
                    retried = True
                    continue
                took = time.monotonic() - began
                name = type(error).__name__
                self.journal.entries.append(Entry(what, began, took, connection.port, error=name, retried=retried))
                return None
            took = time.monotonic() - began
            self.journal.record_tokens(answer.data)
            self.journal.entries.append(
                Entry(what, began, took, connection.port, answer.status, answer.retry_after, retried=retried)
            )
            return answer


def rejected_tokens(base_url: str, tokens: Sequence[str]) -> list[str]:
    """Returns the tokens with which a login fails. Only the newest of each user are tried, because old ones end."""
    by_user: dict[str, list[str]] = {}
    for token in tokens:
        by_user.setdefault(getattr(token, "user_id", ""), []).append(token)
    tokens = [token for own in by_user.values() for token in own[-CHECKED_TOKENS:]]

    def check(some: Sequence[str]) -> list[str]:
        with Connection(base_url) as connection:
            return [token for token in some if connection.ask("POST", LOGIN, {"token": token}).status != 200]

    with ThreadPoolExecutor(CHECKERS) as pool:
        return [token for failed in pool.map(check, (tokens[n::CHECKERS] for n in range(CHECKERS))) for token in failed]
