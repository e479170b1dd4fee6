"""The undo of deletions in the audit trail: what comes back, what does not, and for whom it is offered."""

from typing import Any

from tests.admin.conftest import Administrator, root
from tests.console.conftest import ConsoleBrowser, console_browser
from tests.kit.console_pages import change, entry_of, undo_last
from tests.perm.endpoints.conftest import Studio

__all__ = ["root"]


def reason_at(browser: ConsoleBrowser, operation: str) -> str:
    """Returns what the page of the newest entry of an operation says in place of the button."""
    path = entry_of(browser, operation)
    page = browser.open(path)
    assert f"{path}/undo" not in page, operation
    return page.partition("Why there is no undo")[2].partition("</section>")[0]


def test_deleted_group_gets_its_id_users_and_conditions_back(
    studio: Studio, root: Administrator, root_browser: ConsoleBrowser
) -> None:
    project_id, user = studio.project(), studio.user()
    condition = {"title": "Tag", "condition": {"tag": "beta"}}
    fields: dict[str, Any] = {"title": "Testers", "users": [user.user_id], "conditions": [condition]}
    group_id = change(root, "POST", "/groups", project_id=project_id, **fields)["group_id"]
    before = root.data(f"/groups/{group_id}")
    change(root, "DELETE", f"/groups/{group_id}")
    answer = root_browser.get(f"/console/projects/{project_id}/groups/{group_id}")
    assert (answer.status_code, f'href="/console/audit?target={group_id}"' in answer.text) == (404, True)
    assert "group.delete" in root_browser.open("/console/audit", params={"target": group_id})
    assert "do not come back" in undo_last(root_browser, "group.delete")
    assert root.data(f"/groups/{group_id}") == before
    assert "the record exists again" in reason_at(root_browser, "group.delete")


def test_id_of_a_group_is_chosen_by_managers_of_projects_and_used_once(studio: Studio, root: Administrator) -> None:
    owner = studio.user()
    project_id, group_id = studio.project(owner), "a" * 24
    fields = {"project_id": project_id, "title": "Chosen", "group_id": group_id}
    answer = Administrator.of(owner).request("POST", "/groups", json=fields)
    assert (answer.status_code, "can_manage_projects is required" in answer.text) == (403, True)
    assert change(root, "POST", "/groups", **fields)["group_id"] == group_id
    answer = root.request("POST", "/groups", json=fields)
    assert (answer.status_code, "is used by another group" in answer.text) == (409, True)


def test_deleted_project_is_restored_by_root_with_its_members(studio: Studio, root: Administrator) -> None:
    member = studio.user()
    project_id = studio.project()
    path = f"/projects/{project_id}"
    change(root, "POST", f"{path}/members", user_id=member.user_id, roles={"project": ["viewer"]})
    before = root.data(path)
    change(root, "DELETE", path)
    with (
        console_browser(studio, "can_view_audit", "can_manage_projects") as manager,
        ConsoleBrowser(studio.server, studio.root) as root_browser,
    ):
        assert "The role root is required to restore a project" in reason_at(manager, "project.delete")
        undo = f"{entry_of(manager, 'project.delete')}/undo"
        assert [manager.get(undo).status_code, manager.send(undo).status_code] == [403, 403]
        page = manager.open(f"/console/projects/{project_id}/settings")
        assert ("Deleted" in page, "Save</button>" in page) == (True, False)
        assert "can_view_project" in undo_last(root_browser, "project.delete")  # what the member gains
    assert root.data(path) == before
    assert root.data(f"{path}/members/{member.user_id}")["roles"] == {"project": ["viewer"]}
    answer = root.request("POST", f"{path}/restore")
    assert (answer.status_code, "is not removed" in answer.text) == (409, True)


def test_deleted_client_comes_back_with_a_new_secret_that_is_shown_once(
    root: Administrator, root_browser: ConsoleBrowser, studio: Studio
) -> None:
    fields = {"client_id": "restored-client", "profile": "oidc", "redirect_uris": ["https://one.example/cb"]}
    change(root, "POST", "/clients", **fields, first_party=True, consent=False, support_uri="https://one.example/help")
    before = root.data("/clients/restored-client")
    change(root, "DELETE", "/clients/restored-client")
    with console_browser(studio, "can_view_audit", "can_manage_clients") as clerk:
        assert "The role root is required for a client with first_party" in reason_at(clerk, "client.delete")
    undo = f"{entry_of(root_browser, 'client.delete')}/undo"
    assert "gets a new one" in root_browser.open(undo)
    answer = root_browser.submit(undo)
    assert (answer.status_code, 'id="secret"' in answer.text) == (200, True)
    after = root.data("/clients/restored-client")
    fresh = {"secrets", "created"}
    assert {name: after[name] for name in after.keys() - fresh} == {
        name: before[name] for name in before.keys() - fresh
    }
    assert after["secrets"] != before["secrets"]


def test_deleted_provider_comes_back_disabled_without_its_secret(
    root: Administrator, root_browser: ConsoleBrowser, studio: Studio
) -> None:
    fields = {"id": "restored", "kind": "oidc", "issuer": "https://id.example", "client_id": "sso", "position": 2}
    change(root, "POST", "/identity-providers", **fields, client_secret="not-in-the-audit-trail")
    change(root, "DELETE", "/identity-providers/restored")
    with console_browser(studio, "can_view_audit", "can_manage_clients") as clerk:
        assert "The role root is required" in reason_at(clerk, "identity_provider.delete")
    assert "comes back disabled" in undo_last(root_browser, "identity_provider.delete")
    after = root.data("/identity-providers/restored")
    assert {name: after[name] for name in fields} == fields
    assert (after["disabled"], after["secret_id"]) == (True, None)


def test_entry_that_cannot_be_undone_says_why(
    studio: Studio, root: Administrator, root_browser: ConsoleBrowser
) -> None:
    user = studio.user()
    change(root, "DELETE", f"/users/{user.user_id}")
    assert "keep the account until it is erased" in reason_at(root_browser, "user.delete")
    change(root, "PATCH", f"/users/{studio.root.user_id}", nick="Boss")
    with console_browser(studio, "can_view_audit", "can_manage_users") as manager:
        assert "the role root is required" in reason_at(manager, "user.save").lower()


def test_pages_offer_no_action_on_users_and_clients_with_more_rights(studio: Studio, root: Administrator) -> None:
    change(root, "POST", "/clients", client_id="guarded", profile="oidc", redirect_uris=["https://a.example/cb"])
    change(root, "PATCH", "/clients/guarded", first_party=True)
    boss, plain = f"/console/users/{studio.root.user_id}", f"/console/users/{studio.user().user_id}"
    with console_browser(studio, "can_manage_users", "can_manage_clients") as clerk:
        for tab in ("", "/sign-ins", "/security"):
            page = clerk.open(f"{boss}{tab}")
            assert ("not change them" in page, f'action="{boss}' in page) == (True, False), tab
        assert f'action="{plain}' in clerk.open(plain)
        for path in ("/console/clients/guarded", "/console/clients/guarded/branding"):
            assert 'action="/console/clients/guarded' not in clerk.open(path)
