"""Callers of the management API, and a client of server-sent events."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson
import pytest

from tests.admin.conftest import Administrator, administrator, manager, root, service_client, studio
from tests.kit.server import Server
from tests.perm.endpoints.conftest import Studio

__all__ = ["administrator", "manager", "root", "service_client", "studio"]


@dataclass
class SentEvent:
    """An event of a stream of server-sent events, by the rules of the HTML standard."""

    id: str = ""
    event: str = "message"
    data: Any = None
    comments: list[str] = field(default_factory=list)


def sent_events(response: httpx.Response) -> Iterator[SentEvent]:
    """Yields the blocks of the stream: events, and blocks without data, such as heartbeats."""
    block = SentEvent()
    for line in response.iter_lines():
        name, _, value = line.partition(":")
        match name:
            case "" if not line:
                yield block
                block = SentEvent()
            case "":
                block.comments.append(value.strip())
            case "id":
                block.id = value.strip()
            case "event":
                block.event = value.strip()
            case "data":
                block.data = orjson.loads(value)


def service_client_of(server: Server, studio: Studio, application_id: int) -> Administrator:
    """A service client of this application."""
    client_id, secret = f"reader{application_id}", f"a secret of the client of {application_id}"
    fields = {"profile": "oidc", "grant_types": ["client_credentials"], "application_id": application_id}
    server.save_accounts(clients=[{"client_id": client_id, "client_secret": secret, **fields}])
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
    token = studio.client.post("/proxy/oauth/token", data=form).json()["access_token"]
    return Administrator(studio.client, {"Authorization": f"Bearer {token}"})


def newest_cursor(caller: Administrator) -> str:
    """Returns the cursor at the end of the stream."""
    after = ""
    while True:
        body = caller.get("/changes", after=after, limit=200).json()
        after = body["next"]
        if not body["data"]:
            return str(after)


def changes_of(caller: Administrator, after: str, user_id: str, count: int) -> list[dict[str, Any]]:
    """Returns the next ``count`` events of a user."""
    events: list[dict[str, Any]] = []
    for _ in range(100):
        body = caller.get("/changes", after=after, wait=5).json()
        events += [event for event in body["data"] if event.get("user_id") == user_id]
        after = body["next"]
        if len(events) >= count:
            return events
    pytest.fail(f"{len(events)} of {count} events")
