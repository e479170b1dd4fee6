"""The examples of docs/sdk/python.rst run as they are printed, with the real frameworks and a real service."""

import hashlib
import hmac
import json
import re
import textwrap
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.kit.server import Server
from tests.sdk.conftest import SECRET

PAGE = (Path(__file__).parents[2] / "docs/sdk/python.rst").read_text()
BLOCK = re.compile(r"\.\. code-block:: python\n\n((?:    .*\n|\n)+)")
HOW = "it is in the group dev of pyproject.toml: scripts/test installs it"


def run_example(server: Server, containing: str, **names: Any) -> dict[str, Any]:
    """Runs the only example of the page that contains this text, and returns its names."""
    [block] = [block for block in BLOCK.findall(PAGE) if containing in block]
    names = {"url": server.base_url, "secret": SECRET, "user_id": "4711", "webhook_secret": SECRET} | names
    exec(compile(textwrap.dedent(block), "docs/sdk/python.rst", "exec"), names)
    return names


# The statuses of /inventory and /kick.
EXPECTED = {"nobody": (401, 401), "forged": (401, 401), "bob": (200, 403), "ann": (200, 200)}


async def test_fastapi(server: Server, players: dict[str, dict[str, str]]) -> None:
    pytest.importorskip("fastapi", reason=HOW)
    app = run_example(server, "FastAPI()")["app"]
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://game") as client:
        for name, (inventory, kick) in EXPECTED.items():
            first = await client.get("/inventory", headers=players[name])
            assert (first.status_code, inventory == 401) == (inventory, "WWW-Authenticate" in first.headers), name
            assert (await client.post("/kick", headers=players[name])).status_code == kick, name
        assert (await client.get("/inventory", headers=players["ann"])).json() == {"user_id": "4711"}


def test_flask(server: Server, players: dict[str, dict[str, str]]) -> None:
    client = run_example(server, "Flask(")["app"].test_client()
    for name, (inventory, kick) in EXPECTED.items():
        assert client.get("/inventory", headers=players[name]).status_code == inventory, name
        assert client.post("/kick", headers=players[name]).status_code == kick, name
    assert client.get("/inventory", headers=players["ann"]).json == {"user_id": "4711"}


def test_django(server: Server, players: dict[str, dict[str, str]]) -> None:
    pytest.importorskip("django", reason=HOW)
    from django.conf import settings
    from django.http import HttpResponse
    from django.test import RequestFactory

    credentials = {"client_id": "tanks-server", "client_secret": SECRET, "application_id": 10}
    settings.configure(SSO={"url": server.base_url, **credentials})
    views, requests = run_example(server, "sso.client.django"), RequestFactory()
    for name, (inventory, kick) in EXPECTED.items():
        assert views["inventory"](requests.get("/", headers=players[name])).status_code == inventory, name
        assert views["kick"](requests.post("/", headers=players[name])).status_code == kick, name

    from sso.client.django import PlayerMiddleware

    middleware = PlayerMiddleware(lambda request: HttpResponse(getattr(request.player, "user_id", "nobody")))
    for name, text in (("nobody", b"nobody"), ("ann", b"4711")):
        assert middleware(requests.get("/", headers=players[name])).content == text
    for authorization in ("Basic YTpi", "Token 1", "", "bearer"):
        assert middleware(requests.get("/", headers={"Authorization": authorization})).content == b"nobody"
    assert middleware(requests.get("/", headers=players["forged"])).status_code == 401
    lower = players["ann"]["Authorization"].replace("Bearer ", "bEARER ")
    assert middleware(requests.get("/", headers={"Authorization": lower})).content == b"4711"


async def test_factor_is_asked_for_only_if_it_is_required(server: Server, players: dict[str, dict[str, str]]) -> None:
    from sso.client import AsyncPlayerVerifier, PlayerVerifier
    from sso.client.player_guard import AsyncPlayerGuard, PlayerDenied, PlayerGuard

    verifier, async_verifier = PlayerVerifier(server.base_url), AsyncPlayerVerifier(server.base_url)
    bearer = {"Authorization": players["ann"]["Authorization"]}
    for headers in (bearer, bearer | {"Factor": ""}, players["thief"]):
        assert PlayerGuard(verifier).player(headers).user_id == "4711"
        assert (await AsyncPlayerGuard(async_verifier).player(headers)).user_id == "4711"
        with pytest.raises(PlayerDenied, match="factor") as denied:
            PlayerGuard(verifier, require_factor=True).player(headers)
        with pytest.raises(PlayerDenied, match="factor") as async_denied:
            await AsyncPlayerGuard(async_verifier, require_factor=True).player(headers)
        assert (denied.value.status, async_denied.value.status) == (401, 401)
    assert PlayerGuard(verifier, require_factor=True).player(players["ann"]).user_id == "4711"


def test_service_that_is_away_is_503(players: dict[str, dict[str, str]]) -> None:
    from sso.client import PlayerVerifier, SsoClient
    from sso.client.player_guard import PlayerDenied, PlayerGuard
    from tests.kit.ports import free_port

    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(PlayerDenied, match="unavailable") as denied:
        PlayerGuard(PlayerVerifier(url), SsoClient(url, retries=0)).player(players["ann"])
    assert (denied.value.status, denied.value.headers) == (503, {"Retry-After": "5"})


def test_players_are_verified_and_asked_about(server: Server, players: dict[str, dict[str, str]]) -> None:
    names = run_example(server, "def player_of")
    assert names["player_of"](players["ann"]["Authorization"].removeprefix("Bearer ")) == "4711"
    assert names["player_of"]("a.b.c") is None
    names = run_example(server, "may_write, may_kick")
    assert (names["may_write"], names["may_kick"]) == (True, True)


def test_changes_are_followed(server: Server, tmp_path: Path) -> None:
    for roles in (["kicker"], []):  # bob has no role before and afterwards
        change = {"user_id": "4712", "application_id": 10, "data": {"roles": roles}}
        (tmp_path / "change.json").write_text(json.dumps({"permissions": [change]}))
        server.sso("apply", str(tmp_path / "change.json"))
    stream = run_example(server, "def follow")["follow"]("")
    assert ("permissions_changed", "4712") in stream  # it ends with the first one that is found
    stream.close()


def test_webhooks_are_read(server: Server) -> None:
    receive = run_example(server, "def receive")["receive"]
    body, now = json.dumps({"id": "1", "type": "user_disabled"}).encode(), int(time.time())
    signature = hmac.new(SECRET.encode(), f"{now}.".encode() + body, hashlib.sha256).hexdigest()
    assert receive({"Webhook-Signature": f"t={now},v1={signature}"}, body) == 204
    assert receive({"Webhook-Signature": f"t={now},v1={signature}"}, body + b" ") == 403
