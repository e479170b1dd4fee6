"""A small load: people who sign in again and again, and a journal of what each of them was told.

It is bounded in everything: people, pace, requests and time. What a journal says was acknowledged must be true for
ever, whatever happens to the server.
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

LOGIN = "/proxy/api/login"
KEYS = "/proxy/oauth/keys"
ANSWER_S = 30.0  # far beyond every promise: a request that hangs shall be seen as one that took long
REQUESTS_MOST = 5000  # per person
REUSES = 10  # of a connection, so that a worker that comes back gets its share
CHECKERS = 4
NEWEST = 15  # tokens of a user: with those that trying them gives, far fewer than a user may have
LATER_S = 0.05  # before the next attempt, after one that was not answered


class Person(NamedTuple):
    login: str
    password: str


@dataclass(frozen=True)
class Entry:
    """One request: what was asked, and what came of it."""

    what: str
    began: float  # on the monotonic clock
    took: float
    port: int  # the client's, which says on which connection it was; 0 if there was none
    status: int = 0  # 0: no answer
    retry_after: str = ""
    broke: str = ""  # how the connection broke
    retried: bool = False  # the connection had been closed while nothing was asked on it

    @property
    def ended(self) -> float:
        return self.began + self.took


class Answer(NamedTuple):
    status: int
    retry_after: str
    data: dict[str, Any]


class Connection:
    """To one server; opened anew when it is lost, or has been used often enough."""

    def __init__(self, base_url: str, answer_s: float = ANSWER_S) -> None:
        self._address = urlsplit(base_url).netloc
        self._answer_s = answer_s
        self._http: http.client.HTTPConnection | None = None
        self.uses = 0
        self.port = 0

    def ask(self, method: str, path: str, body: dict[str, str] | None = None) -> Answer:
        """OSError or HTTPException when no answer came; the connection is then closed."""
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
            self._http = http.client.HTTPConnection(self._address, timeout=self._answer_s)
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
    """What was asked and answered, in the order of the answers."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.tokens: list[
            str
        ] = []  # acknowledged: each of them signs its owner in, until there are too many newer ones
        self.secrets: set[str] = set()

    def learn(self, data: dict[str, Any]) -> None:
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
        """Of the answers."""
        return {entry.status for entry in list(self.entries) if entry.status}

    def slowest(self) -> float:
        return max((entry.took for entry in list(self.entries)), default=0.0)

    def count(self) -> dict[str, int]:
        """For people to read."""
        names = sorted(str(entry.status or entry.broke) for entry in list(self.entries))
        return {name: len(list(group)) for name, group in itertools.groupby(names)}


class Load:
    """Runs while the block does. Each person is one thread with one connection, and asks one thing after another.

    With ``retry``, a request that met a connection closed while idle is sent once more, as every HTTP client does.
    """

    def __init__(
        self, base_url: str, people: Sequence[Person], *, pause: float = 0.01, most_s: float = 60.0, retry: bool = False
    ) -> None:
        self.journal = Journal()
        self._base_url = base_url
        self._pause = pause
        self._most_s = most_s
        self._retry = retry
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._live, args=(person,), daemon=True) for person in people]
        self.journal.secrets |= {person.password for person in people}

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Returns when the last answer has come."""
        self._stop.set()
        for thread in self._threads:
            thread.join(ANSWER_S + 5)
            assert not thread.is_alive(), "a request hangs"

    def wait_for(self, answers: int, status: int = 200, since: float = 0.0, seconds: float = 30.0) -> float:
        """Until so many logins that began after a moment got this answer; when the last of them did."""
        end = time.monotonic() + seconds
        while True:
            found = [entry for entry in self.journal.since(since) if entry.status == status and entry.what != "keys"]
            if len(found) >= answers:
                return found[answers - 1].ended
            assert time.monotonic() < end, f"not {answers} answers {status}: {self.journal.count()}"
            time.sleep(0.01)

    def _live(self, person: Person) -> None:
        end = time.monotonic() + self._most_s
        token = ""
        by_password = {"login": person.login, "password": person.password, "factor": "load"}
        with Connection(self._base_url) as connection:
            for number in range(REQUESTS_MOST):
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
                time.sleep(self._pause if answer and answer.status == 200 else max(self._pause, LATER_S))

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
                broke = type(error).__name__
                self.journal.entries.append(Entry(what, began, took, connection.port, broke=broke, retried=retried))
                return None
            took = time.monotonic() - began
            self.journal.learn(answer.data)
            self.journal.entries.append(
                Entry(what, began, took, connection.port, answer.status, answer.retry_after, retried=retried)
            )
            return answer


def lost(base_url: str, tokens: Sequence[str]) -> list[str]:
    """Which of these acknowledged tokens do not sign in. Only the newest of each user are tried: old ones end."""
    by_user: dict[str, list[str]] = {}
    for token in tokens:
        by_user.setdefault(getattr(token, "user_id", ""), []).append(token)
    tokens = [token for own in by_user.values() for token in own[-NEWEST:]]

    def check(some: Sequence[str]) -> list[str]:
        with Connection(base_url) as connection:
            return [token for token in some if connection.ask("POST", LOGIN, {"token": token}).status != 200]

    with ThreadPoolExecutor(CHECKERS) as pool:
        return [token for found in pool.map(check, (tokens[n::CHECKERS] for n in range(CHECKERS))) for token in found]
