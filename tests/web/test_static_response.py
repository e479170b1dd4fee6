"""Answers that are made before anybody asks are answers like all others."""

from typing import Any

import pytest

from sso.metrics import Metrics
from sso.web.access_log import AccessLog
from sso.web.static_response import StaticResponse
from tests.kit.server import Server, until

PATHS = ("/proxy/oauth/keys", "/api/permissions/keys")


@pytest.mark.parametrize("path", PATHS)
def test_the_keys_have_the_headers_of_every_answer(server: Server, path: str) -> None:
    with server.client() as client:
        answer, other = client.get(path), client.get("/healthz")
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "public, max-age=10"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    own = {"content-length", "cache-control", "access-control-allow-origin", "etag", "x-request-id", "date"}
    same = {name: value for name, value in other.headers.items() if name not in own}
    assert {name: value for name, value in answer.headers.items() if name not in own} == same
    assert answer.json()["keys"]


@pytest.mark.parametrize("path", PATHS)
def test_who_has_them_need_not_get_them_again(server: Server, path: str) -> None:
    with server.client() as client:
        tag = client.get(path).headers["ETag"]
        for known in (tag, f"W/{tag}", f'"x", {tag}', "*"):
            again = client.get(path, headers={"If-None-Match": known})
            assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
            assert again.headers["X-Frame-Options"] == "DENY"
        assert client.get(path, headers={"If-None-Match": '"x"'}).status_code == 200


@pytest.mark.parametrize("path", PATHS)
def test_other_methods_are_as_ever(server: Server, path: str) -> None:
    with server.client() as client:
        whole, head = client.get(path), client.head(path)
        assert head.content == b""
        assert head.headers["Content-Length"] == whole.headers["Content-Length"]
        assert client.post(path).status_code == 405
        assert set(client.options(path).headers["Allow"].split(", ")) == {"GET", "HEAD", "OPTIONS"}
        assert client.get(path, headers={"X-Long": "a" * 40_000}).status_code == 431


def test_they_are_in_the_log(server: Server) -> None:
    with server.client() as client:
        name = client.get(PATHS[0]).headers["X-Request-Id"]
    assert until(lambda: [line for line in server.log_events("request.answered") if line.get("request") == name])
    (line,) = [line for line in server.log_events("request.answered") if line.get("request") == name]
    assert (line["method"], line["route"], line["status"]) == ("GET", PATHS[0], 200)


async def test_what_has_changed_is_shown() -> None:
    sent: list[Any] = []
    shown = [b"one", b"two"]

    async def send(message: Any) -> None:
        sent.append(message)

    prepared = StaticResponse("/x", lambda: shown[0], "text/plain", {"A": "b"}, AccessLog(Metrics(False)))
    scope = {"type": "http", "method": "GET", "headers": []}
    for _ in range(2):
        await prepared.respond(scope, send)
        shown.reverse()
    assert [message["body"] for message in sent[1::2]] == [b"one", b"two"]
    assert len({dict(message["headers"])[b"etag"] for message in sent[::2]}) == 2
    assert all((b"a", b"b") in message["headers"] for message in sent[::2])
