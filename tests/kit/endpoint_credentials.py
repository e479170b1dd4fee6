"""Credentials for the permission endpoints."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from tests.kit.oauth import Browser, new_site
from tests.perm.endpoints.conftest import FACTOR, ApiResponse, Studio
from tests.perm.endpoints.tokens import ServiceKey

EXCHANGE_TOKEN = "/proxy/oauth/exchangeToken"


Credentials: TypeAlias = tuple[dict[str, str], dict[str, Any]]  # headers, fields of the body


class Office:
    """An application with a service JWT and an access key, another one in its project, and one in another project."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.project = studio.project()
        self.own = studio.application(self.project)
        self.sister = studio.application(self.project)
        self.stranger = studio.application(studio.project())
        self.group = studio.group(self.project)
        self.bob = studio.user()
        self._service_key = ServiceKey().trusted_by(studio, self.own)
        self._other_key = ServiceKey().trusted_by(studio, self.stranger)
        self.key: dict[str, Any] = studio.root.call("accessKey", action="save", application_id=self.own, data={}).data

    @cached_property
    def _browser(self) -> Browser:
        return Browser(self.studio.server, self.studio.root.login).sign_in()

    @cached_property
    def site_token(self) -> str:
        return self._exchanged()

    @cached_property
    def own_site_token(self) -> str:
        return self._exchanged(first_party=True)

    def _exchanged(self, **fields: Any) -> str:
        site = new_site(self.studio.server, **fields)
        headers = {"Authorization": f"Bearer {site.tokens(self._browser)['access_token']}", "Factor": FACTOR}
        return str(site.http.post(EXCHANGE_TOKEN, headers=headers).json()["token"])

    @property
    def bob_id(self) -> str:
        return self.bob.user_id

    @property
    def service(self) -> dict[str, str]:
        return {"Service-Jwt": self._service_key.sign(self.studio.server, self.own)}

    @property
    def other_service(self) -> dict[str, str]:
        return {"Service-Jwt": self._other_key.sign(self.studio.server, self.stranger)}

    def send(self, path: str, credentials: Credentials, **body: Any) -> ApiResponse:
        headers, fields = credentials
        response = self.studio.client.post(f"/api/permissions/{path}", json=body | fields, headers=headers)
        return ApiResponse(response.status_code, response.json())


@dataclass(frozen=True)
class Call:
    """One action of an endpoint. ``application`` is its target: own, sister, stranger or none."""

    path: str
    body: Callable[[Office], dict[str, Any]]
    application: str = ""
    reads_data: bool = False

    @property
    def name(self) -> str:
        return f"{self.path} {self.body.__name__} {self.application}".strip()


def _call(path: str, application: str = "", **body: Any) -> Call:
    def filled(office: Office) -> dict[str, Any]:
        def fill(value: Any) -> Any:
            if isinstance(value, dict):
                return {name: fill(item) for name, item in value.items()}
            return getattr(office, value[1:]) if isinstance(value, str) and value.startswith("$") else value

        return {name: fill(item) for name, item in body.items()}

    filled.__name__ = str(body.get("action", "")) or "call"
    reads_data = path == "meta/data" and body["action"] == "get"
    return Call(path, filled, application, reads_data)


PROJECT_CALLS = [
    # An application_id that the endpoint does not use must not change the target of the request.
    _call("publish", project="", application_id="$own"),
    _call("project", action="get", data={"id": "$project", "application_id": "$own"}, application_id="$own"),
    _call("project", action="save", data={"id": "$project", "application_id": "$own"}, application_id="$own"),
    _call("project", action="delete", data={"id": "no-such-project"}, application_id="$own"),
    _call("project/membership", action="get", data={"id": "$project"}, application_id="$own"),
    _call("project/membership", action="save", data={"id": "$project", "allow": []}, application_id="$own"),
    _call("group", action="get", data={"project_id": "$project"}, application_id="$own"),
    _call("group", action="save", group_id="$group", data={"description": "x"}, application_id="$own"),
    _call("group", action="delete", group_id="0" * 24, data={}, application_id="$own"),
    _call("group/access", group_id="$group", data={}, application_id="$own"),
    _call("group/tags", group_id="$group", data={"tags": []}, application_id="$own"),
    _call("application/tags", application_id="$own", data={"tags": ["a"]}),
    _call("audit", data={"application_id": "$own"}, application_id="$own"),
    _call("audit", data={"project_id": "$project"}, application_id="$own"),
]


APPLICATION_CALLS = [
    call
    for application in ("own", "sister", "stranger")
    for call in (
        _call("application", application, action="get", data={"application_id": f"${application}"}),
        _call("application", application, action="save", data={"application_id": f"${application}"}),
        _call("accessKey", application, action="get", application_id=f"${application}"),
        _call("accessKey", application, action="delete", application_id=f"${application}", data={"id": "none"}),
        _call("roles", application, action="get", application_id=f"${application}", data={}),
        _call("roles", application, action="save", application_id=f"${application}", data={"name": "r"}),
        _call("meta/schema", application, action="get", application_id=f"${application}"),
        _call("meta/schema", application, action="save", application_id=f"${application}", data={}),
        _call("meta/data", application, action="get", application_id=f"${application}", data={"user_id": "$bob_id"}),
        _call(
            "meta/data",
            application,
            action="save",
            application_id=f"${application}",
            data={"user_id": "$bob_id", "secret_data": {}},
        ),
    )
] + [
    _call("application", "none", action="save", data={"name": "Created"}),
    _call("application", "none", action="get", data={"application_id": 2**31 - 1}, application_id="$own"),
    _call("application", "none", action="delete", data={"application_id": 2**31 - 1}, application_id="$own"),
]


CALLER_CALLS = [_call("user/info"), _call("user/info", application_id="$own")]


# With accepted credentials there is no 401 and no 403, because the caller has every right. 400, 404 and 409 are about
# the body.
PASSED = {200, 400, 404, 409}
