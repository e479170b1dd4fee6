"""Values that break pages or get around checks: far ends, spellings of ids, control characters, JSON beyond limits."""

import pytest

from tests.admin.conftest import Administrator, root
from tests.console.conftest import ConsoleBrowser
from tests.kit.browser import query
from tests.perm.endpoints.conftest import Studio

__all__ = ["root"]
FAR = 2**53 - 1  # the latest end that the permission endpoints accept: no date has it
NESTED = 300
DIGITS = "9" * 5000  # more than int() accepts


def test_role_that_ends_after_all_dates_is_shown_and_kept(
    studio: Studio, root: Administrator, root_browser: ConsoleBrowser
) -> None:
    project = studio.project()
    application, user = studio.application(project), studio.user()
    studio.role(application, "helper", "mute")
    far = [{"name": "helper", "expired": FAR}]
    permissions = f"/users/{user.user_id}/permissions"
    changed = root.request("PATCH", permissions, json={"application_id": application, "roles": far})
    assert changed.status_code == 200, changed.text
    studio.join(project, user, project=[{"name": "viewer", "expired": FAR}])
    member = f"/console/projects/{project}/members/{user.user_id}"
    for path in (
        f"/console/applications/{application}/holders",
        f"/console/applications/{application}/users/{user.user_id}",
        f"/console/projects/{project}",
        f"/console/users/{user.user_id}/roles",
        f"/console/explorer?user={user.user_id}&application_id={application}",
        member,
    ):
        assert "9999-12-31" in root_browser.open(path), path
    root_browser.submit(member, **{"keep:viewer": "1"})
    roles = root.data(f"/projects/{project}/members/{user.user_id}")["roles"]
    assert roles == {"project": [{"name": "viewer", "expired": FAR}]}


def test_other_spelling_of_the_central_application_needs_no_less_proof(studio: Studio) -> None:
    user = studio.user()
    studio.give_roles(user, "root")
    with ConsoleBrowser(studio.server, user) as browser:
        browser.open("/console")
        browser.forget_authentication()
        assert browser.send("/console/applications/01/roles", name="hidden_helper").status_code in (400, 403, 404)
    assert not query(studio.server, "SELECT name FROM roles WHERE name = 'hidden_helper'")


def test_member_has_roles_at_places_of_the_project_alone(studio: Studio, root_browser: ConsoleBrowser) -> None:
    user, project = studio.user(), studio.project()
    studio.join(project, user, project=["viewer"])
    member = f"/console/projects/{project}/members/{user.user_id}"
    for place in ("project", "project/x", "elsewhere/10"):
        root_browser.open(member)
        refused = root_browser.send(member, role="viewer", place=place, **{"keep:viewer": "1"})
        assert refused.status_code == 422, place
        assert root_browser.problem.startswith("Must begin with applications")


@pytest.mark.parametrize(
    "description", ['"a\\u0000b"', '"a\\uffff"', '"a", "description": "b"', '{"a":' * NESTED + "1" + "}" * NESTED]
)
def test_json_has_the_limits_of_the_management_api(
    studio: Studio, root: Administrator, root_browser: ConsoleBrowser, description: str
) -> None:
    application = studio.application()
    path = f"/console/applications/{application}/schema"
    root_browser.open(path)
    private_data = f'{{"chat": {{"kick": {{"value": false, "description": {description}}}}}}}'
    refused = root_browser.send(path, private_data=private_data)
    assert refused.status_code == 422
    assert root_browser.problem
    assert root.data(f"/schemas/{application}")["private_data"] == {}


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/console/users/1/bans", {"scope": f"application:{DIGITS}", "reason": "spam"}),
        ("/console/users/1/impersonate", {"minutes": DIGITS, "reason": "a report"}),
        ("/console/users/invitations", {"login": "digits@example.com", "days": DIGITS}),
        ("/console/clients/new", {"client_id": "digits", "framework": "service", "application_id": DIGITS}),
        ("/console/clients/registration-tokens", {"uses": DIGITS, "days": "1"}),
    ],
)
def test_number_that_is_too_long_is_refused(root_browser: ConsoleBrowser, path: str, fields: dict[str, str]) -> None:
    root_browser.open("/console")
    path = path.replace("/users/1/", f"/users/{root_browser.user_id}/")
    assert root_browser.send(path, **fields).status_code == 422


@pytest.mark.parametrize(
    "path",
    [
        "/console/projects?after=%00",
        "/console/projects?search=%00",
        "/console/audit?target=%00",
        "/console/webhooks/%00",
        "/console/webhooks?after=%00",
        "/console/explorer?user=%00",
    ],
)
def test_null_character_is_refused(root_browser: ConsoleBrowser, path: str) -> None:
    assert root_browser.get(path).status_code in (400, 404, 422)


@pytest.mark.parametrize("name", ["%0D%0AX-Injected:%20y", "x%00y", "%E2%82%AC"])
def test_redirect_keeps_its_header_whole(root_browser: ConsoleBrowser, name: str) -> None:
    answer = root_browser.get(f"/console/applications/{name}/holders/new?user=1001")
    assert answer.status_code == 303
    assert answer.headers["Location"] == f"/console/applications/{name}/users/1001"
