"""The undo of deletions in the audit trail: what comes back, what does not, and for whom it is offered."""

import html
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.admin.conftest import Administrator, root
from tests.console.conftest import ConsoleBrowser, console_browser
from tests.kit.browser import query
from tests.kit.console_pages import change, entry_of, undo_last
from tests.perm.endpoints.conftest import Studio

__all__ = ["root"]


def reason_at(browser: ConsoleBrowser, operation: str) -> str:
    """Returns what the page of the newest entry of an operation says in place of the button."""
    path = entry_of(browser, operation)
    page = browser.open(path)
    assert f"{path}/undo" not in page, operation
    return page.partition("Why there is no undo")[2].partition("</section>")[0]


def entry_id_of(path: str) -> int:
    return int(path.rpartition("/")[2])


def test_deleted_group_gets_everything_back(studio: Studio, root: Administrator, root_browser: ConsoleBrowser) -> None:
    project_id, user, manager = studio.project(), studio.user(), studio.user()
    application_id = studio.application(project_id=project_id)
    change(root, "POST", "/roles", application_id=application_id, name="tester")
    condition = {"title": "Tag", "condition": {"tag": "beta"}}
    fields: dict[str, Any] = {"title": "Testers", "users": [user.user_id], "conditions": [condition]}
    group_id = change(root, "POST", "/groups", project_id=project_id, **fields)["group_id"]
    services = {str(application_id): {"groups": [{"group_id": group_id, "role": "tester", "action": "grant"}]}}
    change(root, "PATCH", f"/projects/{project_id}", settings={"services": services})
    roles = {"groups": {group_id: [{"name": "admin", "expired": 4102444800}]}}
    change(root, "POST", f"/projects/{project_id}/members", user_id=manager.user_id, roles=roles)
    paths = f"/groups/{group_id}", f"/projects/{project_id}", f"/projects/{project_id}/members/{manager.user_id}"
    before = [root.data(path) for path in paths]
    change(root, "DELETE", paths[0])
    assert root.data(paths[1]) != before[1]
    assert root.get(paths[2]).status_code == 404
    answer = root_browser.get(f"/console/projects/{project_id}/groups/{group_id}")
    assert (answer.status_code, f'href="/console/audit?target={group_id}"' in answer.text) == (404, True)
    assert "group.delete" in root_browser.open("/console/audit", params={"target": group_id})
    undo_last(root_browser, "group.delete")
    assert [root.data(path) for path in paths] == before
    assert "the record exists again" in reason_at(root_browser, "group.delete")


def test_deleted_group_comes_back_without_roles_that_became_protected(
    studio: Studio, root: Administrator, root_browser: ConsoleBrowser
) -> None:
    project_id, manager = studio.project(), studio.user()
    application_id = studio.application(project_id=project_id)
    for role in ({"application_id": application_id, "name": name} for name in ("tester", "guard")):
        change(root, "POST", "/roles", **role)
    change(root, "POST", "/roles", application_id=1, name="keeper")
    group_id = change(root, "POST", "/groups", project_id=project_id, title="Testers")["group_id"]
    actions = [{"group_id": group_id, "role": name, "action": "grant"} for name in ("tester", "guard")]
    services = {str(application_id): {"groups": actions}}
    change(root, "PATCH", f"/projects/{project_id}", settings={"services": services})
    members = f"/projects/{project_id}/members"
    change(root, "POST", members, user_id=manager.user_id, roles={"groups": {group_id: ["keeper", "viewer"]}})
    change(root, "DELETE", f"/groups/{group_id}")
    for role_id in (f"{application_id}/tester", "1/keeper"):
        change(root, "PATCH", f"/roles/{role_id}", protected=True)
    undo_last(root_browser, "group.delete")
    settings = root.data(f"/projects/{project_id}")["settings"]
    assert settings["services"] == {str(application_id): {"groups": actions[1:]}}
    assert root.data(f"{members}/{manager.user_id}")["roles"] == {"groups": {group_id: ["viewer"]}}
    change(root, "DELETE", "/roles/1/keeper")


def test_deleted_role_is_given_back_to_its_users_and_groups(
    studio: Studio, root: Administrator, root_browser: ConsoleBrowser
) -> None:
    project_id, holder, erased, late = studio.project(), studio.user(), studio.user(), studio.user()
    application_id = studio.application(project_id=project_id)
    role, kick = f"/roles/{application_id}/guard", {"private_data": {"chat": {"kick": {"value": True}}}}
    body = {"application_id": application_id, "name": "guard", "meta": kick, "user_limit": 2}
    change(root, "POST", "/roles", **body)
    group_id = change(root, "POST", "/groups", project_id=project_id, title="Guards")["group_id"]
    services = {str(application_id): {"groups": [{"group_id": group_id, "role": "guard", "action": "grant"}]}}
    change(root, "PATCH", f"/projects/{project_id}", settings={"services": services})
    given = [{"name": "guard", "expired": 4102444800}]
    for user in (holder, erased):
        change(root, "PATCH", f"/users/{user.user_id}/permissions", application_id=application_id, roles=given)
    paths = role, f"/projects/{project_id}", f"/applications/{application_id}/holders"
    before = [root.data(path) for path in paths]
    root_browser.delete(f"/console/applications/{application_id}/roles/guard/delete")
    assert (root.get(role).status_code, root.data(paths[2])) == (404, [])
    # Somebody else creates the role again, gives it to another user, and deletes it: that is another deletion.
    first = entry_of(root_browser, "role.delete")
    change(root, "POST", "/roles", **body)
    change(root, "PATCH", f"/users/{late.user_id}/permissions", application_id=application_id, roles=["guard"])
    assert "the record exists again" in html.unescape(root_browser.get(f"{first}/undo").text)
    change(root, "DELETE", role)
    change(root, "DELETE", f"/users/{erased.user_id}?now=1")
    page = root_browser.open(f"{first}/undo")
    assert '<span class="new">chat.kick</span>' in page
    assert "undone" in root_browser.act(f"{first}/undo")
    before[2] = [item for item in before[2] if item["user_id"] != erased.user_id]
    assert [root.data(path) for path in paths] == before
    # With more users than the role may have, nothing is restored.
    change(root, "PATCH", f"/users/{late.user_id}/permissions", application_id=application_id, roles=["guard"])
    change(root, "DELETE", role)
    entry_id = entry_id_of(entry_of(root_browser, "role.delete"))
    answer = root.request("POST", "/roles", json={**body, "user_limit": 1, "undo_of": entry_id})
    assert (answer.status_code, "at most 1 users" in answer.text) == (409, True)
    assert root.get(role).status_code == 404
    undo = {**body, "undo_of": entry_id}
    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(lambda _: root.request("POST", "/roles", json=undo).status_code, range(3)))
    assert sorted(answers) == [201, 409, 409]
    assert {item["user_id"] for item in root.data(paths[2])} == {holder.user_id, late.user_id}
    for other, text in ((entry_id + 10**6, "must be the id"), (entry_id_of(first), "must be the id")):
        wrong = {**body, "name": "other", "undo_of": other}
        answer = root.request("POST", "/roles", json=wrong)
        assert (answer.status_code, text in answer.text) == (409, True)
    assert root.get(f"/roles/{application_id}/other").status_code == 404


def test_role_is_given_back_only_by_administrators_who_may_give_it(studio: Studio, root: Administrator) -> None:
    owner, holder = studio.user(), studio.user()
    project_id = studio.project(owner)
    application_id = studio.application(project_id=project_id)
    body = {"application_id": application_id, "name": "guard"}
    change(root, "POST", "/roles", **body)
    change(root, "PATCH", f"/users/{holder.user_id}/permissions", application_id=application_id, roles=["guard"])
    change(root, "DELETE", f"/roles/{application_id}/guard")
    rows = query(studio.server, "SELECT max(id) AS id FROM audit WHERE operation = 'role.delete'")
    answer = Administrator.of(owner).request("POST", "/roles", json={**body, "undo_of": rows[0]["id"]})
    assert answer.status_code == 201, answer.text
    assert "you may not give roles" in answer.text
    assert root.data(f"/applications/{application_id}/holders") == []


def test_deleted_application_is_restored_by_root_with_what_its_project_gave(
    studio: Studio, root: Administrator, root_browser: ConsoleBrowser
) -> None:
    project_id, holder, member = studio.project(), studio.user(), studio.user()
    application_id = studio.application(project_id=project_id)
    change(root, "POST", "/roles", application_id=application_id, name="guard")
    change(root, "PATCH", f"/users/{holder.user_id}/permissions", application_id=application_id, roles=["guard"])
    group_id = change(root, "POST", "/groups", project_id=project_id, title="Guards")["group_id"]
    services = {str(application_id): {"groups": [{"group_id": group_id, "role": "guard", "action": "grant"}]}}
    change(root, "PATCH", f"/projects/{project_id}", settings={"services": services})
    roles = {"applications": {str(application_id): ["admin"]}}
    change(root, "POST", f"/projects/{project_id}/members", user_id=member.user_id, roles=roles)
    paths = (
        f"/applications/{application_id}",
        f"/projects/{project_id}",
        f"/projects/{project_id}/members/{member.user_id}",
        f"/applications/{application_id}/holders",
    )
    before = [root.data(path) for path in paths]
    root_browser.delete(f"/console/applications/{application_id}/delete")
    with console_browser(studio, "can_view_audit", "can_manage_applications") as manager:
        assert "role root is required to restore an application" in reason_at(manager, "application.delete")
    assert root.get(paths[2]).status_code == 404
    undo_last(root_browser, "application.delete")
    assert [root.data(path) for path in paths] == before
    answer = root.request("POST", f"{paths[0]}/restore")
    assert (answer.status_code, "is not removed" in answer.text) == (409, True)


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


def test_deleted_client_works_again_with_the_same_secret(
    root: Administrator, root_browser: ConsoleBrowser, studio: Studio
) -> None:
    fields: dict[str, Any] = {"client_id": "restored-client", "profile": "oidc"}
    fields |= {"redirect_uris": ["https://one.example/cb"]}
    fields |= {"grant_types": ["authorization_code", "client_credentials"], "application_id": studio.application()}
    created = change(root, "POST", "/clients", **fields, first_party=True, support_uri="https://one.example/help")
    rotated = change(root, "POST", "/clients/restored-client/rotate-secret", overlap=86400)
    secrets = [created["client_secret"], rotated["client_secret"]]
    before = root.data("/clients/restored-client")

    def tokens() -> list[int]:
        """Returns the statuses of token requests with both secrets."""
        form = {"grant_type": "client_credentials"}
        with studio.server.client() as http:
            auths = [("restored-client", secret) for secret in secrets]
            return [http.post("/proxy/oauth/token", data=form, auth=auth).status_code for auth in auths]

    assert tokens() == [200, 200]
    root_browser.delete("/console/clients/restored-client/delete")
    assert tokens() == [401, 401]
    with console_browser(studio, "can_view_audit", "can_manage_clients") as clerk:
        assert "The role root is required for a client with first_party" in reason_at(clerk, "client.delete")
    entry = entry_of(root_browser, "client.delete")
    assert "Its secret is the same as before" in undo_last(root_browser, "client.delete")
    assert tokens() == [200, 200]
    after = root.data("/clients/restored-client")
    fresh = {"secrets", "created"}  # secrets are encrypted anew
    assert {name: after[name] for name in after.keys() - fresh} == {
        name: before[name] for name in before.keys() - fresh
    }
    assert [item["expires_at"] for item in after["secrets"]] == [item["expires_at"] for item in before["secrets"]]
    assert query(studio.server, "SELECT 1 FROM deleted_secrets WHERE entry_id = $1", entry_id_of(entry)) == []


def test_deletion_of_a_client_is_undone_once_and_for_some_days(
    root: Administrator, root_browser: ConsoleBrowser, studio: Studio
) -> None:
    body = {"client_id": "undone-once", "profile": "oidc", "redirect_uris": ["https://one.example/cb"]}
    change(root, "POST", "/clients", **body)
    change(root, "DELETE", "/clients/undone-once")
    entry = entry_of(root_browser, "client.delete")
    undo = {**body, "undo_of": entry_id_of(entry)}
    other = root.request("POST", "/clients", json={**undo, "client_id": "stranger"})
    assert (other.status_code, "undo_of" in other.text) == (409, True)  # the secret of another client
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: root.request("POST", "/clients", json=undo).status_code, range(4)))
    assert sorted(answers) == [201, 409, 409, 409]
    change(root, "DELETE", "/clients/undone-once")
    assert root.request("POST", "/clients", json=undo).status_code == 409  # of the first deletion
    entry = entry_of(root_browser, "client.delete")
    query(studio.server, "UPDATE audit SET at = at - interval '31 days' WHERE id = $1", entry_id_of(entry))
    query(
        studio.server,
        "UPDATE deleted_secrets SET expires = now() - interval '1 day' WHERE entry_id = $1",
        entry_id_of(entry),
    )
    answer = root.request("POST", "/clients", json={**body, "undo_of": entry_id_of(entry)})
    assert (answer.status_code, "for 30 days" in answer.text) == (409, True)
    assert "so the client gets a new one" in root_browser.open(f"{entry}/undo")
    answer = root_browser.submit(f"{entry}/undo")
    assert (answer.status_code, 'id="secret"' in answer.text) == (200, True)


def test_deleted_provider_comes_back_with_its_secret(
    root: Administrator, root_browser: ConsoleBrowser, studio: Studio
) -> None:
    fields = {"id": "restored", "kind": "oidc", "issuer": "https://id.example", "client_id": "sso", "position": 2}
    change(root, "POST", "/identity-providers", **fields, client_secret="not-in-the-audit-trail")
    change(root, "DELETE", "/identity-providers/restored")
    with console_browser(studio, "can_view_audit", "can_manage_clients") as clerk:
        assert "The role root is required" in reason_at(clerk, "identity_provider.delete")
    assert "is the same as before" in undo_last(root_browser, "identity_provider.delete")
    after = root.data("/identity-providers/restored")
    assert {name: after[name] for name in fields} == fields
    assert (after["disabled"], bool(after["secret_id"])) == (False, True)


def test_entry_that_cannot_be_undone_says_why(
    studio: Studio, root: Administrator, root_browser: ConsoleBrowser
) -> None:
    user = studio.user()
    change(root, "DELETE", f"/users/{user.user_id}")
    undo_last(root_browser, "user.delete")
    assert root.data(f"/users/{user.user_id}")["deletion_due"] is None
    assert "was changed again since" in reason_at(root_browser, "user.delete")
    assert root.request("DELETE", f"/users/{user.user_id}/sessions").status_code == 200
    assert "the user signs in again" in reason_at(root_browser, "user.end_sessions").lower()
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
