"""A studio on the shared server: an administrator with the role root, and a small typed client for the endpoints."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import httpx
import pytest

from sso.audit.trail import AuditActor
from sso.perm.engine.records import Assignment
from sso.perm.stores.locks import lock_application
from sso.perm.stores.roles import read_roles
from sso.perm.stores.user_data import save_record
from tests.kit.browser import AuthenticatorApp, query
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.server import Server

_numbers = itertools.count(1)
FACTOR = "device-1"


@dataclass(frozen=True)
class ApiResponse:
    status: int
    body: dict[str, Any]

    @property
    def data(self) -> Any:
        assert self.status == 200, self.body
        return self.body["data"]


@dataclass(frozen=True)
class ApiUser:
    """A user with a JWT, and requests of this user."""

    client: httpx.Client
    user_id: str
    login: str
    jwt: str

    def call(self, path: str, headers: dict[str, str] | None = None, /, **body: Any) -> ApiResponse:
        request_headers = {"Authorization": f"Bearer {self.jwt}", "Factor": FACTOR} | (headers or {})
        response = self.client.post(f"/api/permissions/{path}", json=body, headers=request_headers)
        return ApiResponse(response.status_code, response.json())


class NewUser(ApiUser):
    """A user who logs in when a test needs the JWT."""

    def __init__(self, client: httpx.Client, user_id: str, login: str) -> None:
        vars(self).update(client=client, user_id=user_id, login=login)

    @cached_property
    def jwt(self) -> str:
        credentials = {"login": self.login, "password": PASSWORD, "factor": FACTOR}
        return str(self.client.post("/proxy/api/login", json=credentials).json()["jwt"])


class Studio:
    def __init__(self, server: Server, client: httpx.Client) -> None:
        self.server = server
        self.client = client
        # The keeper is the administrator of projects without other administrators.
        self.root, self.keeper = self.users(2)
        assert self.root.jwt  # logged in before a test changes anything
        self.give_roles(self.root, "root")

    def user(self, *, second_factor: bool = False, **fields: Any) -> ApiUser:
        """Create a user and log in."""
        number = next(_numbers)
        login = fields.pop("login", f"perm{number}@example.com")
        code: dict[str, str] = {}
        if second_factor:
            fields["totp_secret"] = TOTP_SECRET
            code = {"otp": AuthenticatorApp(TOTP_SECRET).code()}
        self.server.save_accounts(users=[{"login": login, "password": PASSWORD, **fields}])
        credentials = {"login": login, "password": PASSWORD, "factor": FACTOR, **code}
        data = self.client.post("/proxy/api/login", json=credentials).json()
        return ApiUser(self.client, data["user_id"], login, data["jwt"])

    def users(self, count: int) -> list[ApiUser]:
        """Create users with one document. They log in when their JWT is needed: many are only named in requests."""
        logins = [f"perm{next(_numbers)}@example.com" for _ in range(count)]
        self.server.save_accounts(users=[{"login": login, "password": PASSWORD} for login in logins])
        rows = query(self.server, "SELECT user_id, login FROM users WHERE login = ANY($1)", logins)
        ids = {row["login"]: row["user_id"] for row in rows}
        return [NewUser(self.client, ids[login], login) for login in logins]

    def give_roles(self, user: ApiUser, *roles: str) -> None:
        """Assign roles of the central application, as the command line does."""

        async def work(tx: Any) -> None:
            application = await lock_application(tx, 1)
            known = await read_roles(tx, 1)
            await save_record(tx, AuditActor(), user.user_id, application, known, {}, tuple(map(Assignment, roles)))

        self.server.run_with_services(lambda services: services.database.transaction(work))

    @property
    def dsn(self) -> str:
        return self.server.settings["SSO_DATABASE_URL"]

    def give_rules(self, user: ApiUser, *rules: str, **params: str) -> None:
        """Give root rules of the central application in the user's own private data."""
        private_data: dict[str, Any] = {rule: {"value": True} for rule in rules}
        private_data |= {rule: {"value": True, "params": value} for rule, value in params.items()}
        self.save_data(user, 1, private_data=private_data)

    def give_secret(self, user: ApiUser, application_id: int, *rules: str, **meta: Any) -> None:
        """Give rules of ``secret_data.application``, and levels of ``meta`` such as ``roles={"canWrite": "all"}``."""
        secret = {
            "application": {rule: {"value": True} for rule in rules},
            "meta": {
                word: {right: {"value": level} for right, level in rights.items()} for word, rights in meta.items()
            },
        }
        self.save_data(user, application_id, secret_data=secret)

    def save_data(self, user: ApiUser, application_id: int, **data: Any) -> None:
        saved = {"user_id": user.user_id, **data}
        response = self.root.call("meta/data", action="save", application_id=application_id, data=saved)
        assert response.status == 200, response.body

    def join(self, project_id: str, user: ApiUser, **roles: Any) -> None:
        """Give a member of a project these roles: ``project=["viewer"]``, ``applications={…}``."""
        path = f"/api/admin/projects/{project_id}/members"
        headers = {"Authorization": f"Bearer {self.root.jwt}", "Factor": FACTOR}
        response = self.client.post(path, json={"user_id": user.user_id, "roles": roles}, headers=headers)
        if response.status_code == 409:
            response = self.client.patch(f"{path}/{user.user_id}", json={"roles": roles}, headers=headers)
        assert response.is_success, response.text

    def role(self, application_id: int, name: str, *rules: str, **fields: Any) -> None:
        """Save a role with these rules, and sections such as ``project={"can_view_project": {"value": True}}``."""
        sections = {section: fields.pop(section) for section in ("project", "app", "srv", "group") if section in fields}
        meta = {"private_data": {rule: {"value": True} for rule in rules} | sections}
        data = {"name": name, "meta": meta, **fields}
        response = self.root.call("roles", action="save", application_id=application_id, data=data)
        assert response.status == 200, response.body

    def group(self, project_id: str, *users: str, tags: tuple[str, ...] = (), conditions: Any = ()) -> str:
        data = {"project_id": project_id, "title": f"Group {next(_numbers)}"}
        group_id: str = self.root.call("group", action="save", data=data).data["id"]
        access = {"users": list(users), "conditions": list(conditions)}
        assert self.root.call("group/access", group_id=group_id, data=access).status == 200
        if tags:
            assert self.root.call("group/tags", group_id=group_id, data={"tags": list(tags)}).status == 200
        return group_id

    def rules_of(self, user: ApiUser, application_id: int, kind: str = "list_short", **options: Any) -> Any:
        data = {"type": kind}
        return user.call("meta/data", action="get", application_id=application_id, data=data, options=options).data

    def project(self, *admins: ApiUser) -> str:
        """Create a project; returns its id. Root is no member, because every request reads the caller's memberships."""
        number = next(_numbers)
        project_id = f"project_{number}"
        users = [{"user_id": user.user_id, "roles": {"project": ["admin"]}} for user in admins or (self.keeper,)]
        # A document takes a third of the processor time of requests.
        self.server.apply(
            {
                "projects": [{"id": project_id, "title": f"Project {number}"}],
                "memberships": [{"id": project_id, "users": users}],
            }
        )
        return project_id

    def removed_project(self) -> str:
        project_id = self.project()
        assert self.root.call("project", action="delete", data={"id": project_id}).status == 200
        return project_id

    def application(self, project_id: str | None = None, **schema: Any) -> int:
        data = {"name": f"Application {next(_numbers)}", **({"project_id": project_id} if project_id else {})}
        application_id: int = self.root.call("application", action="save", data=data).data["application_id"]
        if schema:
            assert (
                self.root.call("meta/schema", action="save", application_id=application_id, data=schema).status == 200
            )
        return application_id


@pytest.fixture(scope="module")
def studio(server: Server) -> Iterator[Studio]:
    with server.client() as client:
        yield Studio(server, client)


@pytest.fixture(scope="module")
def team(studio: Studio) -> Any:
    """New users for each file, because every request reads all memberships of its caller."""
    from tests.perm.endpoints.team import Team

    return Team.create(studio)


@pytest.fixture(scope="module")
def ann(studio: Studio) -> ApiUser:
    return studio.user()


@pytest.fixture(scope="module")
def app(studio: Studio) -> int:
    return studio.application()


@pytest.fixture(scope="module")
def unchanged_project(studio: Studio) -> str:
    """A project for requests that are refused."""
    return studio.project()


@pytest.fixture(scope="module")
def unchanged_group(studio: Studio, unchanged_project: str) -> str:
    return studio.group(unchanged_project, "7")


@pytest.fixture(scope="module")
def unchanged_app(studio: Studio) -> int:
    """An application for requests that are refused."""
    return studio.application()


@pytest.fixture(scope="module")
def key(studio: Studio, app: int) -> Any:
    """A key that signs service JWTs of the application."""
    from tests.perm.endpoints.tokens import ServiceKey

    return ServiceKey().trusted_by(studio, app)
