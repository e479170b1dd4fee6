"""An application with a replica, and random changes of everything that its permissions depend on."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import httpx
import pytest

from sso.replica.replica import Replica
from tests.admin.conftest import Administrator
from tests.conftest import LONG_INTERVALS, WITHOUT_LIMITS
from tests.kit.constants import changed
from tests.kit.server import Server, until
from tests.kit.shared_server import SharedServers
from tests.perm.endpoints.conftest import Studio, studio

__all__ = ["studio"]

MAX_LISTED_USERS = 100
RULES = ("kick", "mute", "sell", "build", "private_data.kick", "public_data.badge", "badge", "unknown")
ROLES = ("r1", "r2", "r3")
TAGS = ("beta", "vip")


class Game:
    """An application of a project, with a few users and a service client."""

    def __init__(self, studio: Studio, users: int = 6) -> None:
        self.studio = studio
        self.root = Administrator.of(studio.root)
        self.project = studio.project()
        self.app = studio.application(self.project, private_data={"build": {"value": True}})
        for role in ROLES:
            studio.role(self.app, role, role)
        self.users = [str(100 * self.app + number) for number in range(users)]
        people = [{"user_id": user_id, "login": f"player{user_id}@example.com"} for user_id in self.users]
        studio.server.apply({"users": people})
        self.groups = [studio.group(self.project), studio.group(self.project)]
        self.secret = f"a long secret of the client of application {self.app}"
        self.client_id = f"replica{self.app}"
        self.bearer: dict[str, str] = {}
        self.save_client(self.secret)
        self.refused = 0  # changes
        self._merged: list[tuple[str, str]] = []

    def save_client(self, secret: str) -> None:
        fields = {"profile": "oidc", "grant_types": ["client_credentials"], "application_id": self.app}
        self.studio.server.apply({"clients": [{"client_id": self.client_id, "client_secret": secret, **fields}]})
        form = {"grant_type": "client_credentials", "client_id": self.client_id, "client_secret": secret}
        token = self.studio.client.post("/proxy/oauth/token", data=form).json()["access_token"]
        self.bearer = {"Authorization": f"Bearer {token}"}

    @contextmanager
    def replica(self, **options: Any) -> Iterator[Replica]:
        with Replica(
            self.app,
            server=self.studio.server.base_url,
            client_id=self.client_id,
            client_secret=self.secret,
            **{"max_stale_s": 600, **options},
        ) as replica:
            assert replica.wait_until_ready(60)
            yield replica

    def questions(self) -> dict[str, Any]:
        return {
            "subject": {"type": "user", "id": "0"},
            "evaluations": [
                {
                    "subject": {"type": "user", "id": user_id},
                    "action": {"name": rule, "properties": {"param": "gold"} if rule == "sell" else {}},
                    "resource": {"type": "application", "id": str(self.app)},
                }
                for user_id in self.users
                for rule in RULES
            ],
        }

    def asked_at_service(self) -> Any:
        response = self.ask_service("/access/v1/evaluations", self.questions())
        assert response.status_code == 200, response.text
        return response.json()

    def ask_service(self, path: str, body: dict[str, Any]) -> httpx.Response:
        return self.studio.client.post(path, json=body, headers=self.bearer)

    def assert_equal(self, replica: Replica, what: str) -> None:
        """The replica gives the answers of the service, as soon as it has read the changes."""

        def are_equal() -> bool:
            expected = self.asked_at_service()
            return bool(replica.answer("/access/v1/evaluations", self.questions()).body == expected)

        if not until(are_equal):
            expected = self.asked_at_service()
            assert replica.answer("/access/v1/evaluations", self.questions()).body == expected, what

    def change(self, random: Random) -> str:
        """Makes one random change. Returns what it was."""
        name = random.choice([name for name in dir(self) if name.startswith("_change_")])
        done: str = f"{name.removeprefix('_change_')} {getattr(self, name)(random)}"
        return done

    def call(self, path: str, **body: Any) -> dict[str, Any]:
        response = self.studio.root.call(path, **body)
        assert response.status == 200, (path, body, response.body)
        return body

    def try_call(self, path: str, **body: Any) -> Any:
        """Makes a change that the service may refuse after other ones: for a user who was deleted, for example."""
        response = self.studio.root.call(path, **body)
        return self._tried(path, body, response.status)

    def try_request(self, method: str, path: str, fields: dict[str, Any] | None = None) -> Any:
        response = self.root.request(method, path, json=fields)
        return self._tried(path, fields, response.status_code)

    def _tried(self, path: str, fields: dict[str, Any] | None, status: int) -> Any:
        assert status < 500, (path, fields)
        self.refused += status >= 300
        return path, fields, status

    def _change_role(self, random: Random) -> Any:
        rules = {
            rule: {"value": random.choice((True, True, False)), "params": random.choice(("", "gold"))}
            for rule in random.sample(("kick", "mute", "sell", "build"), 2)
        }
        meta = {"private_data": rules, "public_data": {"badge": {"value": True}}}
        condition = _condition(random, self.users) if random.random() < 0.5 else {}
        data = {"name": random.choice(ROLES), "meta": meta, "condition": condition, "default": random.random() < 0.1}
        return self.try_call("roles", action="save", application_id=self.app, data=data)

    def _change_record(self, random: Random) -> Any:
        roles: list[Any] = random.sample(ROLES, random.randrange(3))
        if roles and random.random() < 0.4:
            roles[0] = {"name": roles[0], "expired": int(time.time()) + random.choice((4, 4, 3600, -5))}
        entry = {"value": random.random() < 0.5, "expired": random.choice((0, 0, int(time.time()) + 4))}
        data = {"user_id": random.choice(self.users), "roles": roles, "private_data": {random.choice(RULES[:4]): entry}}
        return self.try_call("meta/data", action="save", application_id=self.app, data=data)

    def _change_attributes(self, random: Random) -> Any:
        fields = {"tags": random.sample(TAGS, random.randrange(3)), "purchases": ["dlc"]}
        return self.try_request("PATCH", f"/users/{random.choice(self.users)}", fields)

    def _change_group(self, random: Random) -> Any:
        conditions = [{"title": "c", "condition": {"tag": "vip"}}] if random.random() < 0.3 else []
        data = {"users": random.sample(self.users, random.randrange(4)), "conditions": conditions}
        return self.try_call("group/access", group_id=random.choice(self.groups), data=data)

    def _change_grants(self, random: Random) -> Any:
        actions = [
            {"group_id": group, "role": random.choice(ROLES), "action": random.choice(("grant", "revoke"))}
            for group in random.sample(self.groups, random.randrange(3))
        ]
        settings = {"services": {str(self.app): {"groups": actions}}}
        return self.try_request("PATCH", f"/projects/{self.project}", {"settings": settings})

    def _change_schema(self, random: Random) -> Any:
        data = {"private_data": {"build": {"value": random.random() < 0.5}}}
        return self.try_call("meta/schema", action="save", application_id=self.app, data=data)

    def _change_ban(self, random: Random) -> Any:
        user_id = random.choice(self.users)
        bans = self.root.request("GET", f"/users/{user_id}/bans")
        for ban in bans.json()["data"] if bans.is_success else ():
            self.try_request("DELETE", f"/users/{user_id}/bans/{ban['id']}")
        scope = random.choice(("all", {"application_id": self.app}, {"project_id": self.project}))
        body = {"scope": scope, "reason": "test", "until": random.choice((None, int(time.time()) + 4))}
        return self.try_request("POST", f"/users/{user_id}/bans", body)

    def _change_merged(self, random: Random) -> Any:
        """Merges a user into another one, or undoes the merge before."""
        if self._merged:
            user_id, into = self._merged.pop()
            return self.try_request("POST", f"/users/{into}/unmerge", {"from": user_id})
        user_id, into = random.sample(self.users, 2)
        self._merged.append((user_id, into))
        return self.try_request("POST", f"/users/{user_id}/merge", {"into": into})

    def _change_deleted(self, random: Random) -> Any:
        """Deletes a user. The questions about it go on, and another user joins them."""
        user_id = random.choice(self.users)
        self.users.append(self.studio.user().user_id)
        return self.try_request("DELETE", f"/users/{user_id}")

    def _change_disabled(self, random: Random) -> Any:
        return self.try_request("PATCH", f"/users/{random.choice(self.users)}", {"disabled": random.random() < 0.5})


def role(name: str, rule: str) -> dict[str, Any]:
    return {"name": name, "meta": {"private_data": {rule: {"value": True}}}}


def _condition(random: Random, users: list[str]) -> dict[str, Any]:
    return random.choice(
        (
            {"tag": random.choice(TAGS)},
            {"uid": random.sample(users, 2)},
            {"domain": random.choice(("example.com", "other.org"))},
            {"and": [{"tag": "vip"}, {"purchase": "dlc"}]},
            {"or": [{"tag": "beta"}, {"uid": [users[0]]}]},
            {"domain": "example.com", "time": {random.choice(("from", "until")): int(time.time()) + 4}},
        )
    )


@pytest.fixture
def game(studio: Studio) -> Game:
    return Game(studio)


@pytest.fixture(scope="module")
def server(shared_servers: SharedServers) -> Iterator[Server]:
    """A server that writes one event for the changes of more than a few users."""
    limits = {
        "sso.change_stream.permission_changes.MAX_LISTED_USERS": MAX_LISTED_USERS,
        "sso.perm.changes.state_comparison.MAX_EXACT_USERS": MAX_LISTED_USERS,
    }
    with shared_servers.use(**WITHOUT_LIMITS, **changed(LONG_INTERVALS | limits)) as server:
        yield server
