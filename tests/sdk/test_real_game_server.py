"""Each package for game servers works with the real service, with two workers; so do its helpers for web frameworks."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from sdk.contract.packages import SDK, SERVER_PACKAGES, Package
from sso.core.jwt import kid_of
from sso.keys.rotation import LEAD_S
from sso.services import Services
from tests.kit.builders import PASSWORD
from tests.kit.postgres import Postgres
from tests.kit.server import NO_LIMITS, QUICK, Server, clean_environment, running, until
from tests.kit.webhook_receiver import Delivery, webhook_receiver
from tests.sdk.program import Program, program

TANKS, FACTOR, ANN = 10, "a device", "4711"
CLIENT = {"client_id": "tanks-server", "client_secret": "the-secret-of-the-tanks-server"}
SECRET = "the-secret-of-the-webhook-0123456789"
FRAMEWORKS = SDK / "typescript/test/frameworks"
GAME_SERVERS = {
    "express": (("node", str(FRAMEWORKS / "express.mjs")), FRAMEWORKS / "node_modules"),
    "fastify": (("node", str(FRAMEWORKS / "fastify.mjs")), FRAMEWORKS / "node_modules"),
    "go": ((str(SDK / "go/build/example"),), SDK / "go/build/example"),
}


@pytest.fixture(scope="module")
def server(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    dsn = postgres_server.fresh()
    settings = QUICK | NO_LIMITS | {"SSO_DATABASE_URL": dsn, "SSO_WORKERS": "2"}
    grants = {"profile": "oidc", "grant_types": ["client_credentials"], "application_id": TANKS, "redirect_hosts": []}
    with running(tmp_path_factory.mktemp("sdk"), **settings) as server:
        server.apply(
            {
                "users": [{"user_id": ANN, "login": "ann@example.com", "nick": "Ann", "password": PASSWORD}],
                "applications": [{"application_id": TANKS, "name": "Tanks"}],
                "roles": {str(TANKS): [default_role("member", "write")]},
                "clients": [{"name": "Tanks", **CLIENT, **grants}],
            }
        )
        yield server
    postgres_server.drop(dsn)


def default_role(name: str, rule: str) -> dict[str, Any]:
    return {"name": name, "meta": {"private_data": {"chat": {rule: {"value": True}}}}, "default": True}


def sign_in(server: Server) -> str:
    """Returns a user JWT."""
    with server.client() as http:
        fields = {"login": "ann@example.com", "password": PASSWORD, "factor": FACTOR}
        return str(http.post("/proxy/api/login", json=fields).json()["jwt"])


@pytest.fixture(scope="module")
def programs(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Program]]:
    """The programs of all packages that are built. Each has verified a player."""
    jwt = sign_in(server)
    with ExitStack() as stack:
        running_programs = {
            package.name: stack.enter_context(program(package, server, tmp_path_factory.mktemp(package.name)))
            for package in SERVER_PACKAGES
            if package.is_built
        }
        for game_server in running_programs.values():
            game_server.send(do="verify", jwt=jwt, factor=FACTOR)
            assert game_server.event("verified")["user_id"] == ANN
        yield running_programs


@pytest.fixture(scope="module")
def new_jwt(server: Server, programs: dict[str, Program]) -> str:
    """A user JWT that is signed with a key that the programs do not have yet."""
    new_kid = ""

    async def rotate(services: Services) -> None:
        nonlocal new_kid
        new_kid = await services.key_rotation.rotate("RS256", 3600)

    server.run_with_services(rotate)
    time.sleep(LEAD_S)  # a look at each moment of it would be a login

    def signed_by_the_new_key() -> str:
        jwt = sign_in(server)
        return jwt if kid_of(jwt) == new_kid else ""

    assert until(signed_by_the_new_key, 120)
    return sign_in(server)


@pytest.fixture(scope="module")
def delivery(server: Server) -> Delivery:
    """A webhook that the service has sent."""
    with webhook_receiver() as receiver:
        server.sso("webhook", "add", receiver.url, "--event", "users", "--secret-stdin", stdin=SECRET)
        server.apply({"users": [{"login": "bob@example.com", "nick": "Bob", "password": PASSWORD}]})
        server.apply({"users": [{"login": "bob@example.com", "disabled": True}]})
        assert until(lambda: receiver.deliveries)
        return receiver.deliveries[0]


@pytest.fixture(params=SERVER_PACKAGES, ids=lambda package: package.name)
def game_server(request: pytest.FixtureRequest, programs: dict[str, Program]) -> tuple[Package, Program]:
    package: Package = request.param
    if package.name not in programs:
        pytest.skip(f"the package {package.name} is not built: run scripts/sdk")
    return package, programs[package.name]


def cursor(server: Server) -> str:
    """Returns the end of the stream of changes."""
    with server.client() as http:
        token = http.post("/proxy/oauth/token", data={"grant_type": "client_credentials", **CLIENT}).json()
        headers, after = {"Authorization": f"Bearer {token['access_token']}"}, ""
        while (page := http.get("/api/admin/changes", params={"after": after}, headers=headers).json())["data"]:
            after = page["next"]
        return str(page["next"])


def test_package_works_with_the_service(
    game_server: tuple[Package, Program], server: Server, new_jwt: str, delivery: Delivery
) -> None:
    package, running_program = game_server
    running_program.send(do="verify", jwt=new_jwt, factor=FACTOR)
    assert running_program.event("verified")["user_id"] == ANN
    running_program.send(do="verify", jwt=new_jwt, factor="another device")
    assert running_program.event("refused")["reason"] == "factor"
    running_program.send(do="credentials", **CLIENT)
    rules = ["chat.write" if number % 2 else "chat.kick" for number in range(120)]
    questions = [{"user_id": ANN, "application_id": TANKS, "rule": rule} for rule in rules]
    running_program.send(do="check", questions=questions)
    assert running_program.event("checked")["answers"] == [rule == "chat.write" for rule in rules]
    running_program.send(do="follow", after=cursor(server), count=1)
    role = default_role(f"of_{package.name}", f"rule_of_{package.name}") | {"default": False}
    server.apply({"roles": {str(TANKS): [role]}})
    server.sso("role", "assign", "ann@example.com", role["name"], "--app", str(TANKS))
    assert running_program.event("change")["type"] == "permissions_changed"
    body = delivery.body.decode()
    received = {"headers": delivery.headers, "body": body, "now": int(time.time())}
    running_program.send(do="webhook", secret=SECRET, **received)
    assert running_program.event("webhook")["id"] == json.loads(body)["id"]
    running_program.send(do="webhook", secret="another secret", **received)
    assert running_program.event("refused")["reason"] == "signature"


@pytest.mark.parametrize("require_factor", ["", "1"])
@pytest.mark.parametrize("name", GAME_SERVERS)
def test_game_server_with_a_web_framework(name: str, require_factor: str, server: Server, delivery: Delivery) -> None:
    command, installed = GAME_SERVERS[name]
    if not installed.exists():
        pytest.skip(f"{name} is not installed: run scripts/sdk")
    secrets = {"SSO_CLIENT_ID": CLIENT["client_id"], "SSO_CLIENT_SECRET": CLIENT["client_secret"]}
    environment = clean_environment() | secrets | {"WEBHOOK_SECRET": SECRET, "REQUIRE_FACTOR": require_factor}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([*command, server.base_url], env=environment, **pipes) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
                assert_players_are_told_apart(http, sign_in(server), is_factor_required=bool(require_factor))
                assert_webhooks_are_verified(http, delivery)
            assert json.loads(process.stdout.readline())["id"] == json.loads(delivery.body)["id"]
        finally:
            process.kill()


def assert_players_are_told_apart(http: httpx.Client, jwt: str, *, is_factor_required: bool) -> None:
    bearer = {"Authorization": f"Bearer {jwt}"}
    player = {**bearer, "Factor": FACTOR} if is_factor_required else bearer
    wrong = {"no player": {}, "another scheme": {"Authorization": f"Basic {jwt}"}}
    without = {"no factor": bearer, "empty": {**bearer, "Factor": ""}, "another": {**bearer, "Factor": "x"}}
    for name, headers in (wrong | without).items():
        answer = http.get("/me", headers=headers)
        if name in without and not is_factor_required:
            assert answer.status_code == 200, name
        else:
            assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer"), name
    assert http.get("/me", headers=player).json() == {"user_id": ANN}
    assert http.post("/say", headers=player).json() == {"said": True}
    assert http.post("/kick", headers=player).status_code == 403


def assert_webhooks_are_verified(http: httpx.Client, delivery: Delivery) -> None:
    headers = {name: value for name, value in delivery.headers.items() if name.startswith(("Webhook", "Content-Type"))}
    for size in (1, 900_000):  # a large one is read, too
        assert http.post("/webhook", content=delivery.body + b" " * size, headers=headers).status_code == 403
    assert http.post("/webhook", content=delivery.body, headers=headers).status_code == 204
