"""A save that gives everybody a rule fails if an assertion denies it to users who do not exist yet."""

import pytest

from tests.admin.conftest import Administrator, root
from tests.kit.browser import query
from tests.kit.permission_changes import app, chat, put, role, trial
from tests.kit.server import Server
from tests.perm.changes.conftest import Trial
from tests.perm.endpoints.conftest import Studio

__all__ = ["app", "root", "trial"]

NOBODY = "nobody-yet@changes.example"
EVERYBODY_IS_STAFF = """INSERT INTO role_assignments (user_id, application_id, name, expired, ttl, position)
    SELECT user_id, $1, 'staff', 0, 0, 1 FROM users ON CONFLICT DO NOTHING"""


@pytest.fixture
def all_staff(server: Server, trial: Trial, app: int) -> None:
    """Every user has the role staff, so that no present user can violate what is said about others."""
    query(server, EVERYBODY_IS_STAFF, app)


@pytest.mark.usefixtures("all_staff")
@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("only staff may chat.kick", "every new user may without the role staff"),
        (f"{NOBODY} may not chat.kick", f"a new user {NOBODY} may"),
    ],
)
def test_default_role_does_not_give_what_new_users_must_not_have(
    studio: Studio, root: Administrator, trial: Trial, app: int, statement: str, reason: str
) -> None:
    assert put(root, app, statement).status_code == 200
    guest = role(trial, "guest", meta=chat(kick=True), default=True)
    refused = studio.root.call("roles", **guest)
    assert (refused.status, reason in refused.body["error"]) == (409, True), refused.body
    assert studio.root.call("roles", **role(trial, "guest", meta=chat(kick=True))).status == 200
    by_api = root.request("PATCH", f"/roles/{app}/guest", json={"default": True})
    assert (by_api.status_code, reason in by_api.json()["error"]) == (409, True)
    schema = root.request("PATCH", f"/schemas/{app}", json=chat(kick=True))
    assert (schema.status_code, reason in schema.json()["error"]) == (409, True)
    document = {"roles": {str(app): [{"name": "guest", "default": True}]}}
    assert root.request("POST", "/state/apply", json=document).status_code == 409
    assert studio.root.call("roles", **role(trial, "greeter", meta=chat(mute=True), default=True)).status == 200


@pytest.mark.usefixtures("all_staff")
def test_new_assertion_is_checked_with_what_new_users_have(
    studio: Studio, server: Server, root: Administrator, trial: Trial, app: int
) -> None:
    assert studio.root.call("roles", **role(trial, "guest", meta=chat(kick=True), default=True)).status == 200
    assert put(root, app, "only staff may chat.kick").status_code == 409
    assert put(root, app, f"{NOBODY} may not chat.kick").status_code == 409
    assert put(root, app, "only guest may chat.kick").status_code == 200  # every new user has the role
    assert put(root, app, "only staff may chat.kick", override=True).status_code == 200
    tested = server.sso("perm", "test", "--app", str(app), check=False)
    assert (tested.returncode, "every new user may without the role staff" in tested.stdout) == (1, True)
    # What fails already stops no other save.
    assert root.request("PATCH", f"/roles/{app}/guest", json={"description": "Everybody"}).status_code == 200
