"""Static responses are the same as responses of Quart, with an ETag."""

from typing import Any

import pytest

from sso.telemetry.metrics import Metrics
from sso.web.access_log import AccessLog
from sso.web.static_response import StaticResponse
from tests.kit.server import Server, until

PATHS = ("/proxy/oauth/keys", "/api/permissions/keys")


@pytest.mark.parametrize("path", PATHS)
def test_static_response_has_the_headers_of_other_responses(server: Server, path: str) -> None:
    with server.client() as client:
        response, other = client.get(path), client.get("/healthz")
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Cache-Control"] == "public, max-age=10"
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    own = {"content-length", "cache-control", "access-control-allow-origin", "vary", "etag", "x-request-id", "date"}
    same = {name: value for name, value in other.headers.items() if name not in own}
    assert {name: value for name, value in response.headers.items() if name not in own} == same
    assert response.json()["keys"]


@pytest.mark.parametrize("path", PATHS)
def test_matching_etag_gets_304(server: Server, path: str) -> None:
    with server.client() as client:
        tag = client.get(path).headers["ETag"]
        for known in (tag, f"W/{tag}", f'"x", {tag}', "*"):
            again = client.get(path, headers={"If-None-Match": known})
            assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
            assert again.headers["X-Frame-Options"] == "DENY"
        assert client.get(path, headers={"If-None-Match": '"x"'}).status_code == 200


@pytest.mark.parametrize("path", PATHS)
def test_other_methods_and_long_heads_are_handled_as_elsewhere(server: Server, path: str) -> None:
    with server.client() as client:
        whole, head = client.get(path), client.head(path)
        assert head.content == b""
        assert head.headers["Content-Length"] == whole.headers["Content-Length"]
        assert client.post(path).status_code == 405
        assert set(client.options(path).headers["Allow"].split(", ")) == {"GET", "HEAD", "OPTIONS"}
        assert client.get(path, headers={"X-Long": "a" * 40_000}).status_code == 431


def test_static_response_is_in_the_access_log(server: Server) -> None:
    with server.client() as client:
        name = client.get(PATHS[0]).headers["X-Request-Id"]
    assert until(lambda: [line for line in server.log_events("request.answered") if line.get("request") == name])
    (line,) = [line for line in server.log_events("request.answered") if line.get("request") == name]
    assert (line["method"], line["route"], line["status"]) == ("GET", PATHS[0], 200)


async def test_changed_content_changes_the_response_and_its_etag() -> None:
    sent: list[Any] = []
    shown = [b"one", b"two"]

    async def send(message: Any) -> None:
        sent.append(message)

    static = StaticResponse("/x", lambda: shown[0], "text/plain", {"A": "b"}, AccessLog(Metrics()))
    scope = {"type": "http", "method": "GET", "headers": []}
    for _ in range(2):
        await static.respond(scope, send)
        shown.reverse()
    assert [message["body"] for message in sent[1::2]] == [b"one", b"two"]
    assert len({dict(message["headers"])[b"etag"] for message in sent[::2]}) == 2
    assert all((b"a", b"b") in message["headers"] for message in sent[::2])
