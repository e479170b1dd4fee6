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
from tests.kit.server import Server, until
from tests.perm.endpoints.conftest import Studio, studio

__all__ = ["studio"]

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
        self.users = [studio.user().user_id for _ in range(users)]
        self.groups = [studio.group(self.project), studio.group(self.project)]
        self.secret = f"a long secret of the client of application {self.app}"
        self.client_id = f"replica{self.app}"
        fields = {"profile": "oidc", "grant_types": ["client_credentials"], "application_id": self.app}
        studio.server.apply({"clients": [{"client_id": self.client_id, "client_secret": self.secret, **fields}]})
        form = {"grant_type": "client_credentials", "client_id": self.client_id, "client_secret": self.secret}
        token = studio.client.post("/proxy/oauth/token", data=form).json()["access_token"]
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

    def patch(self, path: str, **fields: Any) -> dict[str, Any]:
        response = self.root.request("PATCH", path, json=fields)
        assert response.status_code == 200, response.text
        return fields

    def _change_role(self, random: Random) -> Any:
        rules = {
            rule: {"value": random.choice((True, True, False)), "params": random.choice(("", "gold"))}
            for rule in random.sample(("kick", "mute", "sell", "build"), 2)
        }
        meta = {"private_data": rules, "public_data": {"badge": {"value": True}}}
        condition = _condition(random, self.users) if random.random() < 0.5 else {}
        data = {"name": random.choice(ROLES), "meta": meta, "condition": condition, "default": random.random() < 0.1}
        return self.call("roles", action="save", application_id=self.app, data=data)

    def _change_record(self, random: Random) -> Any:
        roles: list[Any] = random.sample(ROLES, random.randrange(3))
        if roles and random.random() < 0.4:
            roles[0] = {"name": roles[0], "expired": int(time.time()) + random.choice((4, 4, 3600, -5))}
        entry = {"value": random.random() < 0.5, "expired": random.choice((0, 0, int(time.time()) + 4))}
        data = {"user_id": random.choice(self.users), "roles": roles, "private_data": {random.choice(RULES[:4]): entry}}
        return self.call("meta/data", action="save", application_id=self.app, data=data)

    def _change_attributes(self, random: Random) -> Any:
        user_id = random.choice(self.users)
        return user_id, self.patch(
            f"/users/{user_id}", tags=random.sample(TAGS, random.randrange(3)), purchases=["dlc"]
        )

    def _change_group(self, random: Random) -> Any:
        conditions = [{"title": "c", "condition": {"tag": "vip"}}] if random.random() < 0.3 else []
        data = {"users": random.sample(self.users, random.randrange(4)), "conditions": conditions}
        return self.call("group/access", group_id=random.choice(self.groups), data=data)

    def _change_grants(self, random: Random) -> Any:
        actions = [
            {"group_id": group, "role": random.choice(ROLES), "action": random.choice(("grant", "revoke"))}
            for group in random.sample(self.groups, random.randrange(3))
        ]
        return self.patch(f"/projects/{self.project}", settings={"services": {str(self.app): {"groups": actions}}})

    def _change_schema(self, random: Random) -> Any:
        data = {"private_data": {"build": {"value": random.random() < 0.5}}}
        return self.call("meta/schema", action="save", application_id=self.app, data=data)

    def _change_ban(self, random: Random) -> Any:
        user_id = random.choice(self.users)
        for ban in self.root.data(f"/users/{user_id}/bans"):
            self.root.request("DELETE", f"/users/{user_id}/bans/{ban['id']}")
        scope = random.choice(("all", {"application_id": self.app}, {"project_id": self.project}))
        body = {"scope": scope, "reason": "test", "until": random.choice((None, int(time.time()) + 4))}
        response = self.root.request("POST", f"/users/{user_id}/bans", json=body)
        assert response.is_success, response.text
        return user_id, body

    def _change_disabled(self, random: Random) -> Any:
        user_id = random.choice(self.users)
        return user_id, self.patch(f"/users/{user_id}", disabled=random.random() < 0.5)


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
def server(own_server: Server) -> Server:
    return own_server
