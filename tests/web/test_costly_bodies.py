"""Bodies that take long to parse: the number of values is limited, and they are parsed in a thread."""

import threading
from typing import Any

import pytest
import trio

from sso.app import build_app
from sso.health import Health
from sso.services import Services
from sso.telemetry.metrics import Metrics
from sso.web import request
from sso.web.body import CHEAP_BYTES, MAX_SCHEMA_VALUES, MAX_VALUES, ParsedBody, is_cheap, parse_body
from tests.kit.server import Server

PERMISSIONS = "/api/permissions"
SCHEMAS = ("/roles", "/meta/schema", "/meta/data")
OTHERS = ("/application", "/user/info", "/publish", "/project", "/group", "/audit")
JSON = {"Content-Type": "application/json"}


def values(count: int, value: bytes = b"{}") -> bytes:
    """A body with so many values besides itself and the array."""
    return b'{"a":[' + b",".join([value] * count) + b"]}"


@pytest.mark.parametrize("path", ["/proxy/api/login", *(PERMISSIONS + path for path in OTHERS)])
def test_body_with_more_than_10000_values_gets_400(server: Server, path: str) -> None:
    with server.client() as client:
        refused = client.post(path, content=values(MAX_VALUES + 1, b"0"), headers=JSON)
        assert (refused.status_code, "10000 values" in refused.text) == (400, True)
        accepted = client.post(path, content=values(MAX_VALUES - 10, b"0"), headers=JSON)
        assert "values" not in accepted.text


@pytest.mark.parametrize("path", SCHEMAS)
def test_permission_schemas_may_have_more_values(server: Server, path: str) -> None:
    with server.client() as client:
        assert client.post(PERMISSIONS + path, content=values(MAX_VALUES * 2, b"0"), headers=JSON).status_code == 401
        refused = client.post(PERMISSIONS + path, content=values(MAX_SCHEMA_VALUES + 1, b"0"), headers=JSON)
        assert refused.status_code == 400


def test_invalid_costly_body_gets_400_before_401(server: Server) -> None:
    with server.client() as client:
        for body in (
            values(4000)[:-1],
            values(4000) + b"x",
            b'{"a":"' + b"x" * CHEAP_BYTES,
            b'{"a":1,"a":2}' + b" " * CHEAP_BYTES,
        ):
            assert client.post(f"{PERMISSIONS}/user/info", content=body, headers=JSON).status_code == 400
        assert client.post(f"{PERMISSIONS}/user/info", content=values(4000), headers=JSON).status_code == 401


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"jwt":"' + b"x" * 3000 + b'"}', True),
        (b'{"a":"' + b"x" * (CHEAP_BYTES - 10) + b'"}', True),
        (b'{"a":"' + b"x" * CHEAP_BYTES + b'"}', False),
        (values(300), True),
        (values(1001), False),
        (values(2000, b"0"), False),
        (b'{"a":"' + b"\\u0041" * 1001 + b'"}', False),
        (b"a=" + b"%41" * 1001, False),
        (b"a=1&" * 1001, False),
    ],
)
def test_cost_is_estimated_from_size_and_number_of_parts(body: bytes, expected: bool) -> None:
    assert is_cheap(body) == expected


@pytest.fixture
async def threads(services: Services, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """An application, and the threads in which it parses bodies."""
    seen: dict[str, Any] = {"app": build_app(services, Health(), Metrics()), "parsed": []}

    def parse(*arguments: Any, **options: Any) -> ParsedBody:
        seen["parsed"].append(threading.get_ident())
        return parse_body(*arguments, **options)

    monkeypatch.setattr(request, "parse_body", parse)
    return seen


@pytest.mark.parametrize(("count", "in_loop"), [(100, True), (4000, False)])
async def test_costly_bodies_are_parsed_in_a_thread(threads: dict[str, Any], count: int, in_loop: bool) -> None:
    response = await threads["app"].test_client().post(f"{PERMISSIONS}/user/info", data=values(count), headers=JSON)
    assert response.status_code == 401
    (ident,) = threads["parsed"]
    assert (ident == threading.get_ident()) == in_loop


async def test_event_loop_runs_while_a_body_is_parsed(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser waits here until the event loop has served another request."""
    started, proceed = threading.Event(), threading.Event()

    def parse(raw: bytes, *arguments: Any, **options: Any) -> ParsedBody:
        if not is_cheap(raw):
            started.set()
            assert proceed.wait(60)
        return parse_body(raw, *arguments, **options)

    monkeypatch.setattr(request, "parse_body", parse)
    client = build_app(services, Health(), Metrics()).test_client()
    statuses: list[int] = []

    async def send(body: bytes) -> None:
        statuses.append((await client.post(f"{PERMISSIONS}/user/info", data=body, headers=JSON)).status_code)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send, values(4000))
        while not started.is_set():  # noqa: ASYNC110 - another thread sets it
            await trio.sleep(0.01)
        await send(values(1))
        assert statuses == [401]
        proceed.set()
    assert statuses == [401, 401]
