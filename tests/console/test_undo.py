"""The undo of changes in the audit trail: of every kind of record, what it shows, and when it is refused."""

import html
from typing import Any

import pytest

from sso.console.audit.undo import CannotUndo
from sso.console.audit.undo_operations import undo_of
from tests.admin.conftest import Administrator, root
from tests.console.conftest import ConsoleBrowser, console_browser
from tests.kit.browser import query
from tests.kit.console_pages import change, entry_of, undo_last
from tests.perm.endpoints.conftest import Studio

__all__ = ["root"]
CHAT = {"private_data": {"chat": {"kick": {"value": False}, "mute": {"value": False}}}}
KICK = {"private_data": {"chat": {"kick": {"value": True}}}}
MUTE = {"private_data": {"chat": {"mute": {"value": True}}}}


@pytest.fixture
def app(studio: Studio, root: Administrator) -> int:
    """An application with a role that lets one user kick."""
    application_id = studio.application()
    change(root, "PATCH", f"/schemas/{application_id}", **CHAT)
    change(root, "POST", "/roles", application_id=application_id, name="guard", meta=KICK)
    return application_id


def permissions_of(root: Administrator, user_id: str, application_id: int) -> Any:
    response = root.get(f"/users/{user_id}/permissions", application_id=application_id).json()
    return {name: value for name, value in response["record"].items() if name not in ("user_id", "application_id")}


def test_change_of_a_role_shows_who_loses_what_and_is_undone(
    studio: Studio, root: Administrator, root_browser: ConsoleBrowser, app: int
) -> None:
    user, path = studio.user(), f"/roles/{app}/guard"
    change(root, "PATCH", f"/users/{user.user_id}/permissions", application_id=app, roles=["guard"])
    before = root.data(path)
    change(root, "PATCH", path, meta=MUTE, description="Mutes")
    page = undo_last(root_browser, "role.save")
    assert '<span class="old">chat.mute</span>' in page
    assert '<span class="new">chat.kick</span>' in page
    assert "<code>description</code>" in page
    assert root.data(path) == before


def test_new_role_is_deleted_and_deleted_role_is_created(
    root: Administrator, root_browser: ConsoleBrowser, app: int
) -> None:
    change(root, "POST", "/roles", application_id=app, name="muter", meta=MUTE)
    before = root.data(f"/roles/{app}/muter")
    assert "What would be deleted" in undo_last(root_browser, "role.save")
    assert root.get(f"/roles/{app}/muter").status_code == 404
    undo_last(root_browser, "role.delete")
    assert root.data(f"/roles/{app}/muter") == before


def test_entries_about_roles_assignments_and_groups_lead_to_their_pages(
    studio: Studio, root: Administrator, root_browser: ConsoleBrowser, app: int
) -> None:
    change(root, "POST", "/roles", application_id=app, name="linked")
    assert f'href="/console/applications/{app}/roles/linked"' in root_browser.open(entry_of(root_browser, "role.save"))
    user_id = studio.user().user_id
    change(root, "PATCH", f"/users/{user_id}/permissions", application_id=app, roles=[{"name": "linked"}])
    page = root_browser.open(entry_of(root_browser, "permissions.save"))
    assert f'href="/console/applications/{app}/users/{user_id}"' in page
    project_id = studio.project(studio.user())
    change(root, "POST", "/groups", project_id=project_id, title="Linked")
    page = root_browser.open(entry_of(root_browser, "group.create"))
    assert f'href="/console/projects/{project_id}/groups/' in page


def test_changes_of_schema_assertions_and_assignment_are_undone(
    studio: Studio, root: Administrator, root_browser: ConsoleBrowser, app: int
) -> None:
    user = studio.user()
    path = f"/schemas/{app}"
    before = root.data(path)["private_data"]
    change(root, "PATCH", path, private_data={"chat": {"kick": {"value": True}}})
    assert '<span class="old">true</span>' in undo_last(root_browser, "schema.save")
    assert root.data(path)["private_data"] == before
    change(root, "PUT", f"/applications/{app}/assertions", assertions=[f"{user.login} may not chat.mute"])
    undo_last(root_browser, "assertions.save")
    assert root.data(f"/applications/{app}/assertions")["assertions"] == []
    fields = {"roles": [{"name": "guard", "expired": 4102444800}], "private_data": {"chat": {"mute": {"value": True}}}}
    change(root, "PATCH", f"/users/{user.user_id}/permissions", application_id=app, **fields)
    given = permissions_of(root, user.user_id, app)
    change(root, "PATCH", f"/users/{user.user_id}/permissions", application_id=app, roles=[], private_data={})
    page = undo_last(root_browser, "permissions.save")
    assert '<span class="new">chat.kick</span>' in page
    assert permissions_of(root, user.user_id, app) == given
    entry = query(
        root_browser.server,
        "SELECT id FROM audit WHERE operation = 'permissions.save' AND target = $1 ORDER BY id LIMIT 1",
        f"{app}/{user.user_id}",
    )[0]["id"]
    undo = f"/console/audit/{entry}/undo"
    root_browser.open(undo)  # the first entry: the record was empty
    assert "undone" in root_browser.act(undo)
    assert permissions_of(root, user.user_id, app) == {}


def test_changes_of_a_project_its_members_and_its_groups_are_undone(
    studio: Studio, root: Administrator, root_browser: ConsoleBrowser
) -> None:
    project_id, user = studio.project(), studio.user()
    path = f"/projects/{project_id}"
    before = root.data(path)
    change(root, "PATCH", path, description="Changed", settings={"allowed_domains": ["example.com"]})
    undo_last(root_browser, "project.save")
    after = root.data(path)
    assert (after["description"], after["settings"].get("allowed_domains", [])) == (before["description"], [])
    members = f"{path}/members"
    for method, body in (("POST", {"user_id": user.user_id}), ("PATCH", {})):
        one = members if method == "POST" else f"{members}/{user.user_id}"
        roles = {"project": ["viewer" if method == "POST" else "admin"]}
        change(root, method, one, roles=roles, **body)
    assert "can_manage_project" in undo_last(root_browser, "membership.save")
    assert root.data(f"{members}/{user.user_id}")["roles"] == {"project": ["viewer"]}
    change(root, "DELETE", f"{members}/{user.user_id}")
    undo_last(root_browser, "membership.save")
    assert root.data(f"{members}/{user.user_id}")["roles"] == {"project": ["viewer"]}
    undo_last(root_browser, "membership.save")  # the undo itself
    assert root.get(f"{members}/{user.user_id}").status_code == 404
    group_id = studio.group(project_id)
    group = root.data(f"/groups/{group_id}")
    for name, value, operation in (
        ("title", "Renamed", "group.save"),
        ("tags", ["project"], "group.tags"),
        ("users", [user.user_id], "group.access"),
    ):
        change(root, "PATCH", f"/groups/{group_id}", **{name: value})
        undo_last(root_browser, operation)
        assert root.data(f"/groups/{group_id}") == group, name


def test_changes_of_a_client_and_of_a_provider_are_undone(root: Administrator, root_browser: ConsoleBrowser) -> None:
    fields = {"client_id": "undone-client", "profile": "oidc", "redirect_uris": ["https://one.example/cb"]}
    change(root, "POST", "/clients", **fields)
    before = root.data("/clients/undone-client")
    change(root, "PATCH", "/clients/undone-client", redirect_uris=["https://two.example/cb"], name="Two", consent=False)
    assert "https://one.example/cb" in undo_last(root_browser, "client.save")
    assert root.data("/clients/undone-client") == before
    change(root, "POST", "/identity-providers", id="undone-provider", kind="steam")
    before = root.data("/identity-providers/undone-provider")
    change(root, "PATCH", "/identity-providers/undone-provider", name="Two", disabled=True, position=3)
    undo_last(root_browser, "identity_provider.save")
    assert root.data("/identity-providers/undone-provider") == before


def test_undo_is_refused_after_a_later_change(root: Administrator, root_browser: ConsoleBrowser, app: int) -> None:
    path = f"/roles/{app}/guard"
    change(root, "PATCH", path, description="One")
    undo = f"{entry_of(root_browser, 'role.save')}/undo"
    root_browser.open(undo)
    version = root_browser.form(undo)["version"]
    change(root, "PATCH", path, params="two")  # another field
    answer = root_browser.send(undo, version=version)
    assert (answer.status_code, "in the meantime" in root_browser.problem) == (409, True)
    change(root, "PATCH", path, description="Two")
    answer = root_browser.get(undo)
    assert (answer.status_code, "changed again since: description" in root_browser.problem) == (409, True)
    change(root, "DELETE", path)
    answer = root_browser.send(undo)
    assert (answer.status_code, "the record was deleted" in root_browser.problem) == (409, True)


def test_undo_that_breaks_an_assertion_needs_an_override(
    studio: Studio, root: Administrator, root_browser: ConsoleBrowser, app: int
) -> None:
    user, path = studio.user(), f"/roles/{app}/guard"
    change(root, "PATCH", f"/users/{user.user_id}/permissions", application_id=app, roles=["guard"])
    change(root, "PATCH", path, meta=MUTE)
    change(root, "PUT", f"/applications/{app}/assertions", assertions=[f"{user.login} may not chat.kick"])
    undo = f"{entry_of(root_browser, 'role.save')}/undo"
    assert "would fail" in root_browser.open(undo)
    answer = root_browser.submit(undo)
    assert (answer.status_code, "may not chat.kick" in html.unescape(root_browser.problem)) == (409, True)
    root_browser.open(undo)
    assert "undone" in root_browser.act(undo, override="1")
    assert root.data(path)["meta"] == KICK


def test_undo_needs_the_rights_of_the_operation(studio: Studio, root: Administrator, app: int) -> None:
    change(root, "PATCH", f"/roles/{app}/guard", description="Guarded")
    with (
        console_browser(studio, "can_view_audit", "can_manage_users") as auditor,
        console_browser(studio, "can_view_audit", "can_manage_applications") as manager,
    ):
        path = entry_of(auditor, "role.save")
        assert f"{path}/undo" not in auditor.open(path)
        for answer in (auditor.get(f"{path}/undo"), auditor.send(f"{path}/undo")):
            assert (answer.status_code, "can_manage_applications is required" in answer.text) == (403, True)
        undo_last(manager, "role.save")
        change(root, "PATCH", f"/schemas/{app}", secret_data={"meta": {"roles": {"canRead": {"value": "all"}}}})
        answer = manager.get(f"{entry_of(manager, 'schema.save')}/undo")
        assert (answer.status_code, "the role root is required" in answer.text) == (403, True)


def test_manager_of_clients_cannot_undo_what_only_root_changes(studio: Studio, root: Administrator) -> None:
    change(root, "POST", "/clients", client_id="undone-trusted", profile="oidc", redirect_uris=["https://a.example/cb"])
    change(root, "PATCH", "/clients/undone-trusted", first_party=True)
    with console_browser(studio, "can_view_audit", "can_manage_clients") as clerk:
        path = entry_of(clerk, "client.save")
        page = clerk.open(path)
        assert (f"{path}/undo" in page, "the role root is required for a client with first_party" in page.lower()) == (
            False,
            True,
        )
        for answer in (clerk.get(f"{path}/undo"), clerk.send(f"{path}/undo")):
            assert (answer.status_code, "root is required" in answer.text) == (403, True)
    assert root.data("/clients/undone-trusted")["first_party"] is True


@pytest.mark.parametrize(
    ("operation", "before", "after"),
    [
        ("client.save", {"client_secret": "…"}, {"client_secret": "…"}),
        ("client.save", {"name": "a", "client_secret": "…"}, {"name": "b", "client_secret": "…"}),
        ("schema.save", {"private_data": {"truncated": True, "bytes": 99999}}, {"private_data": {"a": 1}}),
        ("role.save", {"truncated": True, "bytes": 99999}, {"description": "a"}),
        ("client.save", {"jwks": "{}"}, {"jwks": "[]"}),
        ("project.save", {"removed": False}, {"removed": True}),
        ("client.delete", {"client_id": "shop"}, None),
        ("webhook.delete", {"url": "https://a.example"}, None),
        ("signing_key.retire", {"state": "published"}, {"state": "retired"}),
        ("unknown.save", {"a": 1}, {"a": 2}),
        ("membership.save", {"users": []}, {"users": [{"user_id": str(n), "roles": {}} for n in (1, 2)]}),
    ],
)
def test_changes_without_known_values_or_operation_cannot_be_undone(operation: str, before: Any, after: Any) -> None:
    undo = undo_of({"operation": operation, "target": "1/a", "before": before, "after": after})
    assert isinstance(undo, CannotUndo)
    assert undo.reason
