"""Users without rights who manage a project or an application of their own: the console shows them these alone."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.console.conftest import ConsoleBrowser
from tests.perm.endpoints.conftest import ApiUser, Studio


@pytest.fixture(scope="module")
def admin(studio: Studio) -> ApiUser:
    return studio.user()


@pytest.fixture(scope="module")
def project(studio: Studio, admin: ApiUser) -> str:
    return studio.project(admin)


@pytest.fixture(scope="module")
def browser(studio: Studio, admin: ApiUser, project: str) -> Iterator[ConsoleBrowser]:
    """The administrator of the project."""
    with ConsoleBrowser(studio.server, admin) as browser:
        yield browser


def test_administrator_of_a_project_sees_it_and_no_other(studio: Studio, browser: ConsoleBrowser, project: str) -> None:
    assert "/console" in browser.open_account().text
    navigation = browser.open("/console").partition("<main")[0]
    for path, is_shown in (("projects", True), ("users", False), ("clients", False), ("audit", False)):
        assert (f'href="/console/{path}"' in navigation) == is_shown, path
    other = studio.project()
    text = browser.open("/console/projects")
    assert (f"/console/projects/{project}" in text, f"/console/projects/{other}" in text) == (True, False)
    assert "Create project" not in text
    for path in ("", "/groups", "/services", "/settings", "/tester"):
        assert browser.get(f"/console/projects/{project}{path}").status_code == 200, path
        assert browser.get(f"/console/projects/{other}{path}").status_code == 404, path
    for path in ("users", "clients", "audit", "system", "explorer"):
        assert browser.get(f"/console/{path}").status_code == 403, path


def test_administrator_of_a_project_manages_it(studio: Studio, browser: ConsoleBrowser, project: str) -> None:
    base, user = f"/console/projects/{project}", studio.user()
    browser.open(f"{base}/members/new")
    assert "now" in browser.act(f"{base}/members", user=user.login, role="viewer")
    assert user.login not in browser.page.text  # without the right to see users
    browser.open(f"{base}/groups/new")
    assert "created" in browser.act(f"{base}/groups", title="Own group")
    group = browser.page.url.path
    assert "saved" in browser.act(group, title_1="Beta", **{"condition_1:value:1": "beta"})
    browser.open(f"{base}/services")
    assert f"/console/applications/new?project_id={project}" in browser.page.text
    browser.open("/console/applications/new", params={"project_id": project})
    assert "created" in browser.act("/console/applications", name="Own game")
    assert "Add role" not in browser.page.text  # it would lead to the page of the role, which needs another right
    assert "Own game" in browser.open("/console/applications")
    browser.open(f"{base}/tester")
    browser.submit(f"{base}/tester", group_id=group.rpartition("/")[2], tags="beta")
    assert "<strong>Yes.</strong>" in browser.page.text


def test_manager_of_a_group_changes_its_users_and_nothing_else(studio: Studio, project: str) -> None:
    member, group = studio.user(), studio.group(project)
    studio.join(project, member, project=["viewer"], groups={group: ["group_admin"]})
    path = f"/console/projects/{project}/groups/{group}"
    with ConsoleBrowser(studio.server, member) as browser:
        browser.open(path)
        assert "saved" in browser.act(path, users=member.user_id)
        answer = browser.submit(path, title="Mine")
        assert (answer.status_code, 'value="Mine"' in answer.text) == (403, True)


def test_manager_of_a_group_who_may_not_see_its_project_finds_the_group(studio: Studio, project: str) -> None:
    member, group, other = studio.user(), studio.group(project), studio.group(project)
    studio.join(project, member, groups={group: ["group_admin"]})
    base = f"/console/projects/{project}"
    path = f"{base}/groups/{group}"
    with ConsoleBrowser(studio.server, member) as browser:
        assert "/console" in browser.open_account().text
        links = open_all_links(browser)
        assert {"/console/projects", f"{base}/groups", path, f"{base}/tester?group_id={group}"} <= links
        assert not links & {base, f"{base}/services", f"{base}/settings", f"{base}/groups/{other}", f"{path}/delete"}
        browser.open(path)
        assert "saved" in browser.act(path, users=member.user_id, title_1="Beta", **{"condition_1:value:1": "beta"})
        browser.open(f"{base}/tester")
        browser.submit(f"{base}/tester", group_id=group, tags="beta")
        assert "<strong>Yes.</strong>" in browser.page.text
        assert f'href="{path}"' in browser.open("/console/search", params={"q": group})
        for hidden in (base, f"{base}/services", f"{base}/settings", f"{base}/groups/new", "/console/users"):
            assert browser.get(hidden).status_code == 403, hidden
        assert browser.get(f"{base}/groups/{other}").status_code == 404
        assert browser.get(f"/console/projects/{studio.project()}/groups").status_code == 404


def test_manager_of_groups_who_may_not_see_their_project_deletes_one(studio: Studio, project: str) -> None:
    member, group = studio.user(), studio.group(project)
    studio.role(1, "group_keeper", project={"can_manage_groups": {"value": True}})
    studio.join(project, member, project=["group_keeper", "group_admin"])
    path = f"/console/projects/{project}/groups/{group}"
    with ConsoleBrowser(studio.server, member) as browser:
        assert f"{path}/delete" in open_all_links(browser)
        studio.group(project)  # the list of groups follows
        assert "deleted" in browser.delete(f"{path}/delete")


def test_manager_of_a_group_who_sees_another_project_finds_the_group(studio: Studio, project: str) -> None:
    member, group, other = studio.user(), studio.group(project), studio.project()
    studio.join(project, member, groups={group: ["group_admin"]})
    studio.join(other, member, project=["viewer"])
    with ConsoleBrowser(studio.server, member) as browser:
        links = open_all_links(browser)
    assert {f"/console/projects/{other}", f"/console/projects/{project}/groups/{group}"} <= links


def open_all_links(browser: ConsoleBrowser) -> set[str]:
    """Opens the console and every page that its pages link to. Returns their paths."""
    opened, found = set[str](), {"/console"}
    while found:
        path = found.pop()
        opened.add(path)
        found |= set(re.findall(r'href="(/console[^"#]*)"', browser.open(path))) - opened
    return opened


def test_viewer_of_a_project_has_no_buttons_and_sends_no_forms(studio: Studio, project: str) -> None:
    viewer = studio.user()
    studio.join(project, viewer, project=["viewer"])
    base = f"/console/projects/{project}"
    with ConsoleBrowser(studio.server, viewer) as browser:
        for path in ("", "/groups", "/settings", "/services"):
            text = browser.open(f"{base}{path}")
            for button in ("Add member", "Create group", "Delete", ">Save<", "New application"):
                assert button not in text, (path, button)
        token = browser.form("/logout")["csrf"]
        for path in ("/members", "/settings", "/delete", "/groups", "/services/10"):
            answer = browser.post(f"{base}{path}", {"csrf": token, "title": "x", "user": viewer.login, "role": "admin"})
            assert answer.status_code == 403, path


def test_administrator_elsewhere_does_not_manage_this_project(studio: Studio, browser: ConsoleBrowser) -> None:
    """The ids of a form do not decide: the operation checks the record of the path."""
    other = studio.project()
    group = studio.group(other)
    browser.open("/console")
    token = browser.form("/logout")["csrf"]
    for path in (f"/console/projects/{other}/members", f"/console/projects/{other}/groups/{group}"):
        fields = {"csrf": token, "user": browser.login, "role": "admin", "title": "Taken", "project_id": "x"}
        assert browser.post(path, fields).status_code in (403, 404), path


def test_user_with_secret_data_manages_the_application(studio: Studio) -> None:
    user, application, other = studio.user(), studio.application(), studio.application()
    studio.role(application, "helper", "mute")
    studio.give_secret(user, application, "canRead", "canReadSchema", "canModifySchema")
    with ConsoleBrowser(studio.server, user) as browser:
        base = f"/console/applications/{application}"
        text = browser.open("/console/applications")
        assert base in text
        assert browser.get(f"/console/applications/{other}").status_code == 404
        assert browser.get("/console/projects").status_code == 403
        browser.open(base)
        path = f"{base}/roles/helper"
        browser.open(path)
        assert "saved" in browser.act(path, description="Helps")
        schema = f"{base}/schema"
        browser.open(schema)
        [new] = [name for name, text in browser.form(schema).items() if name.startswith("path:") and not text]
        assert "saved" in browser.act(schema, **{new: "chat.kick"})  # secret_data, which only root changes, is not sent
        assert "Users with roles" not in browser.open(base)


def test_roles_are_given_without_the_right_to_list_them(studio: Studio) -> None:
    user, other, application = studio.user(), studio.user(), studio.application()
    studio.role(application, "helper", "mute")
    levels = {"roles": {"canRead": "all", "canWrite": "all"}, "private": {"canRead": "all"}}
    studio.give_secret(user, application, "canRead", **levels)
    base = f"/console/applications/{application}"
    with ConsoleBrowser(studio.server, user) as browser:
        browser.open(f"{base}/users/{other.user_id}")
        assert "saved" in browser.act(f"{base}/users/{other.user_id}", role="helper")
        assert other.user_id in browser.open(f"{base}/holders")


def test_rights_of_an_application_for_all_users_make_no_administrators(studio: Studio) -> None:
    application = studio.application()
    secret = {"application": {"canRead": {"value": True}}}
    try:
        save_secret_data(studio, application, secret)
        with ConsoleBrowser(studio.server, studio.user()) as browser:
            assert browser.get("/console").status_code == 403
            assert "/console" not in browser.open_account().text
    finally:  # other tests expect that users see no application
        save_secret_data(studio, application, {"application": {"canRead": {"value": False}}})


def save_secret_data(studio: Studio, application_id: int, secret: dict[str, Any]) -> None:
    data = {"secret_data": secret}
    assert studio.root.call("meta/schema", action="save", application_id=application_id, data=data).status == 200
