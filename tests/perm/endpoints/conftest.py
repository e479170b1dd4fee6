"""A studio on the shared server: an administrator with the role root, and a small typed client for the endpoints."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import trio

from sso.config import load
from sso.perm import role_store
from sso.perm.audit import Actor
from sso.perm.user_data import save_record
from sso.services import open_services
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.server import Server

_numbers = itertools.count(1)
FACTOR = "device-1"


@dataclass(frozen=True)
class Answer:
    status: int
    body: dict[str, Any]

    @property
    def data(self) -> Any:
        assert self.status == 200, self.body
        return self.body["data"]


@dataclass(frozen=True)
class Person:
    """A user with a JWT, who calls endpoints."""

    client: httpx.Client
    user_id: str
    login: str
    jwt: str

    def call(self, path: str, headers: dict[str, str] | None = None, **body: Any) -> Answer:
        sent = {"Authorization": f"Bearer {self.jwt}", "Factor": FACTOR} | (headers or {})
        answer = self.client.post(f"/api/permissions/{path}", json=body, headers=sent)
        return Answer(answer.status_code, answer.json())


class Studio:
    def __init__(self, server: Server, client: httpx.Client) -> None:
        self.server = server
        self.client = client
        self.root = self.person()
        self.give_roles(self.root, "root")

    def person(self, *, second_factor: bool = False, **fields: Any) -> Person:
        """A new user, signed in."""
        number = next(_numbers)
        login = fields.pop("login", f"perm{number}@example.com")
        more = {"totp_secret": TOTP_SECRET} if second_factor else {}
        self.server.apply({"users": [{"login": login, "password": PASSWORD, **fields}]})
        answer = self.client.post("/proxy/api/login", json={"login": login, "password": PASSWORD, "factor": FACTOR})
        data = answer.json()
        if more:
            self.server.apply({"users": [{"login": login, **more}]})
        return Person(self.client, data["user_id"], login, data["jwt"])

    def give_roles(self, person: Person, *roles: str) -> None:
        """Roles of the central application, as the command line would give them."""

        async def run() -> None:
            async with open_services(load(None, self.server.settings), self.dsn) as services:

                async def work(tx: Any) -> None:
                    application = await role_store.lock_application(tx, 1)
                    known = await role_store.read_roles(tx, 1)
                    await save_record(tx, Actor(), person.user_id, application, known, {}, list(roles), 0)

                await services.database.transaction(work)

        trio.run(run)

    @property
    def dsn(self) -> str:
        return self.server.settings["SSO_DATABASE_URL"]

    def project(self, *admins: Person) -> str:
        """A new project; its id."""
        made: str = self.root.call("publish", project=f"Project {next(_numbers)}").data["id"]
        users = [{"user_id": person.user_id, "roles": {"project": ["admin"]}} for person in (self.root, *admins)]
        assert self.root.call("project/membership", action="save", data={"id": made, "users": users}).status == 200
        return made

    def application(self, project_id: str | None = None, **schema: Any) -> int:
        data = {"name": f"App {next(_numbers)}", **({"project_id": project_id} if project_id else {})}
        made: int = self.root.call("application", action="save", data=data).data["application_id"]
        if schema:
            assert self.root.call("meta/schema", action="save", application_id=made, data=schema).status == 200
        return made


@pytest.fixture(scope="session")
def studio(server: Server) -> Iterator[Studio]:
    with server.client() as client:
        yield Studio(server, client)
