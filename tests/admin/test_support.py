"""What support does by API: exports and erases accounts, unblocks factors, tests assertions, explains refusals."""

import pytest

from tests.admin.conftest import Administrator, administrator
from tests.kit.browser import query
from tests.kit.server import Server
from tests.perm.endpoints.conftest import Studio

ASSERTIONS = "UPDATE applications SET assertions = CAST($2 AS jsonb) WHERE application_id = $1"
VIOLATION = """INSERT INTO game_violations (id, gsid, reason, expected, found, address, expires)
    VALUES ($1, 'a gsid', 'wrong secret', 'one', 'another', '192.0.2.7', now() + interval '9 h')"""


def operations(root: Administrator, user_id: str) -> list[str]:
    return [entry["operation"] for entry in root.data("/audit", target=user_id)]


def test_export_has_everything_about_the_user_and_is_audited(
    studio: Studio, root: Administrator, manager: Administrator
) -> None:
    user = studio.user()
    answer = manager.request("POST", f"/users/{user.user_id}/export")
    assert answer.status_code == 200, answer.text
    assert answer.json()["data"]["account"]["login"] == user.login
    assert "password_hash" not in answer.text
    assert "user.export" in operations(root, user.user_id)


def test_history_of_a_player_shows_support_and_not_the_address_of_the_administrator(
    server: Server, studio: Studio, manager: Administrator
) -> None:
    user = studio.user()
    agent = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"}
    path = f"/users/{user.user_id}"
    for method, end, body in (("DELETE", "/sessions", None), ("PATCH", "", {"password": "a password of support"})):
        answer = manager.request(method, path + end, agent, json=body)
        assert answer.status_code == 200, answer.text
    sql = """SELECT kind, address, device, detail FROM account_events
        WHERE user_id = $1 AND kind <> 'signed_in' ORDER BY id"""
    by_support = ("", "", '{"by": "support"}')
    assert [tuple(row) for row in query(server, sql, user.user_id)] == [
        ("signed_out_elsewhere", *by_support), ("password_changed", *by_support)
    ]  # fmt: skip


def test_history_of_an_administrator_keeps_the_address_of_changes_of_the_own_account(
    server: Server, studio: Studio
) -> None:
    """A thief with the session of an administrator is not hidden as support."""
    caller = administrator(studio, "can_manage_users")
    answer = caller.request("PATCH", f"/users/{caller.user_id}", json={"password": "another password"})
    assert answer.status_code == 200, answer.text
    sql = "SELECT address, detail FROM account_events WHERE user_id = $1 AND kind = 'password_changed'"
    assert [tuple(row) for row in query(server, sql, caller.user_id)] == [("127.0.0.1", "{}")]


def test_managers_of_users_neither_export_nor_erase_nor_unblock_administrators(
    studio: Studio, manager: Administrator
) -> None:
    path = f"/users/{studio.root.user_id}"
    for method, end in (("POST", "/export"), ("DELETE", "?now=1"), ("DELETE", "/factors/block")):
        assert manager.request(method, path + end).status_code == 403


def test_account_is_erased_at_once(studio: Studio, root: Administrator, manager: Administrator) -> None:
    user = studio.user()
    path = f"/users/{user.user_id}"
    assert manager.request("DELETE", path, {"If-Match": '"another"'}, params={"now": 1}).status_code == 412
    assert manager.request("DELETE", path, params={"now": "maybe"}).status_code == 400
    assert root.data(path)["disabled"] is False
    tag = root.get(path).headers["ETag"]
    assert manager.request("DELETE", path, {"If-Match": tag}, params={"now": 1}).json() == {"status": "OK"}
    assert root.get(path).status_code == 404
    assert not query(studio.server, "SELECT 1 FROM users WHERE user_id = $1", user.user_id)
    assert manager.request("DELETE", path, params={"now": 1}).status_code == 404
    (entry,) = (entry for entry in root.data("/audit", target=user.user_id) if entry["operation"] == "user.erase")
    assert entry["user_id"] == manager.user_id


def test_closed_account_is_erased_at_once(studio: Studio, root: Administrator) -> None:
    path = f"/users/{studio.user().user_id}"
    assert root.request("DELETE", path).json()["data"]["deletion_due"]
    assert root.request("DELETE", path, params={"now": 1}).status_code == 200
    assert root.get(path).status_code == 404


def test_last_administrator_of_a_project_is_not_erased(studio: Studio, root: Administrator) -> None:
    user = studio.user()
    studio.project(user)
    answer = root.request("DELETE", f"/users/{user.user_id}", params={"now": 1})
    assert (answer.status_code, "only administrator of the project" in answer.json()["error"]) == (409, True)
    assert root.data(f"/users/{user.user_id}")["disabled"] is False


def test_blocked_factors_are_listed_and_unblocked(
    server: Server, studio: Studio, root: Administrator, manager: Administrator
) -> None:
    user = studio.user(second_factor=True)
    path = f"/users/{user.user_id}/factors/block"
    query(server, "INSERT INTO factor_guesses (user_id, factor, attempts) VALUES ($1, 'totp', 20)", user.user_id)
    assert root.data(path)["blocked"] == ["totp"]
    assert manager.request("DELETE", path).status_code == 200
    assert root.data(path)["blocked"] == []
    (entry,) = (one for one in root.data("/audit", target=user.user_id) if one["operation"] == "user.unblock_2fa")
    assert (entry["before"], entry["after"]) == ({"blocked": ["totp"]}, {"blocked": []})


def test_gsid_of_a_violation_is_shown_to_callers_who_terminate_sessions(
    server: Server, studio: Studio, root: Administrator
) -> None:
    query(server, VIOLATION, "00000000000000aa")
    shown = root.data("/violations/00000000000000aa")
    assert (shown["gsid"], shown["reason"], shown["found"]) == ("a gsid", "wrong secret", "another")
    viewer = administrator(studio, "can_view_game_sessions")
    assert "gsid" not in viewer.data("/violations/00000000000000aa")
    assert root.get("/violations/none").status_code == 404


@pytest.mark.parametrize("rules", [(), ("can_view_users",)])
def test_assertions_are_tested_without_names_that_the_caller_may_not_see(
    server: Server, studio: Studio, root: Administrator, rules: tuple[str, ...]
) -> None:
    app, user = studio.application(), studio.user()
    statements = f'["{user.login} may never.given"]'
    for key in (app, 1):
        query(
            server, "UPDATE applications SET assertions = CAST($2 AS jsonb) WHERE application_id = $1", key, statements
        )
    viewer = administrator(studio, "can_view_applications", *rules)

    def test(caller: Administrator, **body: int) -> list[tuple[int, str]]:
        answer = caller.request("POST", "/assertions/test", json=body)
        assert answer.status_code == 200, answer.text
        return [(item["application_id"], item["reason"]) for item in answer.json()["data"]["failed"]]

    expected = f"{user.login} may not" if rules else "it does not hold"
    assert test(viewer, application_id=app) == [(app, expected)]
    assert {1, app} <= {key for key, _ in test(root)}
    assert 1 not in {key for key, _ in test(viewer)}
    assert viewer.request("POST", "/assertions/test", json={"application_id": 1}).status_code == 403
    assert viewer.request("POST", "/assertions/test", json={"application_id": 999999}).status_code == 404
    assert viewer.request("POST", "/assertions/test", json={"application_id": "x"}).status_code == 400
    query(server, ASSERTIONS, 1, "[]")
