"""Who sends the requests, and the records that their paths name."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import httpx

from tests.admin.conftest import service_token
from tests.cost.metered_server import MeteredServer
from tests.kit.browser import SESSION, Browser, Forms, query
from tests.perm.endpoints.conftest import FACTOR, ApiUser, Studio

MANY_ROLES = 1000
# As an administrator might save them, each with a condition and rules.
ROLES = f"""WITH role AS (
    INSERT INTO roles (application_id, name, meta, condition) SELECT $1, 'r' || n,
        jsonb_build_object('private_data', (
            SELECT jsonb_object_agg('rule' || n || '_' || k, '{{"value": true}}'::jsonb) FROM generate_series(1, 8) k)),
        jsonb_build_object('and', jsonb_build_array(jsonb_build_object('tag', 't' || n),
            jsonb_build_object('or', jsonb_build_array(
                jsonb_build_object('tag', 'a' || n), jsonb_build_object('domain', 'd' || n || '.org')))))
    FROM generate_series(0, {MANY_ROLES - 1}) n
) UPDATE applications SET revision = revision + 1 WHERE application_id = $1"""


class Caller:
    """A user, whose programs send a user JWT and whose browser has a session; or somebody without an account."""

    def __init__(
        self, studio: Studio, name: str, user: ApiUser | None = None, headers: dict[str, str] | None = None
    ) -> None:
        self.name = name
        self.user = user
        self._server = studio.server
        self._own_headers = headers or {}
        if user is not None:
            self._own_headers = {"Authorization": f"Bearer {user.jwt}", "Factor": FACTOR}
        self._browser: Browser | None = None

    @property
    def is_authenticated(self) -> bool:
        return self.name != "nobody"

    def headers(self, path: str) -> dict[str, str]:
        """Programs have headers, pages have the cookies of a browser."""
        if path.startswith(("/api/", "/proxy/", "/ws/")):
            return self._own_headers
        cookies = "; ".join(f"{name}={value}" for name, value in self.browser.http.cookies.items())
        return {"Cookie": cookies, "Origin": self._server.base_url, "Sec-Fetch-Site": "same-origin"}

    @cached_property
    def csrf(self) -> str:
        page = self.browser.get("/account" if self.user else "/login").text
        return next(form["csrf"] for forms in Forms(page).by_action.values() for form in forms if "csrf" in form)

    @property
    def browser(self) -> Browser:
        if self._browser is None:
            self._browser = Browser(self._server)
            if self.user:
                assert self._browser.sign_in(self.user.login).status_code == 303
            else:
                self._browser.get("/login")
        return self._browser

    @property
    def is_program(self) -> bool:
        return self.name == "service"

    def renew(self, response: httpx.Response) -> None:
        """Signs in again if the response has ended the session of the browser."""
        if self._browser is not None and f"{SESSION}=" in response.headers.get("Set-Cookie", ""):
            self._browser.http.close()
            self._browser = None
            self.__dict__.pop("csrf", None)


@dataclass(frozen=True)
class Records:
    """The records that the paths of requests name. The callers do not depend on them."""

    ids: Mapping[str, str]
    application_id: int
    project_id: str


def create_records(server: MeteredServer, studio: Studio, administrator: ApiUser, player: ApiUser) -> Records:
    """A project with as many roles, conditions, groups and members as an administrator might create."""
    project = studio.project(administrator)
    application = studio.application(project)
    victim = studio.user()
    conditions = [{"title": f"c{n}", "condition": {"tag": f"t{n}"}} for n in range(50)]
    group = studio.group(project, *(player.user_id, victim.user_id), conditions=conditions)
    server.apply({"clients": [{"client_id": "costly", "client_secret": "a secret of this client"}]})
    query(server, ROLES, application)
    held = [{"name": f"r{number}"} for number in range(0, MANY_ROLES, 10)]
    studio.save_data(player, application, roles=held)
    studio.give_secret(player, application, roles={"canRead": "self"}, private={"canRead": "self"})
    ids = {
        "application_id": str(application),
        "app_id": str(application),
        "project_id": project,
        "group_id": group,
        "user_id": victim.user_id,
        "client_id": "costly",
        "name": "r1",
        "filename": "style.css",
        "framework": "trio",
    }
    return Records(ids, application, project)


def create_callers(server: MeteredServer, studio: Studio) -> tuple[list[Caller], Records]:
    player, administrator, state_administrator = studio.user(), studio.user(), studio.user()
    studio.give_rules(state_administrator, "can_view_state")
    records = create_records(server, studio, administrator, player)
    callers = [
        Caller(studio, "nobody"),
        Caller(studio, "player", player),
        Caller(studio, "project administrator", administrator),
        Caller(studio, "state administrator", state_administrator),
        Caller(studio, "service", headers=service_token(server, "service", records.application_id)),
        Caller(studio, "root", studio.root),
    ]
    return callers, records
