"""The program ``sso replica``: what it answers, and what it does while the service is away."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.kit.forked_program import ForkedProcess
from tests.kit.long_tests import IS_LONG_RUN
from tests.kit.ports import is_listening
from tests.kit.server import Server, clean_environment, run_sso, until
from tests.replica.conftest import Game, role


class SidecarProcess:
    def __init__(self, game: Game, folder: Path, *options: str) -> None:
        secret = folder.parent / "secret.txt"
        secret.write_text(f"{game.secret}\n")
        arguments = ["replica", "--server", game.studio.server.base_url]
        arguments += ["--application", str(game.app), "--bind", "127.0.0.1:0", "--data-dir", str(folder)]
        arguments += ["--client-id", game.client_id, "--client-secret-file", str(secret), *options]
        environment = clean_environment()
        self.process = ForkedProcess(arguments, env=environment, cwd=folder.parent)
        assert self.process.stdout is not None
        address = self.process.stdout.readline().split()[-1]
        self.http = httpx.Client(base_url=f"http://{address}", timeout=60)

    def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post(path, json=body, headers=named)

    def check(self, user_id: str, rule: str, **headers: str) -> httpx.Response:
        return self.post(
            "/api/permissions/check", {"data": {"questions": [{"user_id": user_id, "rule": rule}]}}, **headers
        )

    def allows(self, user_id: str, rule: str) -> Any:
        response = self.check(user_id, rule)
        return response.status_code == 200 and response.json()["data"][0]

    def end(self) -> int:
        self.http.close()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.process.wait(60)


@contextmanager
def sidecar(game: Game, folder: Path, *options: str) -> Iterator[SidecarProcess]:
    process = SidecarProcess(game, folder, *options)
    try:
        yield process
    finally:
        assert process.end() == 0


ALLOWED, REFUSED = {"allow": True}, {"allow": False}
OUTAGE_S = 600.0 if IS_LONG_RUN else 0.0


@pytest.mark.timeout(240 + 2 * OUTAGE_S)
def test_sidecar_answers_follows_and_survives_the_service(game: Game, tmp_path: Path) -> None:
    server, ann, folder = game.studio.server, game.users[0], tmp_path / "copy"
    game.call("roles", action="save", application_id=game.app, data=role("r1", "kick"))
    game.call("meta/data", action="save", application_id=game.app, data={"user_id": ann, "roles": ["r1"]})
    with sidecar(game, folder, "--max-stale", "1800") as replica:
        assert until(lambda: replica.http.get("/readyz").status_code == 200)
        assert until(lambda: replica.allows(ann, "kick") == ALLOWED)
        assert_answers(game, replica)
        assert_refusals(replica)
        assert_new_users_are_found(game, replica)
        game.call("meta/data", action="save", application_id=game.app, data={"user_id": ann, "roles": []})
        assert until(lambda: replica.allows(ann, "kick") == REFUSED)
        with killed(server):
            assert_answers_meanwhile(replica, ann)
            assert "cannot be asked" in replica.allows("999999998", "build")["error"]
        server.apply({"roles": {str(game.app): [{"name": "r2", **role("r2", "mute"), "default": True}]}})
        assert until(lambda: replica.allows(ann, "mute") == ALLOWED)
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert not any(name.encode() in path.read_bytes() for path in folder.iterdir() for name in (ann, "kick", "build"))


def assert_answers_meanwhile(replica: SidecarProcess, user_id: str) -> None:
    """The answers stay the same for as long as the service is away."""
    began = time.monotonic()
    while True:
        assert replica.allows(user_id, "kick") == REFUSED
        assert replica.allows(user_id, "build") == ALLOWED
        away_s = time.monotonic() - began
        assert int(replica.check(user_id, "build").headers["Permission-Staleness"]) >= int(away_s)
        if away_s >= OUTAGE_S:
            return
        time.sleep(1)


def test_sidecar_starts_from_its_copy_while_the_service_is_away(game: Game, tmp_path: Path) -> None:
    server, ann, folder = game.studio.server, game.users[0], tmp_path / "copy"
    game.call("roles", action="save", application_id=game.app, data=role("r1", "kick"))
    with sidecar(game, folder) as replica:
        assert until(lambda: replica.allows(ann, "build") == ALLOWED)
    with sidecar(game, folder, "--max-stale", "600") as replica:
        with killed(server):
            assert until(lambda: replica.allows(ann, "build") == ALLOWED)
        game.call("meta/data", action="save", application_id=game.app, data={"user_id": ann, "roles": ["r1"]})
        assert until(lambda: replica.allows(ann, "kick") == ALLOWED)
    with killed(server):
        with sidecar(game, folder, "--max-stale", "1") as replica:
            assert until(lambda: replica.check(ann, "kick").status_code == 503)
            refused = replica.check(ann, "kick")
            assert (refused.json()["status"], refused.headers["Retry-After"]) == ("ERROR", "1")
            assert int(refused.headers["Permission-Staleness"]) > 1
            assert replica.http.get("/readyz").status_code == 503
        with sidecar(game, folder, "--max-stale", "1", "--serve-stale") as replica:
            assert until(lambda: int(replica.check(ann, "kick").headers["Permission-Staleness"]) > 1)
            assert replica.allows(ann, "kick") == ALLOWED


@contextmanager
def killed(server: Server) -> Iterator[None]:
    """Ends the service without warning, waits until its workers have noticed, and starts it again afterwards."""
    server.stop(signal.SIGKILL)
    port = int(server.base_url.rpartition(":")[2])
    try:
        assert until(lambda: not is_listening(port))
        yield
    finally:
        server.start()


def assert_answers(game: Game, replica: SidecarProcess) -> None:
    """The same as those of the service, also with reasons and for malformed requests."""
    question = {"user_id": game.users[0], "rule": "kick", "application_id": game.app}
    evaluation = game.questions()["evaluations"][0]
    semantic = {"evaluations_semantic": "permit_on_first_permit"}
    for path, body in (
        ("/api/permissions/check", {"data": {"questions": [question, {**question, "unknown": 1}]}}),
        ("/api/permissions/check", {"data": {"questions": [{**question, "user_id": "x"}]}}),
        ("/api/permissions/check", {"data": {"questions": [{**question, "project_id": game.project}]}}),
        ("/api/permissions/check", {"data": {"questions": [{**question, "project_id": "other"}]}}),
        ("/api/permissions/check", {"data": {"questions": [{**question, "rule": ""}]}}),
        ("/api/permissions/check", {}),
        ("/access/v1/evaluation", evaluation),
        ("/access/v1/evaluation", {**evaluation, "context": {"reason": True}}),
        ("/access/v1/evaluation", {**evaluation, "subject": {"type": "user", "id": game.studio.root.login}}),
        ("/access/v1/evaluation", {**evaluation, "subject": {"type": "user", "id": "nobody@example.com"}}),
        ("/access/v1/evaluation", {**evaluation, "subject": {"type": "robot", "id": "1"}}),
        ("/access/v1/evaluation", {"subject": 1}),
        ("/access/v1/evaluations", game.questions()),
        ("/access/v1/evaluations", {**game.questions(), "options": semantic}),
    ):
        here = replica.post(path, body, X_Request_ID="game-7")
        headers = game.bearer if path.startswith("/access") else game.root.headers  # a check needs a user there
        there = game.studio.client.post(path, json=body, headers=headers)
        assert (here.status_code, here.json()) == (there.status_code, there.json()), (path, body)
        assert here.headers["X-Request-ID"] == "game-7"
        assert int(here.headers["Permission-Staleness"]) >= 0
        assert here.headers["Permission-Revision"].isdecimal()


def assert_refusals(replica: SidecarProcess) -> None:
    path = "/api/permissions/check"
    body: dict[str, Any] = {"data": {"questions": []}}
    refused = replica.http.get(path)
    assert (refused.status_code, refused.headers["Allow"]) == (405, "POST")
    assert replica.http.post("/readyz").status_code == 405
    assert replica.post(f"{path}?dry_run=1", body).status_code == 400
    assert replica.post("/api/permissions/meta/data", body).status_code == 404
    assert replica.post(path, body, Host="evil.example.com").status_code == 421
    assert replica.post(path, body, At_Least_Revision="x").status_code == 400
    assert replica.post(path, body, At_Least_Revision="9" * 16).status_code == 503
    assert replica.http.post(path, content=b"{").status_code == 400
    assert replica.http.post(path, content=b"x" * 300_000).status_code == 413
    elsewhere = {"data": {"questions": [{"user_id": "1", "application_id": 1, "rule": "kick"}]}}
    assert "this replica answers for application" in replica.post(path, elsewhere).json()["data"][0]["error"]


def assert_new_users_are_found(game: Game, replica: SidecarProcess) -> None:
    """A user who registers has no event, and is asked for at the service."""
    new = game.studio.user().user_id
    assert until(lambda: replica.allows(new, "build") == ALLOWED)
    assert replica.allows("999999999", "build") == {"allow": False, "error": "user not found"}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--bind", "0.0.0.0:0"], "loopback"),
        (["--server", "sso.example.com"], "expected a URL"),
        (["--client-secret-file", "/nowhere"], "does not exist"),
    ],
)
def test_wrong_options_are_refused(options: list[str], text: str, tmp_path: Path) -> None:
    arguments = ["replica", "--server", "http://127.0.0.1:1", "--application", "40", *options]
    done = run_sso(tmp_path, *arguments, SSO_CLIENT_ID="x", SSO_CLIENT_SECRET="y")
    assert done.returncode == 2
    assert not list(tmp_path.iterdir())  # nothing is written for options that are refused
    assert text in " ".join(done.stderr.split())


def test_others_read_no_replica(game: Game) -> None:
    """Only service clients of the application, and root: not those of another one, nor readers of the change stream."""
    path = f"/api/admin/applications/{game.app}/replica"
    reader = game.studio.user()
    game.studio.give_rules(reader, "can_view_changes")
    other = Game(game.studio, users=1)
    signed_in = {"Authorization": f"Bearer {reader.jwt}", "Factor": "device-1"}
    for headers, status in ((game.bearer, 200), (game.root.headers, 200), (other.bearer, 403), (signed_in, 403)):
        for suffix in ("", "/users", "/changes?after=1"):
            got = game.studio.client.get(path + suffix, headers=headers).status_code
            assert got == (400 if suffix.startswith("/changes") and status == 200 else status), (suffix, status)
    assert game.studio.client.get("/api/admin/applications/1/replica", headers=game.root.headers).status_code == 403
