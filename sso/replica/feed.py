"""What a replica reads from the service, as a service client of the application."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from sso.client.call import ApiCall, read_body
from sso.client.credentials import Credentials
from sso.perm.replica.definition import Definition
from sso.replica.request_thread import RequestThread

PAGE_USERS = 5000
MAX_PAGE_BYTES = 512 * 1024 * 1024
MAX_IDS = 100
ANSWER_S = 60.0  # for a response, besides the time that it is held


class ChangesPage(Struct, frozen=True):
    rows: list[list[Any]]
    missing: list[str]
    cursor: str
    version: str
    now: float
    is_snapshot_needed: bool


class Feed:
    """Each method raises ClientError."""

    def __init__(
        self,
        requests: RequestThread,
        url: str,
        application_id: int,
        credentials: Credentials,
        *,
        answer_s: float = ANSWER_S,
        **options: Any,
    ) -> None:
        """``options`` are those of ``httpx.AsyncClient``."""
        self._path = f"/api/admin/applications/{application_id}/replica"
        self._answer_s = answer_s
        own = {"timeout": answer_s, "retries": 0, "max_response_bytes": MAX_PAGE_BYTES}
        self._requests, self._client = requests, requests.open_client(url, credentials, **own | options)

    def definition(self) -> tuple[Definition, str, float]:
        """Returns the definition, the cursor before it was read, and the time of the service."""
        body = self._get("")
        definition = Definition.decode(body["version"], body["data"], body["attributes"])
        return definition, body["cursor"], body["now"]

    def all_users(self) -> Iterator[tuple[str, list[list[Any]]]]:
        """Yields pages of users, each with the version of the definition that it belongs to."""
        for body in self._pages(limit=PAGE_USERS):
            yield body["version"], body["data"]

    def users(self, user_ids: Sequence[str]) -> list[list[Any]]:
        """Returns those of the users that exist."""
        rows: list[list[Any]] = []
        for begin in range(0, len(user_ids), MAX_IDS):
            ids = ",".join(user_ids[begin : begin + MAX_IDS])
            for body in self._pages(ids=ids):
                rows += body["data"]
        return rows

    def find_login(self, login: str) -> list[Any] | None:
        rows: list[list[Any]] = self._get("/users", login=login)["data"]
        return rows[0] if rows else None

    def changes(self, after: str, wait_s: int) -> ChangesPage:
        body = self._get("/changes", wait_s, after=after, wait=wait_s)
        return ChangesPage(body["data"], body["missing"], body["next"], body["version"], body["now"], body["snapshot"])

    def _pages(self, **query: Any) -> Iterator[dict[str, Any]]:
        after: str | None = ""
        while after is not None:
            body = self._get("/users", after=after, **query)
            yield body
            after = body["next"]

    def _get(self, path: str, held_s: float = 0, **query: Any) -> dict[str, Any]:
        call = ApiCall("GET", self._path + path, read_body, query, timeout_s=self._answer_s + held_s)
        return self._requests.send(self._client, call)
