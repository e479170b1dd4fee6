"""A revoked permission is invalid for every request that starts after the response, on every worker.

SSO_TEST_ROUNDS=2000 runs two thousand rounds.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pytest

from tests.kit.long_tests import takes_long
from tests.perm.endpoints.conftest import ApiResponse, ApiUser, Studio
from tests.perm.endpoints.connections import ROUNDS, Connection, connect_to_each_worker

TIMES = ROUNDS or 10  # every way, by both workers in turn

pytestmark = [pytest.mark.timeout(120 + TIMES), pytest.mark.two_workers]


class Reader(Protocol):
    def call(self, path: str, **body: Any) -> ApiResponse: ...


class Stale:
    """A planted fault: every response is given twice."""

    def __init__(self, connection: Connection) -> None:
        self._wire = connection
        self._known: ApiResponse | None = None

    def call(self, path: str, **body: Any) -> ApiResponse:
        known = self._known
        response = known or self._wire.call(path, **body)
        self._known = None if known else response
        return response


class Cached:
    """A planted fault: responses are kept for 50 ms."""

    def __init__(self, connection: Connection) -> None:
        self._wire = connection
        self._known: dict[str, tuple[float, ApiResponse]] = {}

    def call(self, path: str, **body: Any) -> ApiResponse:
        read_at, response = self._known.get(str(body), (0.0, None))
        if response is None or time.monotonic() - read_at > 0.05:
            response = self._wire.call(path, **body)
            self._known[str(body)] = time.monotonic(), response
        return response


class Ground:
    """A user who can get one rule from several sources; each source can be granted and revoked."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.ann: ApiUser = studio.user()
        self.project = studio.project()
        self.app = studio.application(self.project)
        self.group = studio.group(self.project)
        self.tagged_group = studio.group(self.project)
        self.role = {"name": "guard", "meta": {"private_data": {"patrol": {"value": True}}}}
        studio.role(self.app, "granted", "patrol")
        studio.role(self.app, "tagged", "patrol", condition={"tag": "guard"})
        groups = (self.group, self.tagged_group)
        actions = [{"group_id": group_id, "role": "granted", "action": "grant"} for group_id in groups]
        self.settings = {"services": {str(self.app): {"groups": actions}}}
        self._settings(studio.root, self.settings)
        self.ways: list[Callable[[Connection, bool], list[ApiResponse]]] = [
            self.assignment, self.role_itself, self.own_data, self.membership_of_group, self.schema,
            self.role_content, self.group_condition, self.user_tags, self.grant_of_project, self.membership_of_project,
        ]  # fmt: skip

    def _data(self, connection: Connection, **data: Any) -> ApiResponse:
        saved = {"user_id": self.ann.user_id, **data}
        return connection.call("meta/data", action="save", application_id=self.app, data=saved)

    def _role(self, connection: Connection, value: bool = True) -> ApiResponse:
        role = {**self.role, "meta": {"private_data": {"patrol": {"value": value}}}}
        return connection.call("roles", action="save", application_id=self.app, data=role)

    def _settings(self, caller: Connection | ApiUser, settings: dict[str, Any]) -> ApiResponse:
        return caller.call("project", action="save", data={"id": self.project, "settings": settings})

    def _users(self, connection: Connection, give: bool) -> ApiResponse:
        users = [self.ann.user_id] if give else []
        return connection.call("group/access", group_id=self.group, data={"users": users})

    def assignment(self, connection: Connection, give: bool) -> list[ApiResponse]:
        if give:
            return [self._role(connection), self._data(connection, roles=["guard"])]
        return [self._data(connection, roles=[])]

    def role_itself(self, connection: Connection, give: bool) -> list[ApiResponse]:
        if give:
            return self.assignment(connection, True)
        return [connection.call("roles", action="delete", application_id=self.app, data={"name": "guard"})]

    def role_content(self, connection: Connection, give: bool) -> list[ApiResponse]:
        if give:
            return [self._data(connection, private_data={}), *self.assignment(connection, True)]
        return [self._role(connection, value=False)]

    def own_data(self, connection: Connection, give: bool) -> list[ApiResponse]:
        return [self._data(connection, private_data={"patrol": {"value": give}})]

    def membership_of_group(self, connection: Connection, give: bool) -> list[ApiResponse]:
        reset = [self._data(connection, private_data={}), self._settings(connection, self.settings)] if give else []
        return [*reset, self._users(connection, give)]

    def grant_of_project(self, connection: Connection, give: bool) -> list[ApiResponse]:
        if give:
            return self.membership_of_group(connection, True)
        return [self._settings(connection, {"services": {str(self.app): {"groups": []}}})]

    def group_condition(self, connection: Connection, give: bool) -> list[ApiResponse]:
        reset = [self._users(connection, False), self._data(connection, private_data={}, roles=[])] if give else []
        reset += [self._settings(connection, self.settings)] if give else []
        conditions = [{"title": "all", "condition": {"uid": [self.ann.user_id]}}] if give else []
        changed = connection.call("group/access", group_id=self.tagged_group, data={"conditions": conditions})
        return [*reset, changed]

    def user_tags(self, connection: Connection, give: bool) -> list[ApiResponse]:
        reset = [self._data(connection, private_data={}, roles=[])] if give else []
        tags = {"tags": ["guard"] if give else []}
        return [*reset, connection.request("PATCH", f"/api/admin/users/{self.ann.user_id}", tags)]

    def schema(self, connection: Connection, give: bool) -> list[ApiResponse]:
        data = {"private_data": {"patrol": {"value": give}}}
        return [connection.call("meta/schema", action="save", application_id=self.app, data=data)]

    def membership_of_project(self, connection: Connection, give: bool) -> list[ApiResponse]:
        keeper = {"user_id": self.studio.keeper.user_id, "roles": {"project": ["admin"]}}
        member = {"user_id": self.ann.user_id, "roles": {"project": ["viewer"]}}
        data = {"id": self.project, "users": [keeper, *([member] if give else [])]}
        return [connection.call("project/membership", action="save", data=data)]

    def sees(self, reader: Reader, way: object = None) -> bool:
        """Whether the user has the rule that the way gives: of the application, or of the project."""
        is_access = way == self.membership_of_project
        rule, application_id = (f"{self.project}/project.can_view_project", 1) if is_access else ("patrol", self.app)
        body: dict[str, Any] = {"action": "get", "application_id": application_id, "data": {"type": "list_short"}}
        return rule in reader.call("meta/data", **body).data


def stale_rounds(ground: Ground, writers: list[Connection], readers: list[Reader], rounds: int) -> int:
    """The number of rounds in which a reader still saw a rule after its revocation."""
    stale = 0
    for number in range(rounds):
        way = ground.ways[number % len(ground.ways)]
        writer = writers[(number + number // len(ground.ways)) % len(writers)]
        assert all(response.status == 200 for response in way(writer, True))
        for reader in readers:  # this fills any cache
            assert ground.sees(reader, way), way
        assert all(response.status == 200 for response in way(writer, False))
        stale += any(ground.sees(reader, way) for reader in readers)
    return stale


@pytest.fixture(scope="module")
def ground(studio: Studio) -> Ground:
    return Ground(studio)


@pytest.fixture(scope="module")
def writers(studio: Studio) -> Iterator[list[Connection]]:
    connections = connect_to_each_worker(studio.server, studio.root)
    yield connections
    for connection in connections:
        connection.close()


@pytest.fixture(scope="module")
def readers(studio: Studio, ground: Ground) -> Iterator[list[Connection]]:
    connections = connect_to_each_worker(studio.server, ground.ann)
    yield connections
    for connection in connections:
        connection.close()


def test_granted_rule_is_visible_on_every_worker_and_revoked_rule_on_none(
    ground: Ground, writers: list[Connection], readers: list[Connection]
) -> None:
    assert len(readers) == 2
    assert stale_rounds(ground, writers, list(readers), TIMES) == 0


def test_planted_cache_is_detected(ground: Ground, writers: list[Connection], readers: list[Connection]) -> None:
    planted: list[Reader] = [Stale(readers[0]), readers[1]]
    assert stale_rounds(ground, writers, planted, 4) == 4  # the fourth way undoes the third one, as other tests need


@takes_long
def test_planted_cache_of_50_ms_is_detected(
    ground: Ground, writers: list[Connection], readers: list[Connection]
) -> None:
    """Depends on the speed of the machine: the cache forgets before a revocation that takes longer."""
    stale = 0
    for _ in range(100):
        assert all(response.status == 200 for response in ground.assignment(writers[0], True))
        planted = Cached(readers[1])
        assert ground.sees(planted)
        assert all(response.status == 200 for response in ground.assignment(writers[0], False))
        stale += ground.sees(planted)
    assert stale > 0


def test_rule_added_after_a_user_left_the_group_is_never_visible_to_the_user(
    ground: Ground, writers: list[Connection], readers: list[Connection]
) -> None:
    """The user leaves the group, then the group gets a rule. No reader sees the rule for the user."""
    studio = ground.studio
    assert all(response.status == 200 for response in ground.membership_of_group(writers[0], True))
    for number in range(max(4, ROUNDS // 10)):
        first, second = writers[number % 2], writers[(number + 1) % 2]
        studio.role(ground.app, "granted", "patrol")
        assert first.call("group/access", group_id=ground.group, data={"users": [ground.ann.user_id]}).status == 200
        assert [ground.sees(reader) for reader in readers] == [True, True]
        assert first.call("group/access", group_id=ground.group, data={"users": []}).status == 200
        more = {"name": "granted", "meta": {"private_data": {"secret": {"value": True}, "patrol": {"value": True}}}}
        assert second.call("roles", action="save", application_id=ground.app, data=more).status == 200
        for reader in readers:
            response = reader.call("meta/data", action="get", application_id=ground.app, data={"type": "list_short"})
            assert "secret" not in response.data
    assert first.call("group/access", group_id=ground.group, data={"users": []}).status == 200


@pytest.fixture
def fresh(studio: Studio) -> Iterator["FreshGround"]:
    ground = FreshGround(studio)
    yield ground
    for reader in ground.readers:
        reader.close()


class FreshGround:
    """A user, and an application of a project with an access key. What ends here does not come back."""

    def __init__(self, studio: Studio) -> None:
        self.user = studio.user()
        self.project = studio.project()
        self.app = studio.application(self.project)
        self.group = studio.group(self.project, self.user.user_id)
        studio.role(self.app, "granted", "patrol")
        actions = [{"group_id": self.group, "role": "granted", "action": "grant"}]
        settings = {"services": {str(self.app): {"groups": actions}}}
        assert studio.root.call("project", action="save", data={"id": self.project, "settings": settings}).status == 200
        created = studio.root.call("accessKey", action="save", application_id=self.app, data={"comment": "server"})
        self.key: dict[str, Any] = created.data
        self.readers = connect_to_each_worker(studio.server, self.user)

    def roles(self) -> list[ApiResponse]:
        """The response of each worker to a get of the user's roles with the access key."""
        return self._get("roles", {"Authorization": f"Bearer {self.key['hash']}"})

    def rules(self) -> list[ApiResponse]:
        """The response of each worker to a get of the user's own rules."""
        return self._get("list_short", {"Authorization": f"Bearer {self.user.jwt}"})

    def _get(self, list_type: str, headers: dict[str, str]) -> list[ApiResponse]:
        data = {"type": list_type, "user_id": self.user.user_id}
        body = {"action": "get", "application_id": self.app, "data": data}
        for reader in self.readers:
            reader.headers.update(headers)
        return [reader.call("meta/data", **body) for reader in self.readers for _ in range(2)]


def delete_key(root: Connection, fresh: FreshGround) -> ApiResponse:
    return root.call("accessKey", action="delete", application_id=fresh.app, data={"id": fresh.key["id"]})


def remove_application(root: Connection, fresh: FreshGround) -> ApiResponse:
    return root.call("application", action="delete", data={"application_id": fresh.app})


def remove_project(root: Connection, fresh: FreshGround) -> ApiResponse:
    return root.call("project", action="delete", data={"id": fresh.project})


def disable_user(root: Connection, fresh: FreshGround) -> ApiResponse:
    return root.request("PATCH", f"/api/admin/users/{fresh.user.user_id}", {"disabled": True})


@pytest.mark.parametrize(
    ("end", "of_rules", "of_roles"),
    [
        (delete_key, 200, 401),
        (remove_application, 403, 401),
        (remove_project, 403, 401),
        (disable_user, 401, 200),
    ],
)
def test_ended_access_is_refused_on_every_worker(
    studio: Studio,
    writers: list[Connection],
    fresh: FreshGround,
    end: Callable[[Connection, FreshGround], ApiResponse],
    of_rules: int,
    of_roles: int,
) -> None:
    assert [response.data for response in fresh.rules()] == [["patrol"]] * 4  # this fills any cache
    assert [response.data for response in fresh.roles()] == [["granted"]] * 4
    assert end(writers[0], fresh).status == 200
    assert [response.status for response in fresh.rules()] == [of_rules] * 4
    assert [response.status for response in fresh.roles()] == [of_roles] * 4


def test_moved_application_has_no_roles_of_its_old_project(
    studio: Studio, writers: list[Connection], fresh: FreshGround
) -> None:
    assert [response.data for response in fresh.rules()] == [["patrol"]] * 4
    data = {"application_id": fresh.app, "project_id": studio.project()}
    assert writers[0].call("application", action="save", data=data).status == 200
    assert [response.data for response in fresh.rules()] == [[]] * 4
    assert [response.status for response in fresh.roles()] == [401] * 4
