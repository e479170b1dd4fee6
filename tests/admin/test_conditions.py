"""The test of conditions in the management API."""

from typing import Any

import pytest

from tests.admin.conftest import Administrator, administrator
from tests.kit.browser import query
from tests.perm.endpoints.conftest import ApiUser, Studio


@pytest.fixture(scope="module")
def projects(studio: Studio) -> Administrator:
    return administrator(studio, "can_view_projects")


@pytest.fixture(scope="module")
def tester(studio: Studio) -> ApiUser:
    return studio.user(tags=["beta"], purchases=["gold"])


def judge(caller: Administrator, **body: Any) -> dict[str, Any]:
    response = caller.request("POST", "/conditions/test", json=body)
    assert response.status_code == 200, response.text
    outcome: dict[str, Any] = response.json()["data"]
    return outcome


def test_condition_is_compared_with_a_user_at_an_address(root: Administrator, tester: ApiUser) -> None:
    condition = {"tag": "beta", "or": [{"ip": "192.0.2.0/24"}, {"purchase": "silver"}]}
    outcome = judge(root, condition=condition, user=tester.login, address="192.0.2.7")
    assert outcome["holds"] is True
    compared = {item["member"]: (item["holds"], item["decides"]) for item in outcome["conditions"][0]["compared"]}
    assert compared == {"tag": (True, True), "or[0].ip": (True, True), "or[1].purchase": (False, False)}
    assert outcome["user"]["user_id"] == tester.user_id
    assert judge(root, condition=condition, user=tester.user_id, address="198.51.100.7")["holds"] is False
    assert judge(root, condition=condition, user=tester.user_id)["holds"] is False


def test_given_facts_replace_those_of_the_user(root: Administrator, tester: ApiUser) -> None:
    condition = {"domain": "studio.example", "tag": "beta"}
    assert judge(root, condition=condition, user=tester.login, domain="Studio.Example")["holds"] is True
    assert judge(root, condition=condition, user=tester.login, domain="studio.example", tags=[])["holds"] is False
    assert judge(root, condition=condition, domain="studio.example", tags=["beta"])["holds"] is True


def test_group_has_added_users_and_users_who_meet_a_condition(
    studio: Studio, root: Administrator, tester: ApiUser
) -> None:
    conditions = [
        {"title": "Gold", "condition": {"purchase": "gold"}},
        {"title": "Staff", "condition": {"domain": "studio.example"}},
    ]
    added = studio.user()
    group = studio.group(studio.project(), added.user_id, conditions=conditions)
    outcome = judge(root, group_id=group, user=tester.login)
    assert (outcome["holds"], outcome["added"]) == (True, False)
    assert [(item["title"], item["holds"]) for item in outcome["conditions"]] == [("Gold", True), ("Staff", False)]
    outcome = judge(root, group_id=group, user=added.login)
    assert (outcome["holds"], outcome["added"]) == (True, True)
    assert judge(root, group_id=group, domain="elsewhere.example")["holds"] is False


def test_stored_users_need_the_right_to_see_users(projects: Administrator, tester: ApiUser) -> None:
    for name in (tester.login, tester.user_id, "nobody@nowhere.example"):
        body = {"condition": {"tag": "beta"}, "user": name}
        response = projects.request("POST", "/conditions/test", json=body)
        assert (response.status_code, "can_view_users" in response.json()["error"]) == (403, True)
    assert judge(projects, condition={"tag": "beta"}, tags=["beta"])["holds"] is True


def test_group_that_the_caller_may_not_see_is_not_tested(studio: Studio, projects: Administrator) -> None:
    group = studio.group(studio.project())
    member = studio.user()
    own = studio.group(studio.project(member))
    body = {"group_id": group, "domain": "studio.example"}
    assert Administrator.of(member).request("POST", "/conditions/test", json=body).status_code == 404
    assert judge(Administrator.of(member), group_id=own, domain="studio.example")["holds"] is False
    applications = administrator(studio, "can_view_applications")
    assert applications.request("POST", "/conditions/test", json=body).status_code == 403
    assert judge(projects, **body)["holds"] is False


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        ({}, 400, "condition, group_id: exactly one of them is required"),
        ({"condition": {}, "group_id": "0" * 24}, 400, "condition, group_id: exactly one of them is required"),
        ({"condition": {"tga": "x"}}, 400, 'condition: "tga" is not known. Did you mean "tag"?'),
        ({"condition": {"and": [{"colour": "x"}]}}, 400, 'condition.and[0]: "colour" is not known; known are domain,'),
        ({"condition": {"\x1b[2J": "x"}}, 400, "condition: has an unknown member; known are domain,"),
        ({"condition": {"or": [{"ip": "x"}]}}, 400, "condition.or[0].ip: "),
        ({"condition": {}, "address": "here"}, 400, "address: must be an IPv4 or IPv6 address"),
        ({"condition": {}, "user": "nobody@nowhere.example"}, 404, "user: there is no such user"),
        ({"group_id": "0" * 24}, 404, "group not found"),
        ({"condition": {}, "colour": "red"}, 400, "colour: is unknown"),
    ],
)
def test_invalid_question_is_refused(root: Administrator, body: dict[str, Any], status: int, error: str) -> None:
    response = root.request("POST", "/conditions/test", json=body)
    assert (response.status_code, response.json()["error"][: len(error)]) == (status, error)


def matches(administrator: Administrator, *conditions: dict[str, Any]) -> dict[str, Any]:
    response = administrator.request("POST", "/conditions/matches", json={"conditions": list(conditions)})
    assert response.status_code == 200, response.text
    return dict(response.json()["data"])


def test_users_who_meet_a_condition_are_counted(studio: Studio, root: Administrator) -> None:
    users = [studio.user(tags=["counted", f"counted_{number}"]) for number in range(3)]
    buyer = studio.user(purchases=["counted_gold"])
    found = matches(root, {"tag": "counted"})
    assert found == {"total": 3, "exact": True, "examined": 3, "users": found["users"]}
    assert sorted(found["users"]) == sorted(user.user_id for user in users)
    assert matches(root, {"tag": "counted"}, {"purchase": "counted_gold"}, {"uid": [buyer.user_id]})["total"] == 4
    assert matches(root, {"tag": "counted", "uid": [users[0].user_id]})["users"] == [users[0].user_id]
    assert matches(root, {"domain": "EXAMPLE.com", "tag": "counted_1"})["total"] == 1
    nobody: dict[str, Any]
    for nobody in ({}, {"tag": "counted", "ip": "10.0.0.0/8"}, {"or": []}, {"uid": ["0"]}):
        assert matches(root, nobody) == {"total": 0, "exact": True, "examined": 0, "users": []}, nobody
    assert matches(root, {"everyone": True})["total"] >= 4


def test_count_stops_at_a_bound(studio: Studio, root: Administrator) -> None:
    """A condition with many parts is compared with fewer users, so that the work stays the same."""
    for _ in range(4):
        studio.user(tags=["bounded"])
    found = matches(root, {"tag": "bounded"}, {"tag": "x", "uid": [f"{10**9 + number}" for number in range(60_000)]})
    assert (found["exact"], found["total"], found["examined"]) == (False, 1, 1)


def test_counting_needs_the_right_to_see_users(studio: Studio) -> None:
    caller = administrator(studio, "can_view_applications", "can_view_projects")
    body = {"conditions": [{"tag": "counted"}]}
    assert caller.request("POST", "/conditions/matches", json=body).status_code == 403
    assert caller.request("GET", "/conditions/suggestions").status_code == 403
    caller = administrator(studio, "can_view_users")
    assert caller.request("POST", "/conditions/matches", json=body).status_code == 200
    response = caller.request("POST", "/conditions/matches", json={"conditions": [{"tag": "a"}, {"tga": "b"}]})
    assert (response.status_code, response.json()["error"]) == (
        400,
        'conditions[1]: "tga" is not known. Did you mean "tag"?',
    )


def test_suggestions_are_what_users_have(studio: Studio, root: Administrator) -> None:
    studio.user(tags=["suggested_tag"], purchases=["suggested_thing"])
    found = root.request("GET", "/conditions/suggestions", params={"search": "SUGGESTED"}).json()["data"]
    assert found == {"tag": ["suggested_tag"], "purchase": ["suggested_thing"], "domain": []}
    assert "example.com" in root.request("GET", "/conditions/suggestions").json()["data"]["domain"]
    query(studio.server, "ANALYZE users")
    assert root.request("GET", "/conditions/suggestions", params={"search": "SUGGESTED"}).json()["data"] == found
