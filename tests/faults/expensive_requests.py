"""The most expensive requests that one account may send: a project administrator, who also has rights over the service.

Each row names a request. ``blocked_by`` is a statement that a test keeps open: it locks what the request needs and
logins do not, so the request waits for as long as the test wants.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from tests.console.conftest import ConsoleBrowser
from tests.kit.browser import Browser, query
from tests.kit.builders import PASSWORD
from tests.kit.long_tests import IS_LONG_RUN
from tests.kit.server import Server
from tests.perm.endpoints.conftest import FACTOR, ApiUser, Studio

ROLES, USERS = (1000, 5000) if IS_LONG_RUN else (20, 20)
RULES = (
    "can_view_users",
    "can_manage_users",
    "can_view_audit",
    "can_view_applications",
    "can_view_projects",
    "can_view_state",
    "can_manage_state",
)
# Each user has a tag that no other has: users with the same attributes are evaluated once for all of them.
_ADD_USERS = """INSERT INTO users (user_id, login, login_key, tags)
    SELECT CAST(8000000 + n AS text), 'many' || n || '@example.com', 'many' || n || '@example.com',
        ARRAY['many', 'tag' || n]
    FROM generate_series(1, $1::int) AS n"""
_ADD_ROLES = """INSERT INTO roles (application_id, name, meta, condition)
    SELECT $1::int, 'role' || n,
        jsonb_build_object('private_data', jsonb_build_object('rule' || n, '{"value": true}'::jsonb)),
        jsonb_build_object('or', (SELECT jsonb_agg(jsonb_build_object('tag', 'tag' || n || 'x' || k))
            FROM generate_series(1, 19) AS k) || '[{"tag": "many"}]'::jsonb)
    FROM generate_series(1, $2::int) AS n"""
_NEW_REVISION = "UPDATE applications SET revision = revision + 1, assertions = $2::jsonb WHERE application_id = $1"


class Request(NamedTuple):
    path: str
    body: bytes | None  # None for a GET
    headers: dict[str, str]


@dataclass(frozen=True)
class Scene:
    """A project with an application that has many roles, a group of many users, and the account that sends requests."""

    studio: Studio
    account: ApiUser
    browser: ConsoleBrowser
    stranger: Browser  # nobody is signed in
    project_id: str
    application_id: int
    group_id: str
    began: int  # when the history of the application began, in Unix seconds

    @classmethod
    def create(cls, server: Server, studio: Studio) -> "Scene":
        account = studio.user()
        studio.give_rules(account, *RULES)
        project_id = studio.project(account, studio.keeper)
        application_id = studio.application(project_id)
        studio.give_secret(account, application_id, "canModifySchema", "canSave", "canSeeRoleList")
        group_id = studio.group(project_id)
        query(server, _ADD_USERS, USERS)
        query(server, _ADD_ROLES, application_id, ROLES)
        query(server, _NEW_REVISION, application_id, '["only role1 may rule1"]')
        began = query(server, "SELECT CAST(floor(extract(epoch FROM now())) AS bigint) AS now")[0]["now"]
        browser, stranger = ConsoleBrowser(server, account), Browser(server)
        stranger.get("/login")
        return cls(studio, account, browser, stranger, project_id, application_id, group_id, began)

    def permissions(self, path: str, **body: Any) -> Request:
        return self._json(f"/api/permissions/{path}", body)

    def management(self, path: str, body: dict[str, Any] | None = None, **parameters: Any) -> Request:
        return self._json(f"/api/admin{path}{'?' if parameters else ''}{urlencode(parameters)}", body)

    def page(self, path: str, **fields: str) -> Request:
        """A page of a browser in which the account is signed in; with fields, a form."""
        return self._page(self.browser, path, {"csrf": self.browser.csrf_token, **fields} if fields else {})

    def passkey_login(self) -> Request:
        csrf = self.stranger.form("/login")["csrf"]
        return self._page(self.stranger, "/login/passkey", {"csrf": csrf, "credential": "{}"})

    def _page(self, browser: Browser, path: str, fields: dict[str, str]) -> Request:
        cookies = "; ".join(f"{name}={value}" for name, value in browser.http.cookies.items())
        headers = {"Cookie": cookies, "Host": urlsplit(self.studio.server.base_url).netloc}
        if not fields:
            return Request(path, None, headers)
        headers |= {"Origin": self.studio.server.base_url, "Content-Type": "application/x-www-form-urlencoded"}
        return Request(path, urlencode(fields).encode(), headers)

    def _json(self, path: str, body: dict[str, Any] | None) -> Request:
        headers = {"Authorization": f"Bearer {self.account.jwt}", "Factor": FACTOR}
        if body is None:
            return Request(path, None, headers)
        return Request(path, json.dumps(body).encode(), headers | {"Content-Type": "application/json"})


class ExpensiveRequest(NamedTuple):
    name: str
    build: Callable[[Scene, int], Request]  # called with the number of the request
    blocked_by: str = ""  # with the names of the fields of `Scene` that it needs
    status: int = 200  # of the response to one such request alone


LOCKED_APPLICATION = "SELECT FROM applications WHERE application_id = {application_id} FOR UPDATE"
NO_HISTORY = "LOCK TABLE permission_versions IN ACCESS EXCLUSIVE MODE"  # also blocks writes of permissions
LOCKED_PROJECT = "SELECT FROM projects WHERE id = '{project_id}' FOR UPDATE"


def _role_save(scene: Scene, number: int) -> Request:
    role = {"name": f"role{number % ROLES + 1}", "condition": {"tag": f"many{number}"}}
    return scene.permissions("roles", action="save", application_id=scene.application_id, data=role)


def _schema_save(scene: Scene, number: int) -> Request:
    data = {"private_data": {f"chat{number}": {"value": True}}}
    return scene.permissions("meta/schema", action="save", application_id=scene.application_id, data=data)


def _membership_save(scene: Scene, number: int) -> Request:
    users = [
        {"user_id": scene.account.user_id, "roles": {"project": ["admin"]}},
        {"user_id": str(8_000_001 + number % USERS), "roles": {"project": ["viewer"]}},
    ]
    return scene.permissions("project/membership", action="save", data={"id": scene.project_id, "users": users})


def _group_dry_run(scene: Scene, _number: int) -> Request:
    access = {"conditions": [{"title": "Many", "condition": {"tag": "many"}}]}
    return scene.permissions("group/access", group_id=scene.group_id, data=access, options={"dry_run": True})


def _read(scene: Scene, **options: Any) -> Request:
    return scene.permissions(
        "meta/data", action="get", application_id=scene.application_id, data={"type": "tree"}, options=options
    )


def _state(scene: Scene, number: int) -> dict[str, Any]:
    return {"users": [{"login": f"new{number}-{other}@example.com"} for other in range(20)]}


EXPENSIVE_REQUESTS = (
    ExpensiveRequest("role saves", _role_save, LOCKED_APPLICATION),
    ExpensiveRequest("schema saves", _schema_save, LOCKED_APPLICATION),
    ExpensiveRequest("membership saves", _membership_save, LOCKED_PROJECT),
    ExpensiveRequest("dry runs", _group_dry_run, LOCKED_PROJECT),
    ExpensiveRequest("explanations", lambda scene, _: _read(scene, explain=True)),
    ExpensiveRequest(
        "past permissions",
        lambda scene, _: _read(scene, at=scene.began),
        NO_HISTORY,
    ),
    ExpensiveRequest(
        "audit reads of a project", lambda scene, _: scene.permissions("audit", data={"project_id": scene.project_id})
    ),
    ExpensiveRequest("lists", lambda scene, _: scene.management("/users", limit=1000)),
    ExpensiveRequest("searches", lambda scene, number: scene.management("/users", search=f"many{number}")),
    ExpensiveRequest("audit lists", lambda scene, _: scene.management("/audit", limit=1000)),
    ExpensiveRequest(
        "exports of a user", lambda scene, _: scene.management(f"/users/{scene.studio.keeper.user_id}/export", {})
    ),
    ExpensiveRequest(
        "exports of the state", lambda scene, _: scene.management("/state", sections="users,applications")
    ),
    ExpensiveRequest(
        "comparisons of the state", lambda scene, number: scene.management("/state/diff", _state(scene, number))
    ),
    ExpensiveRequest(
        "trials of a document", lambda scene, number: scene.management("/state", _state(scene, number), dry_run=1)
    ),
    ExpensiveRequest(
        "condition tests",
        lambda scene, _: scene.management("/conditions/test", {"condition": {"or": [{"tag": "many"}] * 200}}),
    ),
    ExpensiveRequest(
        "assertion tests",
        lambda scene, _: scene.management("/assertions/test", {"application_id": scene.application_id}),
    ),
    ExpensiveRequest("CSV exports", lambda scene, _: scene.page("/console/users/export.csv")),
    ExpensiveRequest(
        "pages of a project", lambda scene, _: scene.page(f"/console/projects/{scene.project_id}"), LOCKED_PROJECT
    ),
    ExpensiveRequest(
        "exports of the own data", lambda scene, _: scene.page("/account/export", current_password=PASSWORD)
    ),
    ExpensiveRequest("pages of an authenticator app", lambda scene, _: scene.page("/account/totp")),
    ExpensiveRequest(
        "attempts with a password",
        lambda scene, number: Request(
            "/proxy/api/login",
            json.dumps({"login": scene.account.login, "password": f"wrong {number}"}).encode(),
            {"Content-Type": "application/json"},
        ),
        status=401,
    ),
    ExpensiveRequest("attempts with a passkey", lambda scene, _: scene.passkey_login(), status=401),
)
GOOD_LOGIN = {"password": PASSWORD, "factor": FACTOR}
