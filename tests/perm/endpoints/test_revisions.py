"""Revisions: a check that demands the revision of a revocation never shows the revoked rule, on any worker.

SSO_TEST_ROUNDS=2000 runs two thousand rounds.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import httpx
import pytest

from tests.kit.oauth import TOKEN, new_site
from tests.perm.endpoints.conftest import FACTOR, ApiUser, Studio
from tests.perm.endpoints.connections import ROUNDS, Connection, connect_to_each_worker

TIMES = ROUNDS or 4
STATED, DEMANDED = "Permission-Revision", "At-Least-Revision"

pytestmark = [pytest.mark.timeout(240 + TIMES), pytest.mark.two_workers]


class Ground:
    """A user with a role that is given and taken, and the credentials that ask about it."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.ann = studio.user()
        self.app = studio.application(studio.project())
        studio.role(self.app, "guard", "patrol")
        saved = studio.root.call("accessKey", action="save", application_id=self.app, data={})
        self.access_key = {"Authorization": f"Bearer {saved.data['hash']}"}
        attributes: dict[str, Any] = {"profile": "oidc", "grant_types": ["client_credentials"], "redirect_hosts": []}
        service = new_site(studio.server, application_id=self.app, **attributes)
        granted = service.http.post(TOKEN, data={"grant_type": "client_credentials"}, headers=service.basic())
        self.service = {"Authorization": f"Bearer {granted.json()['access_token']}"}
        self.user = {"Authorization": f"Bearer {self.ann.jwt}", "Factor": FACTOR}
        self.root = {"Authorization": f"Bearer {studio.root.jwt}", "Factor": FACTOR}

    def set_role(self, connection: Connection, *roles: str) -> None:
        data = {"user_id": self.ann.user_id, "roles": list(roles)}
        assert connection.call("meta/data", action="save", application_id=self.app, data=data).status == 200

    def next_revision(self, after: str) -> str:
        """Waits for the next event of the user and returns its cursor."""
        for _ in range(100):
            query: dict[str, Any] = {"after": after, "wait": 20}
            page = self.studio.client.get("/api/admin/changes", params=query, headers=self.root, timeout=60).json()
            for event in page["data"]:
                if event.get("user_id") == self.ann.user_id:
                    return str(event["id"])
            after = page["next"]
        pytest.fail("the event of the change is missing")

    def question(self) -> dict[str, Any]:
        question = {"user_id": self.ann.user_id, "application_id": self.app, "rule": "patrol"}
        return {"data": {"questions": [question]}}


class Asker(Protocol):
    def ask(self, demanded: str) -> tuple[bool, int]: ...


class Checks:
    """Asks one worker, and returns the answer and its revision."""

    def __init__(self, ground: Ground, connection: Connection) -> None:
        self._ground = ground
        self._connection = connection

    def ask(self, demanded: str = "") -> tuple[bool, int]:
        self._connection.headers.pop(DEMANDED, None)
        if demanded:
            self._connection.headers[DEMANDED] = demanded
        response = self._connection.call("check", **self._ground.question())
        assert response.status == 200, response.body
        return response.data[0]["allow"], int(self._connection.response_headers[STATED.lower()])


class RememberedAnswer:
    """A planted fault: the worker gives its last answer again, with the revision that it knows by now."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._known: bool | None = None

    def ask(self, demanded: str = "") -> tuple[bool, int]:
        allow, revision = self._checks.ask(demanded)
        known, self._known = self._known, None if demanded else allow
        return allow if known is None else known, revision


def new_enemies(ground: Ground, writers: list[Connection], askers: list[Asker], rounds: int) -> int:
    """Returns the number of rounds in which an answer at the revision of the revocation, or later, had the rule."""
    enemies, revision = 0, str(askers[0].ask("")[1])
    for number in range(rounds):
        writer = writers[number % len(writers)]
        ground.set_role(writer, "guard")
        revision = ground.next_revision(revision)
        for asker in askers:  # this fills any cache
            assert asker.ask("")[0]
        ground.set_role(writer)
        revision = ground.next_revision(revision)
        answers = [asker.ask(revision) for asker in askers]
        assert all(stated >= int(revision) for _, stated in answers), (revision, answers)
        enemies += any(allow for allow, _ in answers)
    return enemies


@pytest.fixture
def ground(studio: Studio) -> Ground:
    return Ground(studio)


def connections(studio: Studio, user: ApiUser) -> Iterator[list[Connection]]:
    opened = connect_to_each_worker(studio.server, user)
    yield opened
    for connection in opened:
        connection.close()


@pytest.fixture(scope="module")
def writers(studio: Studio) -> Iterator[list[Connection]]:
    yield from connections(studio, studio.root)


@pytest.fixture
def checks(studio: Studio, ground: Ground) -> Iterator[list[Checks]]:
    for opened in connections(studio, ground.ann):
        yield [Checks(ground, connection) for connection in opened]


def test_revoked_rule_has_no_answer_at_the_revision_of_its_revocation(
    ground: Ground, writers: list[Connection], checks: list[Checks]
) -> None:
    assert len(checks) == 2
    assert new_enemies(ground, writers, list(checks), TIMES) == 0


def test_planted_answer_of_an_older_revision_is_detected(
    ground: Ground, writers: list[Connection], checks: list[Checks]
) -> None:
    planted: list[Asker] = [checks[0], RememberedAnswer(checks[1])]
    assert new_enemies(ground, writers, planted, 2) == 2


def asked(ground: Ground, **headers: str) -> dict[str, httpx.Response]:
    """Returns the answers of all interfaces that state a revision, by their name."""
    client, app, user_id = ground.studio.client, ground.app, ground.ann.user_id
    evaluation = {
        "subject": {"type": "user", "id": user_id},
        "action": {"name": "patrol"},
        "resource": {"type": "application", "id": str(app)},
    }
    answers = {
        f"{path} {name}": client.post(path, json=body, headers=credentials | headers)
        for name, credentials in (("key", ground.access_key), ("service", ground.service), ("user", ground.user))
        for path, body in (
            ("/access/v1/evaluation", evaluation),
            ("/access/v1/evaluations", {**evaluation, "evaluations": [{}, {}]}),
            ("/access/v1/search/action", evaluation),
            ("/access/v1/search/resource", evaluation),
        )
    }
    answers["check"] = client.post("/api/permissions/check", json=ground.question(), headers=ground.user | headers)
    for name, credentials in (("key", ground.access_key), ("service", ground.service)):
        path = "/access/v1/search/subject"
        answers[f"{path} {name}"] = client.post(path, json=evaluation, headers=credentials | headers)
    for path in (f"/applications/{app}/who?rule=patrol", f"/users/{user_id}/can"):
        answers[path] = client.get(f"/api/admin{path}", headers=ground.root | headers)
    permissions = f"/api/admin/users/{user_id}/permissions?application_id={app}"
    return answers | {"permissions": client.get(permissions, headers=ground.root | headers)}


def test_every_interface_states_its_revision_and_obeys_the_demanded_one(
    ground: Ground, writers: list[Connection], checks: list[Checks]
) -> None:
    revision = str(checks[0].ask()[1])
    ground.set_role(writers[0], "guard")
    revision = ground.next_revision(revision)
    for name, response in asked(ground, **{DEMANDED: revision}).items():
        assert response.status_code == 200, (name, response.text)
        assert int(response.headers[STATED]) >= int(revision), name
    for malformed in ("x", "-1", "0", "1e15", "12", ""):
        response = ground.studio.client.post(
            "/api/permissions/check", json=ground.question(), headers=ground.user | {DEMANDED: malformed}
        )
        assert (response.status_code, DEMANDED in response.text) == (400, True), (malformed, response.text)
    for name, response in asked(ground, **{DEMANDED: "x"}).items():
        assert (response.status_code, DEMANDED in response.text) == (400, True), (name, response.text)
