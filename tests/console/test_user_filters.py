"""Filters of lists that take users by e-mail address or id."""

from tests.admin.conftest import Administrator, root
from tests.console.conftest import ConsoleBrowser, console_browser
from tests.perm.endpoints.conftest import Studio

__all__ = ["root"]


def test_audit_trail_is_filtered_by_the_address_of_the_actor_and_of_the_target(
    studio: Studio, root: Administrator, root_browser: ConsoleBrowser
) -> None:
    user, other = studio.user(), studio.user()
    for one in (user, other):
        root.request("PATCH", f"/users/{one.user_id}", json={"nick": f"Nick {one.user_id}"})
    root.request("PATCH", f"/users/{user.user_id}/permissions", json={"application_id": 1, "roles": ["auditor"]})
    page = root_browser.open("/console/audit", params={"target": user.login.upper(), "operation": "user.save"})
    shown = f"/console/users/{user.user_id}"
    assert (shown in page, f"/console/users/{other.user_id}" in page) == (True, False)
    page = root_browser.open("/console/audit", params={"target": f"1/{user.login}"})
    assert (shown in page, "the role <code>auditor</code>" in page) == (True, True)
    page = root_browser.open("/console/audit", params={"actor": studio.root.login, "target": user.user_id})
    assert shown in page
    answer = root_browser.get("/console/audit/export.csv", params={"target": other.login, "operation": "user.save"})
    assert [line.split(",")[9] for line in answer.text.splitlines()[1:]] == [other.user_id]


def test_unknown_address_is_a_problem_of_the_form_and_no_error_while_it_is_typed(root_browser: ConsoleBrowser) -> None:
    for path, name in (
        ("/console/audit", "actor"),
        ("/console/audit", "target"),
        ("/console/game-sessions", "user_id"),
    ):
        query = {name: "nobody@example.com"}
        answer = root_browser.get(path, params=query)
        assert (answer.status_code, "There is no user nobody@example.com" in answer.text) == (422, True), path
        answer = root_browser.get(path, params=query, headers={"HX-Request": "true"})
        assert (answer.status_code, "There is no user nobody@example.com" in answer.text) == (200, True), path


def test_administrator_who_may_not_see_users_gives_an_id(studio: Studio) -> None:
    user = studio.user()
    with console_browser(studio, "can_view_audit", "can_view_game_sessions") as auditor:
        for path, name in (("/console/audit", "actor"), ("/console/game-sessions", "user_id")):
            answer = auditor.get(path, params={name: user.login})
            assert (answer.status_code, "can_view_users is required" in answer.text) == (422, True), path
            auditor.open(path, params={name: user.user_id})
