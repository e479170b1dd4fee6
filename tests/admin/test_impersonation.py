"""Support opens the account of a player: who may, for how long, what the player learns, and that nothing is changed."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from sso.accounts.impersonation.visitor import END, VISIBLE, WRITABLE
from sso.app import build_app
from sso.health import Health
from sso.services import Services
from sso.telemetry.metrics import Metrics
from sso.web.csrf import csrf_token
from tests.admin.conftest import Administrator, administrator
from tests.kit import oauth
from tests.kit.browser import Browser, fresh_browser, query
from tests.kit.browser import new_user as new_account
from tests.kit.mailbox import wait_for_mails
from tests.kit.oauth import AUTHORIZE, new_site
from tests.kit.server import Server
from tests.perm.endpoints.conftest import ApiUser, Studio

COOKIE = "sso_impersonation"
REASON = "ticket 4711"
OPENED = "You are looking at the account of"
# What the account of a user consists of.
STATE = """SELECT to_jsonb(u) - 'updated' AS account,
    (SELECT count(*) FROM browser_sessions s WHERE s.user_id = u.user_id) AS sessions,
    (SELECT count(*) FROM sign_ins s WHERE s.user_id = u.user_id) AS sign_ins,
    (SELECT count(*) FROM oauth_grants s WHERE s.user_id = u.user_id) AS grants,
    (SELECT count(*) FROM oauth_codes s WHERE s.user_id = u.user_id) AS codes,
    (SELECT count(*) FROM oauth_consents s WHERE s.user_id = u.user_id) AS consents,
    (SELECT count(*) FROM passkeys s WHERE s.user_id = u.user_id) AS passkeys,
    (SELECT count(*) FROM mailed_links s WHERE s.user_id = u.user_id) AS links,
    (SELECT count(*) FROM account_events s WHERE s.user_id = u.user_id) AS events
    FROM users u WHERE user_id = $1"""


@pytest.fixture(scope="module")
def support(studio: Studio) -> Administrator:
    return administrator(studio, "can_impersonate_users")


@pytest.fixture(scope="module")
def player(studio: Studio) -> ApiUser:
    """A user whose account nobody opens."""
    return studio.user()


@pytest.fixture(autouse=True)
def _closed_clients() -> Iterator[None]:
    yield
    oauth.close_all()


def ask(caller: Administrator, user_id: str, /, **fields: Any) -> httpx.Response:
    body = {"reason": REASON, "minutes": 10, **fields}
    body = {name: value for name, value in body.items() if value is not None}
    return caller.request("POST", f"/users/{user_id}/impersonate", json=body)


def link(caller: Administrator, user: ApiUser, **fields: Any) -> str:
    answer = ask(caller, user.user_id, **fields)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"status", "url"}
    return str(answer.json()["url"])


def open_account(browser: Browser, url: str) -> None:
    assert browser.get(url.removeprefix(browser.server.base_url)).status_code == 200
    answer = browser.submit("/impersonate")
    assert answer.headers["Location"] == "/account", answer.text
    assert OPENED in browser.get("/account").text


def operations(server: Server, user_id: str) -> list[tuple[str, str]]:
    """The audit entries about a user: operation and author."""
    sql = "SELECT operation, user_id FROM audit WHERE target = $1 AND operation LIKE 'user.imp%' ORDER BY id"
    return [(row["operation"], row["user_id"]) for row in query(server, sql, user_id)]


def test_support_sees_the_account_and_the_player_is_told(
    server: Server, studio: Studio, support: Administrator
) -> None:
    player = studio.user()
    with Browser(server) as browser:
        open_account(browser, link(support, player))
        assert player.login in browser.page.text
        assert "You cannot change anything." in browser.page.text
        assert 'action="/logout"' not in browser.page.text
        assert OPENED in browser.get("/account/history").text
        assert "Account page opened" in browser.page.text
        assert browser.submit(END).headers["Location"] == "/account"
        assert browser.cookie(COOKIE) is None
        assert browser.get("/account").is_redirect
    author = support.user_id
    names = ("user.impersonate", "user.impersonation_begin", "user.impersonation_end")
    assert operations(server, player.user_id) == [(name, author) for name in names]
    [row] = query(server, "SELECT after FROM audit WHERE target = $1 AND operation = $2", player.user_id, names[0])
    assert REASON in row["after"]
    [mail] = wait_for_mails(server, player.login, "Support has opened your account")
    export = Administrator.of(studio.root).request("POST", f"/users/{player.user_id}/export").text
    assert "user.impersonate" in export
    assert REASON not in mail + export
    [event] = query(
        server,
        "SELECT address, device, detail FROM account_events WHERE user_id = $1 AND kind = 'opened_by_support'",
        player.user_id,
    )
    assert (event["address"], event["device"], REASON in event["detail"]) == ("", "", False)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"reason": None}, "reason"),
        ({"reason": "  "}, "reason"),
        ({"reason": "a\nb"}, "reason"),
        ({"reason": "x" * 501}, "reason"),
        ({"minutes": 0}, "minutes"),
        ({"minutes": 31}, "minutes"),
        ({"minutes": "10"}, "minutes"),
        ({"minutes": True}, "minutes"),
        ({"writes": 1}, "writes"),
        ({"user_id": "1"}, "user_id"),
    ],
)
def test_request_is_checked(player: ApiUser, support: Administrator, fields: dict[str, Any], named: str) -> None:
    answer = ask(support, player.user_id, **fields)
    assert answer.status_code == 400, answer.text
    assert named in answer.json()["error"]


def test_nobody_opens_the_account_of_an_administrator(
    studio: Studio, support: Administrator, root: Administrator, service_client: Administrator
) -> None:
    colleague = administrator(studio, "can_view_clients")
    member, player = studio.user(), studio.user()
    studio.project(member)
    for caller in (support, root):
        for user_id in (studio.root.user_id, support.user_id, colleague.user_id, member.user_id):
            assert ask(caller, user_id).status_code == 403, (caller, user_id)
    assert ask(service_client, player.user_id).status_code == 403  # nobody could say who has looked
    assert ask(administrator(studio, "can_manage_users"), player.user_id).status_code == 403
    assert ask(support, player.user_id, writes=True).status_code == 403
    assert ask(support, "999999999").status_code == 404
    elsewhere = studio.user()  # an administrator at another address only
    condition = {"and": [{"uid": [elsewhere.user_id]}, {"ip": "203.0.113.0/24"}]}
    rules = {"private_data": {"can_manage_users": {"value": True}}}
    studio.server.apply({"roles": {"1": [{"name": "remote", "meta": rules, "condition": condition}]}})
    assert ask(support, elsewhere.user_id).status_code == 403
    disabled = studio.user()
    studio.server.sso("user", "disable", disabled.user_id)
    assert ask(support, disabled.user_id).status_code == 409


def test_link_works_once_even_at_the_same_moment(server: Server, studio: Studio, support: Administrator) -> None:
    player = studio.user()
    path = link(support, player).removeprefix(server.base_url)
    browsers = [Browser(server) for _ in range(20)]
    for browser in browsers:
        assert browser.get(path).status_code == 200
    with ThreadPoolExecutor(len(browsers)) as threads:
        answers = list(threads.map(lambda browser: browser.submit("/impersonate").status_code, browsers))
    assert (answers.count(303), answers.count(410)) == (1, 19)
    assert sum(browser.cookie(COOKIE) is not None for browser in browsers) == 1
    assert [name for name, _ in operations(server, player.user_id)].count("user.impersonation_begin") == 1
    assert browsers[0].get(path).status_code == 410
    for browser in browsers:
        browser.http.close()


def test_link_and_visit_end_by_time(server: Server, studio: Studio, support: Administrator) -> None:
    player = studio.user()
    late = "UPDATE impersonations SET expires = now() - interval '1 second' WHERE user_id = $1"
    path = link(support, player).removeprefix(server.base_url)
    [row] = query(
        server,
        "SELECT expires <= now() + interval '60 s' AS soon FROM impersonations WHERE user_id = $1",
        player.user_id,
    )
    assert row["soon"]
    with Browser(server) as browser:
        assert browser.get(path).status_code == 200
        query(server, late, player.user_id)
        assert browser.submit("/impersonate").status_code == 410
        open_account(browser, link(support, player))
        query(server, late, player.user_id)
        assert browser.get("/account").is_redirect
        assert browser.get("/impersonate?token=x").status_code == 410


def _end_player_sessions(server: Server, player: ApiUser, support: Administrator) -> None:
    server.sso("user", "end-sessions", player.user_id)


def _ban_player(server: Server, player: ApiUser, support: Administrator) -> None:
    server.sso("user", "ban", player.user_id)


def _end_own_sessions(server: Server, player: ApiUser, support: Administrator) -> None:
    server.sso("user", "end-sessions", support.user_id)


def _ban_support(server: Server, player: ApiUser, support: Administrator) -> None:
    server.sso("user", "ban", support.user_id)


def _disable_support(server: Server, player: ApiUser, support: Administrator) -> None:
    server.sso("user", "disable", support.user_id)


ENDS = [_end_player_sessions, _ban_player, _end_own_sessions, _ban_support, _disable_support]


@pytest.mark.parametrize("end", ENDS)
def test_visit_ends_with_either_user(server: Server, studio: Studio, end: Any) -> None:
    support, player = administrator(studio, "can_impersonate_users"), studio.user()
    with Browser(server) as browser, Browser(server) as other:
        open_account(browser, link(support, player))
        assert other.get(link(support, player).removeprefix(server.base_url)).status_code == 200
        end(server, player, support)
        assert browser.get("/account").is_redirect
        assert other.submit("/impersonate").status_code == 410


def test_visit_ends_when_the_player_wants_or_rights_change(
    server: Server, studio: Studio, support: Administrator
) -> None:
    player = studio.user()
    with Browser(server) as browser, fresh_browser(server, player.login) as own:
        open_account(browser, link(support, player))
        own.open_account()
        assert own.submit("/account/sessions/end-others").status_code == 303
        assert own.is_signed_in
        assert browser.get("/account").is_redirect
    with Browser(server) as browser:
        player = studio.user()
        open_account(browser, link(support, player))
        studio.give_rules(player, "can_view_audit")
        assert browser.get("/account").is_redirect
    colleague = studio.user()
    studio.give_rules(colleague, "can_impersonate_users")
    with Browser(server) as browser:
        open_account(browser, link(Administrator.of(colleague), studio.user()))
        studio.give_rules(colleague)  # none: the right is taken away
        assert browser.get("/account").is_redirect


def test_no_form_of_any_page_acts_for_the_player(server: Server, studio: Studio, support: Administrator) -> None:
    """A new page is refused without doing anything for it."""

    async def read_rules(services: Services) -> list[Any]:
        return [rule for rule in build_app(services, Health(), Metrics()).url_map.iter_rules() if rule.methods]

    rules = server.run_with_services(read_rules)
    player = studio.user()
    with Browser(server) as browser:
        open_account(browser, link(support, player))
        before = query(server, STATE, player.user_id)
        fields = {"csrf": csrf_token(browser.cookie(COOKIE) or ""), "nick": "Thief", "id": "1", "ids": "1"}
        for rule in rules:
            path = re.sub(r"<[^>]*>", "1", rule.rule)
            is_account = path == "/account" or path.startswith("/account/")
            if "POST" in rule.methods and path != END:
                status = browser.post(path, fields).status_code
                assert status < 500, path
                assert not is_account or status == 403, path
            if "GET" in rule.methods and is_account and path not in VISIBLE:
                assert browser.get(path).status_code in (303, 403), path  # a redirect shows nothing
        assert query(server, STATE, player.user_id) == before
        assert browser.get("/account").status_code == 200


def test_visit_is_no_session_elsewhere(server: Server, studio: Studio, support: Administrator) -> None:
    site = new_site(server, profile="oidc")
    colleague = new_account(server)
    player = studio.user()
    with Browser(server) as browser:
        open_account(browser, link(support, player))
        answer = browser.get(AUTHORIZE, params=site.query(prompt="none"))
        assert "login_required" in answer.headers["Location"]
        assert browser.get("/console").is_redirect
        # The cookie of the visit is none of a session, and its secret none of a user.
        browser.set_cookie(browser.cookie(COOKIE) or "")
        browser.http.cookies.delete(COOKIE)
        assert browser.get("/account").is_redirect
    with fresh_browser(server, colleague) as browser:  # who is signed in stays so, outside the account page
        open_account(browser, link(support, player))
        answer = browser.get(AUTHORIZE, params=site.query())
        code = answer.headers["Location"].partition("code=")[2].partition("&")[0]
        tokens = site.redeem(code, headers=site.basic()).json()
        assert site.claims(tokens["id_token"])["sub"] != player.user_id
        browser.get("/account")
        browser.submit(END)
        assert colleague in browser.open_account().text


def test_changes_need_a_further_right_and_are_audited(server: Server, studio: Studio) -> None:
    support = administrator(studio, "can_impersonate_users", "can_manage_users")
    player = studio.user()
    with Browser(server) as browser:
        open_account(browser, link(support, player, writes=True))
        assert "You can change the profile" in browser.page.text
        assert browser.submit("/account/profile", nick="Helped").status_code == 303
        browser.get("/account")
        assert browser.post("/account/password", browser.form("/account/password")).status_code == 403
        csrf = csrf_token(browser.cookie(COOKIE) or "")
        assert browser.post("/account/profile", {"csrf": "x", "nick": "Forged"}).status_code == 403
        for path in sorted(WRITABLE):
            assert browser.post(path, {"csrf": csrf}).status_code != 500
    [row] = query(server, "SELECT nick FROM users WHERE user_id = $1", player.user_id)
    assert row["nick"] != "Forged"
    assert ("user.impersonated_change", support.user_id) in operations(server, player.user_id)
    [event] = query(
        server,
        "SELECT address, detail FROM account_events WHERE user_id = $1 AND kind = 'profile_changed' LIMIT 1",
        player.user_id,
    )
    assert (event["address"], "support" in event["detail"]) == ("", True)


def test_visit_ends_with_the_sign_out_and_with_the_right_to_change(server: Server, studio: Studio) -> None:
    colleague = studio.user()
    studio.give_rules(colleague, "can_impersonate_users", "can_manage_users")
    caller, player = Administrator.of(colleague), studio.user()
    with fresh_browser(server, colleague.login) as browser:
        open_account(browser, link(caller, player))
        browser.get("/console")
        assert browser.submit("/logout").is_redirect
        assert browser.get("/account").headers["Location"].startswith("/login")
    with Browser(server) as browser:
        open_account(browser, link(caller, player, writes=True))
        studio.give_rules(colleague, "can_impersonate_users")
        assert browser.get("/account").is_redirect


def test_operator_gets_a_link_by_command(server: Server, studio: Studio) -> None:
    player = studio.user()
    url = server.sso("user", "impersonate", player.login, "--reason", REASON, "--minutes", "5").stdout.strip()
    with Browser(server) as browser:
        open_account(browser, url)
    refused = server.sso("user", "impersonate", player.login, "--reason", REASON, "--minutes", "31", check=False)
    assert "--minutes" in refused.stderr
    [row] = query(
        server,
        "SELECT operator FROM audit WHERE target = $1 AND operation = 'user.impersonation_begin'",
        player.user_id,
    )
    assert row["operator"]
