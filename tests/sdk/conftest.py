"""A service with an application, two players and a service client, for the examples of game servers."""

from collections.abc import Iterator

import pytest

from tests.kit.builders import PASSWORD
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running

SECRET = "a secret of the game server"


@pytest.fixture(scope="module")
def server(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    dsn = postgres_server.fresh()
    writer = {"name": "writer", "meta": {"private_data": {"chat": {"write": {"value": True}}}}, "default": True}
    kicker = {"name": "kicker", "meta": {"private_data": {"chat": {"kick": {"value": True}}}}}
    with running(tmp_path_factory.mktemp("python"), **QUICK, SSO_DATABASE_URL=dsn, SSO_WORKERS="1") as server:
        server.apply(
            {
                "users": [
                    {"user_id": user_id, "login": f"{nick}@example.com", "nick": nick, "password": PASSWORD}
                    for user_id, nick in (("4711", "ann"), ("4712", "bob"))
                ],
                "applications": [{"application_id": 10, "name": "Tanks"}],
                "roles": {"10": [writer, kicker]},
                "permissions": [{"user_id": "4711", "application_id": 10, "data": {"roles": ["kicker"]}}],
                "clients": [
                    {
                        "client_id": "tanks-server",
                        "client_secret": SECRET,
                        "profile": "oidc",
                        "grant_types": ["client_credentials"],
                        "application_id": 10,
                    }
                ],
            }
        )
        yield server
    postgres_server.drop(dsn)


@pytest.fixture(scope="module")
def players(server: Server) -> dict[str, dict[str, str]]:
    """Returns the headers that the game of each player sends."""
    headers: dict[str, dict[str, str]] = {"nobody": {}, "forged": {"Authorization": "Bearer a.b.c"}}
    with server.client() as client:
        for nick in ("ann", "bob"):
            fields = {"login": f"{nick}@example.com", "password": PASSWORD, "factor": nick}
            jwt = client.post("/proxy/api/login", json=fields).json()["jwt"]
            headers[nick] = {"Authorization": f"Bearer {jwt}", "Factor": nick}
    return headers | {"thief": headers["ann"] | {"Factor": "another device"}}
