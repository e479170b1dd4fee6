"""The pages that ask before a deletion: what they say, the name that they ask for, and the undo that follows."""

import html
import re

import pytest

from tests.admin.conftest import Administrator, root
from tests.console.conftest import ConsoleBrowser
from tests.kit.browser import query
from tests.kit.console_pages import change
from tests.perm.endpoints.conftest import Studio

__all__ = ["root"]
KICK = {"private_data": {"chat": {"kick": {"value": True}}}}


@pytest.fixture(scope="module")
def records(studio: Studio, root: Administrator) -> dict[str, str]:
    """The ids of one record of each kind. One user has the role, by assignment."""
    project_id, holder = studio.project(), studio.user()
    application_id = studio.application(project_id=project_id)
    change(root, "PATCH", f"/schemas/{application_id}", private_data={"chat": {"kick": {"value": False}}})
    change(root, "POST", "/roles", application_id=application_id, name="guard", meta=KICK)
    change(root, "PATCH", f"/users/{holder.user_id}/permissions", application_id=application_id, roles=["guard"])
    change(root, "POST", "/clients", client_id="deletable", name="Shop", redirect_uris=["https://a.example/cb"])
    key = change(root, "POST", "/access-keys", application_id=application_id, comment="Oslo")
    member = studio.user()
    change(root, "POST", f"/projects/{project_id}/members", user_id=member.user_id, roles={"project": ["viewer"]})
    webhook = change(
        root, "POST", "/webhooks", url="https://93.184.216.34/hook", secret="0123456789abcdef", disabled=True
    )
    provider = {"id": "deletable", "kind": "oidc", "issuer": "https://id.example", "client_id": "sso"}
    change(root, "POST", "/identity-providers", **provider, name="Studio ID")
    return {
        "application": f"/console/applications/{application_id}",
        "client": "/console/clients/deletable",
        "key": f"/console/applications/{application_id}/keys/{key['id']}",
        "group": change(root, "POST", "/groups", project_id=project_id, title="Testers")["group_id"],
        "member": f"/console/projects/{project_id}/members/{member.user_id}",
        "member_login": member.login,
        "project": f"/console/projects/{project_id}",
        "project_title": root.data(f"/projects/{project_id}")["title"],
        "application_name": root.data(f"/applications/{application_id}")["name"],
        "provider": "/console/identity-providers/deletable",
        "user": f"/console/users/{holder.user_id}",
        "login": holder.login,
        "webhook": f"/console/webhooks/{webhook['id']}",
    }


def test_pages_say_what_ends_who_loses_what_and_ask_for_the_name_of_important_records(
    root_browser: ConsoleBrowser, records: dict[str, str]
) -> None:
    """Each row: the page, the name that it asks for, a sentence, whether a notice offers the undo."""
    group = f"{records['project']}/groups/{records['group']}/delete"
    rows = (
        (f"{records['key']}/delete", "", "It was never used.", False),
        (f"{records['webhook']}/delete", "", "No event is sent there any more.", False),
        (f"{records['provider']}/delete", "", "The links of 0 users to it.", True),
        (f"{records['member']}/remove", "", "The role viewer in the project.", True),
        (group, "", "The group, with 0 users and 0 conditions.", True),
        (f"{records['application']}/roles/guard/delete", "guard", "1 user to whom it was given.", True),
        (f"{records['client']}/delete", "Shop", "Nobody can sign in to it any more.", True),
        (f"{records['application']}/delete", records["application_name"], "1 role, with 1 assignment to users.", True),
        (f"{records['user']}/delete", records["login"], "The user is signed out now (1 game), and cannot", True),
        (f"{records['project']}/delete", records["project_title"], "The roles of 2 members in the project.", True),
    )
    for path, name, sentence, is_undoable in rows:
        page = root_browser.open(path)
        assert ("What ends" in page, sentence in page) == (True, True), (path, page)
        assert (f">To confirm, type {name}</label>" in page) == bool(name), path
        if name:
            answer = root_browser.submit(path, name=f"{name}x")
            assert (answer.status_code, "Type the name as it is written here" in answer.text) == (422, True), path
        if "/roles/" in path:
            assert "Show who loses what" in page
            shown = root_browser.open(path, params={"effect": "1"})
            assert '<span class="old">chat.kick</span>' in shown
        root_browser.open(path)
        follow = root_browser.submit(path, **({"name": f"  {name.upper()} "} if name else {}))
        assert follow.status_code == 303, (path, follow.text)
        root_browser.follow(follow)
        offered = re.search(r'href="(/console/audit/[0-9]+/undo)">Undo</a>', root_browser.page.text)
        assert bool(offered) == is_undoable, (path, root_browser.page.text)
        if offered:
            root_browser.open(offered[1])
            assert "undone" in root_browser.act(offered[1]), path
            assert root_browser.get(path).status_code == 200, path  # the record exists again


def test_record_that_was_changed_meanwhile_is_not_deleted(root_browser: ConsoleBrowser, root: Administrator) -> None:
    change(root, "POST", "/clients", client_id="changed-meanwhile", redirect_uris=["https://a.example/cb"])
    path = "/console/clients/changed-meanwhile/delete"
    root_browser.open(path)
    fields = root_browser.form(path) | {"name": "changed-meanwhile"}
    change(root, "PATCH", "/clients/changed-meanwhile", name="Important now")
    answer = root_browser.post(path, fields)
    assert (answer.status_code, "Type the name" in answer.text) == (422, True)
    answer = root_browser.post(path, fields | {"name": "Important now"})
    assert (answer.status_code, "in the meantime" in html.unescape(answer.text)) == (409, True)
    assert 'name="override"' not in answer.text  # no assertion is about clients
    root_browser.page = answer
    assert root_browser.submit(path, name="Important now").status_code == 409  # until the page is loaded again
    assert root.get("/clients/changed-meanwhile").status_code == 200


def test_deletion_that_breaks_an_assertion_asks_for_the_override(
    studio: Studio, root: Administrator, root_browser: ConsoleBrowser
) -> None:
    application_id, holder = studio.application(), studio.user()
    change(root, "PATCH", f"/schemas/{application_id}", private_data={"chat": {"kick": {"value": False}}})
    change(root, "POST", "/roles", application_id=application_id, name="guard", meta=KICK)
    change(root, "PATCH", f"/users/{holder.user_id}/permissions", application_id=application_id, roles=["guard"])
    statement = f"{holder.login} may chat.kick"
    change(root, "PUT", f"/applications/{application_id}/assertions", assertions=[statement])
    path = f"/console/applications/{application_id}/roles/guard/delete"
    assert 'name="override"' not in root_browser.open(path)
    answer = root_browser.submit(path, name="guard")
    assert (answer.status_code, 'name="override"' in answer.text) == (409, True), answer.text
    assert "deleted" in root_browser.act(path, name="guard", override="1")


def test_notice_offers_the_undo_of_other_changes_and_no_foreign_link(root_browser: ConsoleBrowser) -> None:
    path = f"/console/users/{root_browser.user_id}"
    root_browser.open(path)
    root_browser.act(path, nick="Captain")
    [row] = query(root_browser.server, "SELECT max(id) AS id FROM audit WHERE operation = 'user.save'")
    assert f'href="/console/audit/{row["id"]}/undo">Undo</a>' in root_browser.page.text
    for value in ("1/../../logout", "https://evil.example", "1" * 20, "٣"):
        page = root_browser.open(path, params={"done": "user-saved", "undo": value})
        assert "Undo</a>" not in page
