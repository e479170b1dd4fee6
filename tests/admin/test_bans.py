"""Bans: what they refuse and end in their scope, who may ban whom, and how they end."""

import time
from collections.abc import Iterator
from typing import Any

import httpx
import orjson
import pytest
from msgspec.structs import asdict

from sso.core.ban import Ban, ban_in_force
from sso.services import Services
from tests.admin.conftest import Administrator, administrator
from tests.kit import oauth, postgres
from tests.kit.browser import Browser, fresh_browser, query
from tests.kit.builders import PASSWORD
from tests.kit.device import confirm, new_device_site, start_device
from tests.kit.game import Game
from tests.kit.server import QUICK, Server, running
from tests.perm.endpoints.conftest import FACTOR, ApiUser, Studio

APPEAL = "https://example.com/appeal?from=game"
REASON = "Cheating in “ranked” games"


@pytest.fixture(scope="module")
def server(postgres_server: postgres.Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    dsn = postgres_server.fresh()
    settings = QUICK | {"SSO_DATABASE_URL": dsn, "SSO_WORKERS": "2", "SSO_RATE_LOGIN": "0", "SSO_RATE_AUTHORIZE": "0"}
    with running(tmp_path_factory.mktemp("bans"), SSO_APPEAL_URL=APPEAL, **settings) as server:
        yield server
    postgres_server.drop(dsn)


@pytest.fixture(autouse=True)
def _closed_clients() -> Iterator[None]:
    yield
    oauth.close_all()


@pytest.fixture(scope="module")
def banner(studio: Studio) -> Administrator:
    return administrator(studio, "can_ban_users")


@pytest.fixture(scope="module")
def project(studio: Studio) -> str:
    return studio.project()


@pytest.fixture(scope="module")
def application(studio: Studio, project: str) -> int:
    return studio.application(project, public_data={"play": {"value": True}})


def ban(caller: Administrator, user: ApiUser, scope: Any = "all", **fields: Any) -> dict[str, Any]:
    body = {"scope": scope, "until": None, "reason": REASON, "note": "report 1", **fields}
    answer = caller.request("POST", f"/users/{user.user_id}/bans", json=body)
    assert answer.status_code == 201, answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


def unban(caller: Administrator, user: ApiUser, ban_id: str) -> None:
    assert caller.request("DELETE", f"/users/{user.user_id}/bans/{ban_id}").status_code == 200


def log_in(user: ApiUser, password: str = PASSWORD, **fields: Any) -> httpx.Response:
    return user.client.post("/proxy/api/login", json={"login": user.login, "password": password, **fields})


def is_banned(answer: httpx.Response, scope: Any = "all", until: int | None = None) -> bool:
    notice = {"reason": REASON, "until": until, "scope": scope, "appeal_url": APPEAL}
    expected = {"status": "ERROR", "error": "banned", "ban": notice}
    return (answer.status_code, answer.json()) == (403, expected)


def check(studio: Studio, user: ApiUser, application_id: int) -> dict[str, Any]:
    data = {"questions": [{"user_id": user.user_id, "rule": "play"}]}
    answer = studio.root.call("check", application_id=application_id, data=data, options={"reason": True})
    return dict(answer.data[0])


def test_ban_of_all_refuses_sign_in_only_after_the_right_password(studio: Studio, banner: Administrator) -> None:
    user = studio.user()
    token = log_in(user).json()["token"]
    stored = ban(banner, user)
    assert is_banned(log_in(user))
    # A device that was refused is not known afterwards, so the owner is told when it signs in.
    known = "SELECT count(*) AS count FROM known_factors WHERE user_id = $1"
    before = query(studio.server, known, user.user_id)
    assert is_banned(log_in(user, factor="a new device"))
    assert query(studio.server, known, user.user_id) == before
    assert log_in(user, "wrong").json()["error"] == "invalid credentials"
    assert is_banned(user.client.post("/proxy/api/login", json={"token": token}))
    assert user.call("user/info").status == 401  # the JWT ended
    unban(banner, user, stored["id"])
    assert log_in(user).status_code == 200
    assert user.client.post("/proxy/api/login", json={"token": token}).status_code == 401  # it does not come back


def test_ban_of_an_application_ends_what_belongs_to_it_and_leaves_the_rest(
    studio: Studio, banner: Administrator, application: int
) -> None:
    user, other = studio.user(), studio.application()
    here = log_in(user, factor=FACTOR, app_id=application).json()
    there = log_in(user, factor=FACTOR, app_id=other).json()
    assert check(studio, user, application)["allow"] is True
    stored, scope = ban(banner, user, {"application_id": application}), {"application_id": application}
    assert is_banned(log_in(user, app_id=application), scope)
    assert is_banned(log_in(user, gapp_id=application), scope)
    assert is_banned(user.client.post("/proxy/api/login", json={"token": here["token"]}), scope)
    assert user.client.post("/proxy/api/login", json={"token": there["token"]}).status_code == 200
    assert log_in(user).status_code == 200
    jwt_here = ApiUser(user.client, user.user_id, user.login, here["jwt"])
    assert (jwt_here.call("user/info").status, user.call("user/info").status) == (401, 200)
    answer = check(studio, user, application)
    assert (answer["allow"], answer["reason"]["reasons"][0]["reason"]) == (False, "banned")
    assert studio.rules_of(user, application) == []
    unban(banner, user, stored["id"])
    assert check(studio, user, application)["allow"] is True


def test_ban_of_a_project_covers_its_applications_and_the_rights_in_it(
    studio: Studio, root: Administrator, project: str, application: int
) -> None:
    user = studio.user()
    studio.join(project, user, project=["viewer"])
    rights = studio.rules_of(user, 1)
    assert f"{project}/project.can_view_project" in rights
    stored = ban(root, user, {"project_id": project})
    assert is_banned(log_in(user, app_id=application), {"project_id": project})
    assert check(studio, user, application)["allow"] is False
    assert not any(rule.startswith(f"{project}/") for rule in studio.rules_of(user, 1))
    unban(root, user, stored["id"])
    assert studio.rules_of(user, 1) == rights


def test_oauth_endpoints_name_the_reason(
    server: Server, studio: Studio, banner: Administrator, application: int
) -> None:
    site = oauth.new_site(server, application_id=application, consent=False)
    browser = oauth.new_browser(server).sign_in()
    user_id = query(server, "SELECT user_id FROM users WHERE login = $1", browser.login)[0]["user_id"]
    user = ApiUser(studio.client, user_id, browser.login, "")
    tokens, code = site.tokens(browser), browser.code(site)
    stored = ban(banner, user, {"application_id": application}, until=4_000_000_000)
    description = "the user is banned until 2096-10-02 07:06 UTC: Cheating in ?ranked? games"
    redirected = oauth.query_of(browser.authorize(site))
    assert (redirected["error"], redirected["error_description"]) == ("access_denied", description)
    for answer in (site.redeem(code), site.refresh(tokens["refresh_token"])):
        assert (answer.status_code, answer.json()) == (
            400, {"error": "invalid_grant", "error_description": description}
        )  # fmt: skip
    assert site.userinfo(tokens["access_token"]).status_code == 401
    unban(banner, user, stored["id"])
    assert site.refresh(tokens["refresh_token"]).status_code == 400  # it does not come back
    assert site.redeem(code).status_code == 400
    assert "refresh_token" in (renewed := site.tokens(browser))
    ban(banner, user)
    assert site.refresh(renewed["refresh_token"]).json()["error_description"].startswith("the user is banned: Cheat")
    assert site.userinfo(renewed["access_token"]).status_code == 401
    assert browser.authorize(site).status_code == 200  # the browser is signed out: a sign-in page


def test_device_grant_names_the_reason(server: Server, studio: Studio, banner: Administrator, application: int) -> None:
    """Of a device that was confirmed before the ban, and of one that the banned user confirms afterwards."""
    site, user = new_device_site(server, application_id=application), studio.user()
    confirmed, opened = start_device(site), start_device(site)
    with fresh_browser(server, user.login) as browser:
        confirm(browser, confirmed)
        ban(banner, user, {"application_id": application})
        confirm(browser, opened)
    for device in (confirmed, opened):
        refused = device.ask()
        assert refused.status_code == 400, refused.text
        assert "banned: Cheating" in refused.json()["error_description"], refused.text


def test_page_shows_reason_end_and_appeal_link(server: Server, studio: Studio, banner: Administrator) -> None:
    user = studio.user(lang="de")
    ban(banner, user, reason="<b>x</b> & y", until=4_000_000_000)
    with Browser(server) as browser:
        answer = browser.sign_in(user.login)
        assert answer.status_code == 403
        for text in ("You are banned", "&lt;b&gt;x&lt;/b&gt; &amp; y", "Oct 2, 2096", f'href="{APPEAL}"'):
            assert text in answer.text
        assert not browser.is_signed_in
        assert browser.sign_in(user.login, "wrong password").status_code == 401


def test_game_page_of_a_banned_user_ends_the_session_and_tells_the_game(
    server: Server, studio: Studio, banner: Administrator, application: int
) -> None:
    user, scope = studio.user(), {"application_id": application}
    ban(banner, user, scope)
    with Game(server) as game, fresh_browser(server, user.login) as browser:
        session = game.register(factor="f", app_id=application)
        assert browser.get(session.decision).status_code == 403
        assert "This account cannot be used here" in browser.page.text
        assert is_banned(session.poll(), scope)
        assert browser.get(game.register(factor="f").decision).status_code == 200  # of no application


async def end_due(services: Services) -> None:
    await services.ban_expiry.end_due()


def test_bans_overlap_and_end_by_themselves_once(server: Server, studio: Studio, banner: Administrator) -> None:
    user = studio.user()
    first, second = ban(banner, user), ban(banner, user, until=int(time.time()) + 3600)
    assert [item["id"] for item in banner.data(f"/users/{user.user_id}/bans")] == [first["id"], second["id"]]
    unban(banner, user, first["id"])
    assert is_banned(log_in(user), until=second["until"])
    past = "UPDATE user_bans SET until = 1 WHERE id = $1"
    query(server, past, second["id"])
    query(server, "UPDATE users SET bans = jsonb_set(bans, '{0,until}', '1') WHERE user_id = $1", user.user_id)
    assert log_in(user).status_code == 200  # the rule does not wait for the job
    for _ in range(2):  # a worker may have been faster
        server.run_with_services(end_due)
    events = "SELECT type FROM change_events WHERE user_id = $1 AND type LIKE 'user_%banned' ORDER BY at, type"
    found = [row["type"] for row in query(server, events, user.user_id)]
    assert sorted(found) == ["user_banned", "user_banned", "user_unbanned", "user_unbanned"]
    assert (banner.data(f"/users/{user.user_id}/bans"), banner.get(f"/users/{user.user_id}").status_code) == ([], 403)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, "scope: is required"),
        ({"scope": "everything"}, "scope: must be"),
        ({"scope": {"application_id": "1"}}, "scope: must be"),
        ({"scope": {"application_id": 1, "project_id": "x"}}, "scope: must be"),
        ({"scope": {"application_id": 99999}}, "scope.application_id: there is no such application"),
        ({"scope": {"project_id": "none"}}, "scope.project_id: there is no such project"),
        ({"scope": "all", "until": 1}, "until: must be in the future"),
        ({"scope": "all", "until": "tomorrow"}, "until: must be"),
        ({"scope": "all", "reason": "a\nb"}, "reason: must not contain"),
        ({"scope": "all", "reason": "x" * 501}, "reason: must be at most 500"),
        ({"scope": "all", "days": 1}, "days: is unknown"),
    ],
)
def test_invalid_ban_is_refused_with_the_field(
    studio: Studio, banner: Administrator, body: dict[str, Any], error: str
) -> None:
    answer = banner.request("POST", f"/users/{studio.keeper.user_id}/bans", json=body)
    assert (answer.status_code, answer.json()["error"][: len(error)]) == (400, error), answer.text


def test_who_may_ban_whom(studio: Studio, root: Administrator, banner: Administrator, project: str) -> None:
    application, player = studio.application(project), studio.user()
    in_project, at_application = studio.user(), studio.user()
    studio.role(1, "game_master", app={"can_ban_users": {"value": True}})
    studio.role(1, "referee", project={"can_ban_users": {"value": True}})
    studio.join(project, in_project, project=["referee"])
    studio.join(project, at_application, applications={str(application): ["game_master"]})
    scopes: list[Any] = ["all", {"project_id": project}, {"application_id": application}, {"application_id": 1}]

    def allowed(caller: Administrator, user: ApiUser) -> list[bool]:
        answers = [
            caller.request("POST", f"/users/{user.user_id}/bans", json={"scope": scope, "until": 4_000_000_000})
            for scope in scopes
        ]
        assert all(answer.status_code in (201, 403, 409) for answer in answers), [item.text for item in answers]
        return [answer.status_code == 201 for answer in answers]

    referee, master = Administrator.of(in_project), Administrator.of(at_application)
    assert allowed(administrator(studio), player) == [False] * 4
    assert allowed(administrator(studio, "can_manage_users"), player) == [False] * 4
    assert allowed(master, player) == [False, False, True, False]
    assert allowed(referee, player) == [False, True, True, False]
    assert allowed(banner, player) == [True] * 4
    assert [len(caller.data(f"/users/{player.user_id}/bans")) for caller in (master, referee, root)] == [3, 5, 7]
    auditor = studio.user()
    studio.give_rules(auditor, "can_view_audit")
    # Nobody bans root, themselves, or a user with rights that they could not take away.
    assert allowed(root, studio.root) == [False] * 4
    assert allowed(root, ApiUser(studio.client, root.user_id, "", "")) == [False] * 4
    assert allowed(referee, at_application) == [False] * 4
    assert allowed(banner, auditor) == [False] * 4
    other = root.data(f"/users/{player.user_id}/bans")[-1]["id"]
    assert referee.request("DELETE", f"/users/{player.user_id}/bans/{other}").status_code == 404
    assert root.request("DELETE", f"/users/{player.user_id}/bans/{other}").status_code == 200
    assert root.request("DELETE", f"/users/{player.user_id}/bans/{other}").status_code == 404
    assert allowed(root, in_project) == [True] * 4


def test_manager_of_a_project_cannot_ban_its_administrators(studio: Studio) -> None:
    owner, second, manager, other = (studio.user() for _ in range(4))
    project = studio.project(owner)
    application = studio.application(project)
    studio.join(project, second, project=["admin"])
    for user in (manager, other):
        studio.join(project, user, project=["manager"])
    caller = Administrator.of(manager)
    for scope in ({"project_id": project}, {"application_id": application}):
        answer = caller.request("POST", f"/users/{second.user_id}/bans", json={"scope": scope})
        assert (answer.status_code, "could not take away" in answer.text) == (403, True), answer.text
    ban(caller, other, {"project_id": project})  # the caller has all rights of that role
    ban(Administrator.of(owner), second, {"project_id": project})


def test_who_may_lift_which_ban(studio: Studio, root: Administrator) -> None:
    studio.role(1, "referee", project={"can_ban_users": {"value": True}})
    owner, referee, player = (studio.user() for _ in range(3))
    project = studio.project(owner)
    application = studio.application(project)
    studio.join(project, referee, project=["referee"])
    second = studio.user()
    studio.join(project, second, project=["admin"])
    caller = Administrator.of(referee)

    def lift(user: ApiUser) -> tuple[int, str]:
        stored = ban(root, user, {"application_id": application})
        answer = caller.request("DELETE", f"/users/{user.user_id}/bans/{stored['id']}")
        left = [item["id"] for item in root.data(f"/users/{user.user_id}/bans")]
        assert (stored["id"] in left) == (answer.status_code != 200)
        return answer.status_code, answer.json().get("error", "")

    assert lift(player) == (200, "")
    assert lift(referee) == (409, "you cannot lift your own ban")
    status, error = lift(second)  # whom the caller could not have banned
    assert (status, "project.can_manage_project is required" in error) == (403, True)


def test_ban_at_an_application_ends_reading_it_in_every_interface(studio: Studio, root: Administrator) -> None:
    user = studio.user()
    application = studio.application(studio.project())
    studio.give_secret(user, application, "canReadSchema", "canSave", "canRead", "canCreateJwt", "canSeeRoleList")
    caller = Administrator.of(user)
    paths = (
        f"/applications/{application}",
        f"/schemas/{application}",
        f"/roles?application_id={application}",
        f"/access-keys?application_id={application}",
    )
    assert [caller.get(path).status_code for path in paths] == [200] * 4
    ban(root, user, {"application_id": application})
    assert user.call("meta/schema", action="get", application_id=application).status == 403
    assert {caller.get(path).status_code for path in paths} <= {403, 404}


def test_ban_at_an_application_ends_the_roles_of_a_member_there(studio: Studio, root: Administrator) -> None:
    member, project = studio.user(), studio.project()
    application, other = studio.application(project), studio.application(project)
    studio.join(project, member, applications={str(key): ["app_admin"] for key in (application, other)})
    ban(root, member, {"application_id": application})
    for key, status in ((application, 403), (other, 200)):
        assert member.call("application", action="get", data={"application_id": key}).status == status
    assert Administrator.of(member).get(f"/applications/{application}").status_code == 404
    assert member.call("meta/data", action="get", application_id=1, data={"type": "roles"}).data == [
        f"{project}.applications.{other}/app_admin"
    ]


def test_only_administrator_of_a_project_cannot_be_banned_from_it(studio: Studio, root: Administrator) -> None:
    owner, other = studio.user(), studio.user()
    own, elsewhere = studio.project(owner), studio.project()
    for scope in ("all", {"project_id": own}):
        answer = root.request("POST", f"/users/{owner.user_id}/bans", json={"scope": scope})
        assert (answer.status_code, "only administrator of the project" in answer.json()["error"]) == (409, True)
    ban(root, owner, {"project_id": elsewhere})
    studio.join(own, other, project=["admin"])
    ban(root, owner, {"project_id": own})
    answer = root.request("POST", f"/users/{other.user_id}/bans", json={"scope": {"project_id": own}})
    assert answer.status_code == 409  # the administrator who is left


def test_function_of_the_database_agrees_with_the_rule(server: Server, application: int, project: str) -> None:
    now, ends = time.time(), (None, 1, int(time.time()) + 1000, int(time.time()) + 2000)
    places: list[dict[str, Any]] = [{}, {"application_id": application}, {"application_id": 5}, {"project_id": project}]
    bans = [Ban(f"{n}-{end}", "r", end, **place) for n, place in enumerate(places) for end in ends]
    for first in range(len(bans)):
        for chosen in (bans[first:], bans[first : first + 3], bans[first : first + 1]):
            stored = [asdict(item) for item in chosen]
            for asked, projects in (((), ()), ((application,), (project,)), ((5,), ())):
                sql = "SELECT ban_in_force($1, $2) AS ban"
                row = query(server, sql, orjson.dumps(stored).decode(), list(asked))[0]["ban"]
                rule = ban_in_force(chosen, now, asked, projects)
                found = None if row is None else Ban.from_json(orjson.loads(row))
                assert (found is None, found and found.until) == (rule is None, rule and rule.until), (chosen, asked)
