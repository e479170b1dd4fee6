"""Requests to the permission endpoints, for benchmarks and profiles."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson

from scripts.benchmarks.http_clients import Answer, RequestFailed, Scenario, Tally, get, request, run
from tests.kit.server import QUICK, SSO, Server, running
from tests.perm.endpoints.conftest import FACTOR, ApiUser, Studio
from tests.perm.endpoints.tokens import ServiceKey

SETTINGS = QUICK | {
    "SSO_RATE_LOGIN": "0",
    "SSO_RATE_AUTHORIZE": "0",
    "SSO_CONNECTIONS_PER_ADDRESS": "0",
    "SSO_LOG_LEVEL": "warning",
    "SSO_WORKERS": "1",
}
RULES = 5
MET_ROLES = 3  # of the roles with conditions
ENTRIES = 400
QUESTIONS = 100
PLAYERS, FIRST_PLAYER = 100, 5_000_000


def role(number: int, rules: int = RULES) -> dict[str, Any]:
    """Returns a role with a condition; those of the first three are met by the user of the benchmark."""
    kinds = (
        {"domain": f"d{number}.example"},
        {"uid": [str(10_000_000 + number)]},
        {"tag": f"tag{number}"},
        {"or": [{"purchase": f"p{number}"}, {"and": [{"tag": f"x{number}"}, {"domain": f"y{number}.example"}]}]},
        {"ip": f"10.{number % 250}.{number // 250}.0/24"},
    )
    condition = {"domain": "example.com"} if number < MET_ROLES else kinds[number % len(kinds)]
    meta = {"private_data": {f"area{number}": {f"rule{at}": {"value": True} for at in range(rules)}}}
    return {"name": f"role{number}", "condition": condition, "meta": meta}


@dataclass(frozen=True)
class PermissionTarget:
    """A running service with an application whose user holds three of its roles."""

    server: Server
    studio: Studio
    player: ApiUser
    application_id: int
    access_key: str
    service_jwt: str
    players: list[str]  # the ids of other users who hold the same roles

    def save_roles(self, roles: int, rules: int = RULES) -> None:
        data = {"roles": {f"role{number}": role(number, rules) for number in range(roles)}}
        saved = self.studio.root.call("meta/schema", action="save", application_id=self.application_id, data=data)
        assert saved.status == 200, saved

    def save_entries(self) -> None:
        """Gives the user about 400 list entries."""
        self.save_roles(10, ENTRIES // MET_ROLES + 1)


@contextmanager
def running_target(dsn: str, **settings: str) -> Iterator[PermissionTarget]:
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder), SSO, **{**SETTINGS, "SSO_DATABASE_URL": dsn, **settings}) as server,
        server.client() as client,
    ):
        yield build_target(server, client)


def build_target(server: Server, client: httpx.Client) -> PermissionTarget:
    """Creates the application and its users on a running service."""
    studio = Studio(server, client)
    application_id = studio.application(studio.project())
    key = studio.root.call("accessKey", action="save", application_id=application_id, data={"comment": "bench"})
    service_jwt = ServiceKey().trusted_by(studio, application_id).sign(server, application_id)
    players = [str(FIRST_PLAYER + number) for number in range(PLAYERS)]
    server.apply({"users": [{"user_id": user_id, "login": f"p{user_id}@example.com"} for user_id in players]})
    target = PermissionTarget(server, studio, studio.user(), application_id, key.data["hash"], service_jwt, players)
    target.save_roles(10)
    return target


def _post(path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> bytes:
    sent = {"Content-Type": "application/json", **headers}
    return request("POST", f"/api/permissions/{path}", sent, orjson.dumps(body))


def _own(target: PermissionTarget, path: str, **body: Any) -> bytes:
    """A request of the user with the device factor."""
    return _post(path, body, {"Authorization": f"Bearer {target.player.jwt}", "Factor": FACTOR})


def _get(target: PermissionTarget, kind: str) -> dict[str, Any]:
    return {"action": "get", "application_id": target.application_id, "data": {"type": kind}}


def roles_by_key(target: PermissionTarget) -> bytes:
    body = _get(target, "roles")
    body["data"]["user_id"] = target.player.user_id
    return _post("meta/data", body, {"Authorization": f"Bearer {target.access_key}"})


def list_by_service(target: PermissionTarget) -> bytes:
    """A game server reads its player: the user's JWT and the service JWT."""
    headers = {"Authorization": f"Bearer {target.player.jwt}", "Service-Jwt": target.service_jwt}
    return _post("meta/data", _get(target, "list_short"), headers)


def check(target: PermissionTarget, questions: int = QUESTIONS, players: Sequence[str] = ()) -> bytes:
    """A game server asks about many players: half of the answers are yes. ``players`` has other users to ask about."""
    ids = players or target.players
    asked = [
        {"user_id": ids[number % len(ids)], "rule": f"area{number % 6}.rule{number % RULES}"}
        for number in range(questions)
    ]
    headers = {"Authorization": f"Bearer {target.player.jwt}", "Service-Jwt": target.service_jwt}
    return _post("check", {"application_id": target.application_id, "data": {"questions": asked}}, headers)


def own_check(target: PermissionTarget) -> bytes:
    """A user asks about itself."""
    question = {"user_id": target.player.user_id, "rule": "area0.rule0"}
    return _own(target, "check", application_id=target.application_id, data={"questions": [question]})


def evaluation(target: PermissionTarget) -> bytes:
    """The question of "check by user" in the form of AuthZEN, with the same credentials."""
    body = {
        "subject": {"type": "user", "id": target.player.user_id},
        "action": {"name": "area0.rule0"},
        "resource": {"type": "application", "id": str(target.application_id)},
    }
    headers = {"Authorization": f"Bearer {target.player.jwt}", "Factor": FACTOR, "Content-Type": "application/json"}
    return request("POST", "/access/v1/evaluation", headers, orjson.dumps(body))


REQUESTS: Mapping[str, Callable[[PermissionTarget], bytes]] = {
    "list_short": lambda target: _own(target, "meta/data", **_get(target, "list_short")),
    "list": lambda target: _own(target, "meta/data", **_get(target, "list")),
    "tree": lambda target: _own(target, "meta/data", **_get(target, "tree")),
    "list by service": list_by_service,
    "roles by key": roles_by_key,
    "user info": lambda target: _own(target, "user/info"),
    "check 100": check,
    "check 1": lambda target: check(target, 1),
    "check by user": own_check,
    "AuthZEN evaluation by user": evaluation,
    "key set": lambda _: get("/proxy/oauth/keys"),  # a constant response, to compare with
}


def load(target: PermissionTarget, name: str, connections: int, seconds: float) -> Tally:
    """Repeats the request on each connection until the time is over."""
    sent = REQUESTS[name](target)

    def ask(_number: int) -> Scenario:
        answer: Answer = yield sent
        if answer.status != 200:
            raise RequestFailed(f"{answer.status} {answer.body[:200]!r}")

    return run(target.server.base_url, connections, seconds, ask)
