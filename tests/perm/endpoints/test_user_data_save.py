"""POST /api/permissions/meta/data, action save (§2.9, §4.5)."""

import time
from typing import Any

import pytest

from sso.core.ids import digest
from sso.perm.operations.user_data import MAX_LARGE_SAVES
from tests.kit.browser import query
from tests.perm.endpoints.conftest import ApiResponse, ApiUser, Studio

PARTS: dict[str, Any] = {
    "roles": ["guard"],
    "public_data": {"a": {"value": 1}},
    "private_data": {"b": {"value": 2}},
    "secret_data": {"c": {"value": 3}},
    "login": {"cannot": {"value": True}},
}
WORDS = {"roles": "roles", "public_data": "public", "private_data": "private", "secret_data": "secret"}


@pytest.fixture(scope="module")
def app(studio: Studio) -> int:
    app = studio.application()
    studio.role(app, "guard", "patrol")
    studio.role(app, "cook", "bake")
    return app


@pytest.fixture(scope="module")
def bob(studio: Studio) -> ApiUser:
    """A user whose data others write."""
    return studio.user()


def save(user: ApiUser, app: int, user_id: Any, expired: Any = None, /, **data: Any) -> ApiResponse:
    body = {"expired": expired} if expired is not None else {}
    return user.call("meta/data", action="save", application_id=app, data={"user_id": user_id, **data}, **body)


def tree(studio: Studio, app: int, user: ApiUser) -> Any:
    body = {"type": "tree", "user_id": user.user_id}
    return studio.root.call("meta/data", action="get", application_id=app, data=body).data


def test_user_data_save_returns_the_updated_tree(studio: Studio, app: int) -> None:
    ann = studio.user()
    response = save(studio.root, app, ann.user_id, **PARTS)
    assert set(response.body) == {"status", "data", "user_id", "expired"}
    assert (response.body["user_id"], response.body["expired"]) == (ann.user_id, 0)
    assert response.data == tree(studio, app, ann)
    assert response.data["roles"] == ["guard"]
    assert response.data["public_data"] == {"a": {"value": 1}}
    assert response.data["login"]["cannot"]["value"] is True


def test_each_part_given_is_replaced_and_the_others_stay(studio: Studio, app: int) -> None:
    ann = studio.user()
    save(studio.root, app, ann.user_id, **PARTS)
    save(studio.root, app, ann.user_id, public_data={"z": {"value": True}}, roles=[])
    after = tree(studio, app, ann)
    assert after["public_data"] == {"z": {"value": True}}
    assert after["roles"] == []
    assert after["private_data"] == {"b": {"value": 2}}


@pytest.mark.parametrize("level", ["none", "self", "all"])
@pytest.mark.parametrize("part", list(WORDS))
def test_can_write_self_covers_the_own_record_and_all_covers_other_users(
    studio: Studio, app: int, bob: ApiUser, part: str, level: str
) -> None:
    ann = studio.user()
    studio.give_secret(ann, app, **{WORDS[part]: {"canWrite": level}})
    for other in (name for name in PARTS if name != part and not (part == "secret_data" and name == "login")):
        assert save(ann, app, ann.user_id, **{other: PARTS[other]}).status == 403
        assert save(ann, app, bob.user_id, **{part: PARTS[part], other: PARTS[other]}).status == 403
    # Secret data comes last, because writing it may remove the right to write.
    assert save(ann, app, bob.user_id, **{part: PARTS[part]}).status == (200 if level == "all" else 403)
    assert save(ann, app, ann.user_id, **{part: PARTS[part]}).status == (403 if level == "none" else 200)


def test_login_needs_the_right_to_write_secret_data(studio: Studio, app: int, bob: ApiUser) -> None:
    ann = studio.user()
    studio.give_secret(ann, app, secret={"canWrite": "all"})
    assert save(ann, app, bob.user_id, login=PARTS["login"]).status == 200


def test_empty_save_is_forbidden_without_any_write_right(studio: Studio, app: int) -> None:
    ann = studio.user()
    assert save(ann, app, ann.user_id).status == 403
    assert save(studio.root, app, ann.user_id).status == 200


def test_user_data_save_requires_user_id_as_a_string(studio: Studio, app: int) -> None:
    wrong: tuple[Any, ...] = (None, 5, [], {}, True)
    for user_id in wrong:
        assert save(studio.root, app, user_id, roles=[]).status == 400
    assert studio.root.call("meta/data", action="save", application_id=app, data={"roles": []}).status == 400
    assert studio.root.call("meta/data", action="save", application_id=app).status == 400


def test_only_the_exact_user_id_counts_as_own_record(studio: Studio, app: int) -> None:
    ann = studio.user()
    studio.give_secret(ann, app, public={"canWrite": "self"})
    for spelling in ("0{}", " {}", "{} ", "{}.0", "+{}", "９{}"):
        response = save(ann, app, spelling.format(ann.user_id), public_data={})
        assert (response.status, response.body["error"]) == (404, "user not found"), spelling


def test_unknown_user_is_not_found(studio: Studio, app: int) -> None:
    response = save(studio.root, app, "999999999", roles=[])
    assert (response.status, response.body["error"]) == (404, "user not found")


def test_assignment_of_an_unknown_role_is_rejected(studio: Studio, app: int) -> None:
    response = save(studio.root, app, studio.user().user_id, roles=["guard", "missing"])
    assert (response.status, response.body["error"]) == (400, "roles[1]: there is no role missing")


def test_invalid_assignments_are_rejected_and_change_nothing(studio: Studio, app: int, bob: ApiUser) -> None:
    ann = studio.user()
    save(studio.root, app, ann.user_id, roles=["cook"])
    invalid: tuple[Any, ...] = (
        None,
        [1],
        [{"name": "guard", "ttl": 1.5}],
        ["guard", {"name": "guard", "ttl": 5}],
        ["projectAccess"],
    )
    for roles in invalid:
        assert save(studio.root, app, ann.user_id, roles=roles).status == 400, roles
        # Input is validated before the authorization.
        assert save(bob, app, ann.user_id, roles=roles).status in (400, 403), roles
    assert tree(studio, app, ann)["roles"] == ["cook"]


def test_ttl_and_expired_are_returned_as_saved(studio: Studio, app: int) -> None:
    ann, soon = studio.user(), int(time.time()) + 500
    roles: list[Any] = [{"name": "cook", "expired": soon}, {"name": "guard", "ttl": 60}]
    began = time.time()
    response = save(studio.root, app, ann.user_id, roles=roles)
    assert response.data["roles"] == roles
    assert began + 60 - 2 <= response.body["expired"] <= time.time() + 60 + 2


def test_expired_of_a_save_is_the_default_for_items_without_expired(studio: Studio, app: int) -> None:
    ann, soon, later = studio.user(), int(time.time()) + 500, int(time.time()) + 900
    roles: list[Any] = ["guard", {"name": "cook", "expired": later}]
    entries: dict[str, Any] = {"a": {"value": True}, "b": {"value": True, "expired": later}}
    response = save(studio.root, app, ann.user_id, soon, roles=roles, public_data=entries)
    assert response.data["roles"] == [{"name": "guard", "expired": soon}, {"name": "cook", "expired": later}]
    assert response.data["public_data"]["a"]["expired"] == soon
    assert response.data["public_data"]["b"]["expired"] == later
    assert response.body["expired"] == soon


@pytest.mark.parametrize("expired", ["1", -1, 2**62])
def test_invalid_expired_is_rejected(studio: Studio, app: int, ann: ApiUser, expired: object) -> None:
    assert save(studio.root, app, ann.user_id, expired, roles=[]).status == 400


def test_unknown_fields_are_named_in_warnings(studio: Studio, app: int) -> None:
    roles = [{"name": "guard", "since": 5}]
    data: dict[str, Any] = {"roles": roles, "public_data": {"a": {"value": 1, "colour": "red"}}, "extra": 1}
    response = save(studio.root, app, studio.user().user_id, **data)
    assert sorted(response.body["warnings"]) == [
        "extra: unknown field, ignored",
        "public_data.a.colour: unknown field, ignored",
        "roles[0].since: unknown field, ignored",
    ]


@pytest.mark.parametrize("section", ["public_data", "private_data", "secret_data"])
@pytest.mark.parametrize("name", ["projectAccess", "a.b"])
def test_name_with_a_path_separator_is_rejected(
    studio: Studio, app: int, ann: ApiUser, section: str, name: str
) -> None:
    assert save(studio.root, app, ann.user_id, **{section: {"deep": {name: {"value": True}}}}).status == 400


def test_project_access_cannot_be_written(studio: Studio) -> None:
    ann, project = studio.user(), studio.project()
    studio.give_secret(ann, 1, private={"canWrite": "self"}, public={"canWrite": "self"}, secret={"canWrite": "self"})
    rule = {"private_data": {"project": {"can_manage_project": {"value": True}}}}
    for section in ("private_data", "public_data", "secret_data"):
        assert save(ann, 1, ann.user_id, **{section: {"projectAccess": {project: rule}}}).status == 400
    plain = {project: rule, "project": {"can_manage_project": {"value": True}}}
    assert save(ann, 1, ann.user_id, private_data=plain).status in (200, 400)
    assert not any(line.startswith(f"{project}/") for line in studio.rules_of(ann, 1))
    assert ann.call("project", action="get", data={"id": project}).status == 403


def test_public_data_that_shadows_a_private_rule_is_rejected(studio: Studio) -> None:
    app, ann = studio.application(private_data={"ban": {"value": False}}), studio.user()
    studio.give_secret(ann, app, public={"canWrite": "self"})
    assert save(ann, app, ann.user_id, public_data={"ban": {"value": True}}).status == 400
    assert save(ann, app, ann.user_id, public_data={"hat": {"value": True}}).status == 200
    assert studio.rules_of(ann, app) == ["public_data.hat"]


def test_rules_with_true_scalar_values_are_listed_and_others_are_not(studio: Studio, app: int) -> None:
    ann = studio.user()
    listed = dict(enumerate((True, 5, 1.5, -1, 1e308, "text", "😀")))
    others = dict(enumerate((False, None, 0, ""), len(listed)))
    data = {f"x{number}": {"value": value} for number, value in (listed | others).items()}
    assert save(studio.root, app, ann.user_id, public_data=data).data["public_data"] == data
    rules = [rule for rule in studio.rules_of(ann, app, "list") if rule.startswith("public_data.x")]
    assert rules == [f"public_data.x{number}" for number in listed]


@pytest.mark.parametrize("rule", [{"value": []}, {"value": True, "params": "a|b"}, 5])
def test_invalid_rule_is_rejected(studio: Studio, app: int, ann: ApiUser, rule: object) -> None:
    assert save(studio.root, app, ann.user_id, public_data={"x": rule}).status == 400


def test_user_limit_counts_users_with_an_unexpired_assignment(studio: Studio) -> None:
    app = studio.application()
    studio.role(app, "captain", "lead", user_limit=1)
    ann, bob = studio.users(2)
    past, future = int(time.time()) - 5, int(time.time()) + 500
    assert save(studio.root, app, ann.user_id, roles=["captain"]).status == 200
    refused = save(studio.root, app, bob.user_id, roles=["captain"])
    assert (refused.status, refused.body["status"]) == (409, "ERROR")
    assert save(studio.root, app, ann.user_id, roles=[{"name": "captain", "expired": future}]).status == 200
    assert save(studio.root, app, ann.user_id, roles=[{"name": "captain", "expired": past}]).status == 200
    assert save(studio.root, app, bob.user_id, roles=["captain"]).status == 200
    assert save(studio.root, app, ann.user_id, roles=["captain"]).status == 409
    assert save(studio.root, app, ann.user_id, roles=[]).status == 200
    studio.role(app, "captain", "lead", user_limit=0)
    assert save(studio.root, app, ann.user_id, roles=["captain"]).status == 200


def test_tree_can_be_saved_again(studio: Studio, app: int) -> None:
    ann = studio.user()
    save(studio.root, app, ann.user_id, **PARTS)
    shown = tree(studio, app, ann)
    response = save(studio.root, app, ann.user_id, **shown)
    assert response.data == shown
    assert "warnings" not in response.body


def test_users_save_large_own_data_a_limited_number_of_times_an_hour(studio: Studio, app: int) -> None:
    user = studio.user()
    studio.give_secret(user, app, public={"canWrite": "self"})
    large = {f"note{number}": {"value": "x" * 1000} for number in range(40)}
    key = digest(f"large own data:{user.user_id}")

    def dry_run(public_data: dict[str, Any]) -> ApiResponse:
        body = {"application_id": app, "data": {"user_id": user.user_id, "public_data": public_data}}
        return user.call("meta/data", action="save", **body, options={"dry_run": True})

    assert [save(user, app, user.user_id, public_data=large).status for _ in range(2)] == [200, 200]
    assert dry_run(large).status == 200
    counted = query(studio.server, "SELECT failures FROM throttle WHERE key = $1", key)[0]["failures"]
    assert counted == 3, "also those that change nothing"
    used_up = "UPDATE throttle SET failures = $2, expires = now() + interval '1 day' WHERE key = $1 RETURNING key"
    assert query(studio.server, used_up, key, MAX_LARGE_SAVES)
    refused = save(user, app, user.user_id, public_data=large | {"note0": {"value": "y"}})
    assert (refused.status, refused.body["error"]) == (429, "too many saves of large own data, try again later")
    assert tree(studio, app, user)["public_data"]["note0"] == {"value": "x" * 1000}
    assert save(user, app, user.user_id, public_data=large).status == 429
    assert dry_run(large).status == 429
    assert dry_run({"note0": {"value": "y"}}).status == 200
    assert save(user, app, user.user_id, public_data={"note0": {"value": "y"}}).status == 200
    assert save(studio.root, app, user.user_id, public_data=large).status == 200
