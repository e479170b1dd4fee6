"""The section "Projects": members, groups with conditions, services, settings, and the test of conditions."""

import html
import re
from collections.abc import Iterator

import orjson
import pytest

from sso.perm.input.groups import MAX_GROUP_USERS
from tests.admin.conftest import Administrator
from tests.console.conftest import ConsoleBrowser, console_browser
from tests.kit.browser import query
from tests.kit.console_pages import PAYLOAD, InlineCode, last_entry
from tests.perm.endpoints.conftest import Studio


@pytest.fixture(scope="module")
def browser(studio: Studio) -> Iterator[ConsoleBrowser]:
    """An administrator who manages projects and applications, and sees users."""
    with console_browser(studio, "can_manage_projects", "can_manage_applications", "can_view_users") as browser:
        yield browser


@pytest.fixture(scope="module")
def base(browser: ConsoleBrowser) -> str:
    """The path of a project that was created in the console."""
    browser.open("/console/projects/new-project")
    assert "created" in browser.act("/console/projects", title="Console Team", description=PAYLOAD)
    return browser.page.url.path


@pytest.fixture(scope="module")
def application(studio: Studio, base: str) -> int:
    """An application of the project with the role ``helper``."""
    application = studio.application(project_of(base))
    studio.role(application, "helper", "mute")
    return application


def project_of(base: str) -> str:
    return base.rpartition("/")[2]


def new_group(browser: ConsoleBrowser, base: str, title: str) -> str:
    """Returns the path of the group."""
    browser.open(f"{base}/groups/new")
    assert "created" in browser.act(f"{base}/groups", title=title)
    return browser.page.url.path


def preview(browser: ConsoleBrowser, path: str, **fields: str) -> str:
    browser.open(f"{path}?view=json")
    return html.unescape(browser.post(f"{path}/preview", browser.form(path) | fields).text)


def test_project_is_found_and_exported(browser: ConsoleBrowser, base: str) -> None:
    assert "Console Team" in browser.open("/console/projects", params={"search": "console t"})
    assert "<img src=x" not in browser.page.text
    assert "No project matches" in browser.open("/console/projects", params={"search": "no such title"})
    exported = browser.open("/console/projects/export.csv", params={"search": "Console T"}).splitlines()
    assert exported[0] == "id,title,display_name,description,aliases,author,created"
    assert exported[1].startswith(f"{project_of(base)},Console Team,")


def test_project_has_a_name_in_any_script(browser: ConsoleBrowser) -> None:
    browser.open("/console/projects/new-project")
    browser.act("/console/projects", display_name="Pokémon: Köln's Gate 3")
    assert browser.page.url.path == "/console/projects/pokemon_kolns_gate_3"
    assert "Pokémon: Köln's Gate 3</bdi></h1>" in html.unescape(browser.page.text)
    assert "Pokémon: Köln" in browser.open("/console/projects", params={"search": "pokémon"})
    browser.open("/console/projects/new-project")
    answer = browser.submit("/console/projects", display_name="夜の港")
    assert (answer.status_code, "The name has no Latin letters" in browser.problem) == (422, True)
    browser.act("/console/projects", display_name="夜の港", title="Night Harbor")
    assert (browser.page.url.path, "夜の港</bdi></h1>" in browser.page.text) == ("/console/projects/night_harbor", True)
    browser.open("/console/projects/night_harbor/settings")
    browser.act("/console/projects/night_harbor/settings", display_name="夜の港 2")
    assert "夜の港 2</bdi></h1>" in browser.page.text


def test_wrong_title_is_explained(browser: ConsoleBrowser) -> None:
    browser.open("/console/projects/new-project")
    answer = browser.submit("/console/projects", title="x!", admins="nobody@nowhere.example")
    # Once, at the field, in the words of its label.
    assert (answer.status_code, answer.text.count("The title can have up to 32 letters")) == (422, 1)
    assert '<p class="wrong" id="title-wrong">' in answer.text
    assert 'value="nobody@nowhere.example"' in answer.text


def test_member_is_added_by_mail_address_edited_and_removed(
    studio: Studio, browser: ConsoleBrowser, base: str, application: int
) -> None:
    user = studio.user()
    browser.open(f"{base}/members/new")
    assert "member of the project now" in browser.act(f"{base}/members", user=user.login, role="viewer")
    assert user.login in browser.page.text
    path = f"{base}/members/{user.user_id}"
    browser.open(path)
    given = {"role": "app_admin", "place": f"applications/{application}", "until": "2035-12-31"}
    assert "saved" in browser.act(path, **given)
    assert browser.form(path)[f"until:applications/{application}/app_admin"] == "2035-12-31"
    fields = {name: value for name, value in browser.form(path).items() if name != "keep:viewer"}
    assert browser.post(path, fields).status_code == 303
    text = browser.open(base)
    assert f"app_admin at applications/{application} until 2035-12-31" in text
    assert f"{user.login},applications/{application}/app_admin" in browser.open(f"{base}/members.csv")
    browser.open(path)
    assert "no longer" in browser.delete(f"{path}/remove")
    assert user.login not in browser.open(base)


def test_unknown_user_and_wrong_day_are_explained(studio: Studio, browser: ConsoleBrowser, base: str) -> None:
    browser.open(f"{base}/members/new")
    answer = browser.submit(f"{base}/members", user="nobody@nowhere.example")
    assert (answer.status_code, "There is no user with this e-mail address" in browser.problem) == (404, True)
    assert "Invite them?" not in answer.text  # this administrator may not
    assert 'aria-invalid="true"' in answer.text
    path = f"{base}/members/{browser.user_id}"
    browser.open(path)
    answer = browser.submit(path, role="viewer", until="tomorrow")
    assert (answer.status_code, "Must be a day" in browser.problem) == (422, True)


def test_last_administrator_stays(browser: ConsoleBrowser, base: str) -> None:
    path = f"{base}/members/{browser.user_id}/remove"
    browser.open(path)
    assert browser.submit(path).status_code == 409


def test_condition_of_a_group_shows_who_gains_what_before_it_is_saved(
    studio: Studio, browser: ConsoleBrowser, base: str, application: int
) -> None:
    user, added = studio.user(tags=["console_beta"]), studio.user()
    group = new_group(browser, base, "Beta testers")
    group_id = group.rpartition("/")[2]
    service = f"{base}/services/{application}"
    browser.open(service)
    assert "saved" in browser.act(service, group_id=group_id, role="helper", effect="grant")
    part = preview(browser, group, title_1="Beta", condition_1="tag=console_beta", users=added.login)
    assert "2 users are affected" in part
    for gainer in (user, added):
        assert re.search(rf'href="/console/users/{gainer.user_id}" title="[^"]*user {gainer.user_id}">', part)
    assert re.search(rf'gains <span class="new">mute</span> at .*href="/console/applications/{application}"', part)
    assert studio.rules_of(user, application) == []
    browser.open(f"{group}?view=json")
    assert browser.form(group)["condition_1"] == ""
    fields = {"title_1": "Beta", "condition_1": "tag=console_beta", "users": f"{added.login} {added.login}"}
    assert "saved" in browser.act(group, **fields)
    assert studio.rules_of(user, application) == ["mute"]
    assert browser.form(group)["users"] == added.login
    assert "The role helper" in " ".join(browser.open(group).replace("<code>", "").replace("</code>", "").split())
    lost = preview(browser, group, title_1="", condition_1="")
    assert '<span class="old">mute</span>' in lost


def test_stale_form_of_a_group_keeps_its_members(studio: Studio, browser: ConsoleBrowser, base: str) -> None:
    """An address on the form may belong to another user when the form is sent."""
    (ann, other, added), root = studio.users(3), Administrator.of(studio.root)
    group = new_group(browser, base, "Stale members")
    browser.open(group)
    assert "saved" in browser.act(group, users=ann.login)
    for user, login in ((ann, f"new.{ann.login}"), (other, ann.login)):
        assert root.request("PATCH", f"/users/{user.user_id}", json={"login": login}).status_code == 200
    for view in ("json", "table"):
        assert browser.submit(group, show=view).status_code == 200
    assert "saved" in browser.act(group, description="Changed", users=f"{browser.form(group)['users']} {added.login}")
    assert root.data(f"/groups/{group.rpartition('/')[2]}")["users"] == [ann.user_id, added.user_id]
    assert browser.form(group)["users"].split() == [f"new.{ann.login}", added.login]


def test_group_form_with_too_many_users_looks_none_up(browser: ConsoleBrowser, base: str) -> None:
    group = new_group(browser, base, "Too many")
    names = " ".join(f"nobody{number}@example.com" for number in range(MAX_GROUP_USERS + 1))
    assert f"Users: must be at most {MAX_GROUP_USERS} users" in preview(browser, group, users=names)
    browser.open(group)
    answer = browser.submit(group, users=names)
    assert (answer.status_code, browser.problem) == (422, f"Must be at most {MAX_GROUP_USERS} users.")


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        ("tag", "Condition 1: expected MEMBER=VALUE"),
        ('{"tag": }', "Condition 1: line 1, column"),
        ("tga=x", 'Condition 1: "tga" is not known. Did you mean "tag"?'),
        ("ip=192.0.2.0/24", "Condition 1: a group's condition must not ask for ip"),
        ("tag=a tag=b", "Condition 1: tag is given twice"),
    ],
)
def test_wrong_condition_is_explained_while_typing(
    browser: ConsoleBrowser, base: str, condition: str, problem: str
) -> None:
    group = new_group(browser, base, f"Wrong {abs(hash(condition)) % 10**6}")
    part = preview(browser, group, title_1=PAYLOAD[:60], condition_1=condition)
    assert (problem in part, 'class="box bad"' in part) == (True, True)
    answer = browser.submit(group, title_1=PAYLOAD[:60], condition_1=condition)
    own_text = problem.removeprefix("Condition 1: ").casefold()  # below the field
    assert (answer.status_code, own_text in html.unescape(browser.problem).casefold()) == (422, True)
    assert "<img src=x" not in answer.text
    assert html.escape(condition, quote=False) in answer.text.replace("&#34;", '"')  # what was typed is still there
    assert InlineCode(answer.text).found == []


def test_tester_says_which_part_of_a_condition_decides(
    studio: Studio, browser: ConsoleBrowser, base: str, application: int
) -> None:
    user = studio.user(tags=["vip"])
    group = new_group(browser, base, "Very important")
    rows = {"condition_1:value:1": "vip", "condition_1:member:2": "domain", "condition_1:value:2": "elsewhere.example"}
    browser.act(group, title_1="Both", **rows)
    tester = f"{base}/tester"
    browser.open(tester, params={"group_id": group.rpartition("/")[2]})
    text = html.unescape(browser.submit(tester, user=user.login, address="192.0.2.7").text)
    assert "<strong>No.</strong>" in text
    assert '<span class="old plain">domain elsewhere.example: no, it is example.com</span> <span class="badge">' in text
    assert '<span class="new">tag vip</span></li>' in text
    assert "<strong>Yes.</strong>" in browser.submit(tester, user=user.login, domain="elsewhere.example").text
    condition = '{"or": [{"tag": "x"}, {"ip": "192.0.2.0/24"}]}'
    answer = browser.submit(tester, group_id="", condition=condition, domain="", address="192.0.2.7")
    assert "<strong>Yes.</strong>" in answer.text
    answer = browser.submit(tester, group_id="", condition=condition, domain="", address="somewhere")
    assert (answer.status_code, "Must be an IPv4 or IPv6 address" in answer.text) == (422, True)
    typed = browser.form(tester) | {"address": "192.0.", "user": "nobody@"}
    answer = browser.post(tester, typed, HX_Request="true")  # while the administrator types
    assert (answer.status_code, '<div class="box bad" role="alert">' in answer.text) == (200, True)
    path = f"/console/applications/{application}/roles/helper/test"
    browser.open(path)
    assert "<strong>No.</strong>" in browser.submit(path, condition="ip=192.0.2.0/24", address="198.51.100.7").text


def test_conditions_of_a_group_are_built_with_suggestions_and_a_count(
    studio: Studio, browser: ConsoleBrowser, base: str
) -> None:
    users = [studio.user(tags=["counted_console"]) for _ in range(3)]
    group = new_group(browser, base, "Counted")
    text = browser.open(group)
    assert ('<option value="counted_console">tag</option>' in text, "comes from the network" in text) == (True, False)
    rows = {"title_1": "Some", "condition_1:value:1": "counted_console"}
    part = html.unescape(browser.post(f"{group}/preview", browser.form(group) | rows).text)
    assert "3 users meet the condition now" in part
    answer = browser.submit(group, **rows, add="condition_1")
    assert browser.form(group)["condition_1:value:2"] == ""
    named = {"condition_1:member:2": "uid", "condition_1:value:2": f"{users[0].login} {users[1].user_id}"}
    part = html.unescape(browser.post(f"{group}/preview", browser.form(group) | named).text)
    assert "2 users meet the condition now" in part
    answer = browser.submit(group, **named, **{"condition_1:value:1": ""}, title_3="Third")
    assert answer.status_code == 303
    [row] = query(browser.server, "SELECT conditions FROM user_groups WHERE id = $1", group.rpartition("/")[2])
    expected = [{"title": "Some", "condition": {"uid": [users[0].user_id, users[1].user_id]}}]
    assert orjson.loads(row["conditions"])[:1] == expected
    page = browser.open("/console/users/suggestions", params={"member": "tag", "search": "NTED_CONS"})
    assert page.strip() == '<datalist><option value="counted_console"></option></datalist>'
    page = browser.open("/console/users/suggestions", params={"member": "uid", "search": users[0].login[:8]})
    assert f'value="{users[0].login}"' in page
    browser.open(group)
    answer = browser.submit(group, **{"condition_1:member:1": "ip", "condition_1:value:1": "10.0.0.0/8"})
    assert (answer.status_code, "must not ask for ip" in html.unescape(browser.problem)) == (422, True)


def test_settings_admit_and_exclude_users(studio: Studio, browser: ConsoleBrowser, base: str) -> None:
    group = new_group(browser, base, "Excluded")
    assert "saved" in browser.act(group, tags="project")
    group_id = group.rpartition("/")[2]
    path = f"{base}/settings"
    browser.open(path)
    changed = {"description": "Ships", "aliases": "console_crew", f"disallow:{group_id}": "1"}
    assert "saved" in browser.act(path, **changed)
    [row] = query(browser.server, "SELECT * FROM projects WHERE id = $1", project_of(base))
    assert (row["description"], row["aliases"], row["disallow"]) == ("Ships", ["console_crew"], [group_id])
    assert f"disallow:{group_id}" in browser.form(path)
    browser.open(f"{group}/delete")
    assert browser.submit(f"{group}/delete").status_code == 409  # the list must change first
    browser.open(path)
    fields = {name: value for name, value in browser.form(path).items() if not name.startswith("disallow:")}
    assert browser.post(path, fields).status_code == 303
    assert "deleted" in browser.delete(f"{group}/delete")


def test_settings_keep_groups_that_the_administrator_may_not_see(studio: Studio) -> None:
    user, project = studio.user(), studio.project()
    people = {"allow": (user.user_id, studio.keeper.user_id), "disallow": ()}
    hidden = {name: studio.group(project, *users, tags=("project",)) for name, users in people.items()}
    membership = {"id": project} | {name: [group] for name, group in hidden.items()}
    assert studio.root.call("project/membership", action="save", data=membership).status == 200
    studio.role(1, "editor", project={name: {"value": True} for name in ("can_view_project", "can_manage_project")})
    studio.join(project, user, project=["editor"])
    path = f"/console/projects/{project}/settings"
    with ConsoleBrowser(studio.server, user) as browser:
        assert f"allow:{hidden['allow']}" not in browser.open(path)
        assert "saved" in browser.act(path, description="Changed")
    [row] = query(studio.server, "SELECT description, allow, disallow FROM projects WHERE id = $1", project)
    assert dict(row) == {"description": "Changed", **{name: [group] for name, group in hidden.items()}}


def test_descriptions_keep_their_lines(browser: ConsoleBrowser, base: str) -> None:
    for path in (new_group(browser, base, "With lines"), f"{base}/settings"):
        browser.open(path)
        assert "saved" in browser.act(path, description="First\r\nSecond")  # as browsers send it
        browser.open(path)
        assert browser.form(path)["description"] == "First\nSecond"
        kind = "project" if path.endswith("/settings") else "group"
        assert orjson.loads(str(last_entry(browser, f"{kind}.save")["after"]))["description"] == "First\nSecond"


def test_form_of_a_group_leaves_a_description_that_was_not_changed(
    studio: Studio, browser: ConsoleBrowser, base: str
) -> None:
    """One that was saved otherwise may have other ends of lines, and spaces at its end."""
    group, description = new_group(browser, base, "Lines of Windows"), "First\r\nSecond "
    sql = "UPDATE user_groups SET description = $2 WHERE id = $1 RETURNING id"
    query(studio.server, sql, group.rpartition("/")[2], description)
    browser.open(group)
    assert "saved" in browser.act(group, title="Lines of other systems")
    [row] = query(studio.server, "SELECT * FROM user_groups WHERE id = $1", group.rpartition("/")[2])
    assert (row["title"], row["description"]) == ("Lines of other systems", description)


def test_save_of_an_older_version_is_refused(browser: ConsoleBrowser, base: str) -> None:
    group = new_group(browser, base, "Edited twice")
    older = browser.form(group)
    assert "saved" in browser.act(group, description="First")
    answer = browser.post(group, older | {"description": "Second"})
    assert (answer.status_code, "Someone else has changed this" in answer.text) == (409, True)


def test_group_of_another_project_is_not_found(studio: Studio, browser: ConsoleBrowser, base: str) -> None:
    group = studio.group(studio.project())
    assert browser.get(f"{base}/groups/{group}").status_code == 404


def test_project_manager_without_other_rights_uses_ids(studio: Studio) -> None:
    project = studio.project()
    studio.application(project)
    with console_browser(studio, "can_manage_projects") as browser:
        base = f"/console/projects/{project}"
        user = studio.user()
        browser.open(f"{base}/members/new")
        assert "now" in browser.act(f"{base}/members", user=user.login, role="viewer")
        assert f"User {user.user_id}" in browser.page.text
        assert user.login not in browser.page.text
        assert "You may not see its applications" in browser.open(f"{base}/services")
        group = new_group(browser, base, "By ids")
        answer = browser.submit(group, users=user.login)
        assert (answer.status_code, "Give a user id" in browser.problem) == (422, True)
        assert "saved" in browser.act(group, users=user.user_id)
        text = browser.open(f"{base}/tester")
        assert 'name="user"' not in text
        assert "<strong>Yes.</strong>" in browser.submit(f"{base}/tester", condition="tag=a", tags="a, b").text


def test_administrator_who_only_views_has_no_buttons(studio: Studio) -> None:
    project = studio.project()
    group = studio.group(project)
    with console_browser(studio, "can_view_projects") as browser:
        for path in ("", "/groups", f"/groups/{group}", "/settings", "/services"):
            text = browser.open(f"/console/projects/{project}{path}")
            for button in ("Add member", "Create group", "Delete", ">Save<", "New application"):
                assert button not in text, (path, button)


def test_project_is_deleted(studio: Studio) -> None:
    project = studio.project()
    with console_browser(studio, "can_manage_projects") as browser:
        browser.open(f"/console/projects/{project}/settings")
        assert "deleted" in browser.delete(f"/console/projects/{project}/delete")
        assert f"/console/projects/{project}" not in browser.open("/console/projects", params={"search": project})
        assert "Add member" not in browser.open(f"/console/projects/{project}")


def test_roles_are_given_and_taken_on_the_page_of_a_user(
    studio: Studio, browser: ConsoleBrowser, base: str, application: int
) -> None:
    user = studio.user()
    text = browser.open(f"/console/users/{user.user_id}/roles")
    assert ('name="application_id"' in text, 'name="project_id"' in text) == (True, True)
    chosen = browser.get(
        "/console/applications/choose", params={"application_id": application, "user_id": user.user_id}
    )
    path = browser.follow(chosen).url.path
    part = preview(browser, path, role="helper")
    assert (f'href="/console/users/{user.user_id}"' in part, '<span class="new">mute</span>' in part) == (True, True)
    assert studio.rules_of(user, application) == []
    assert "saved" in browser.act(path, role="helper", until="2035-12-31")
    assert studio.rules_of(user, application) == ["mute"]
    assert "until 2035-12-31" in browser.open(f"/console/users/{user.user_id}/roles")
    browser.open(path)
    fields = {name: value for name, value in browser.form(path).items() if name != "keep:helper"}
    assert '<span class="old">mute</span>' in browser.post(f"{path}/preview", fields).text
    assert browser.post(path, fields).status_code == 303
    browser.open(path)
    answer = browser.submit(path)  # nothing has changed, and no role was chosen
    assert (answer.status_code, browser.problem) == (422, "Choose a role.")
    new_group(browser, base, "Group for a role")  # the page of a service offers roles if there is a group
    for other in (f"{base}/members/{browser.user_id}", f"{base}/services/{application}"):
        browser.open(other)
        assert (browser.submit(other).status_code, browser.problem) == (422, "Choose a role.")
    assert studio.rules_of(user, application) == []
    browser.open(path)
    answer = browser.submit(path, role="no_such_role")
    assert (answer.status_code, "no_such_role" in answer.text) == (422, True)


def test_holders_of_roles_are_listed_on_the_page_of_an_application(
    studio: Studio, browser: ConsoleBrowser, application: int
) -> None:
    user = studio.user()
    holders = f"/console/applications/{application}/holders"
    path = browser.follow(browser.get(f"{holders}/new", params={"user": user.login})).url.path
    assert path == f"/console/applications/{application}/users/{user.user_id}"
    browser.act(path, role="helper")
    assert user.login in browser.open(holders, params={"role": "helper"})
    assert f"helper,{user.user_id},{user.login},0,0" in browser.open(f"{holders}.csv")
    answer = browser.get(f"{holders}/new", params={"user": "nobody@nowhere.example"})
    assert (answer.status_code, "There is no user" in browser.problem) == (422, True)


def test_roles_of_the_central_application_need_recent_authentication(
    studio: Studio, root_browser: ConsoleBrowser
) -> None:
    user = studio.user()
    path = f"/console/applications/1/users/{user.user_id}"
    root_browser.open(path)
    root_browser.forget_authentication()
    answer = root_browser.submit(path, role="auditor")
    assert (answer.status_code, "Confirm that it is you" in answer.text) == (403, True)
    root_browser.http.cookies.clear()
    assert root_browser.sign_in(studio.root.login).status_code == 303  # for the other tests that use this browser
    with console_browser(studio, "can_manage_applications") as manager:
        assert manager.get(path).status_code == 403


def test_project_may_have_the_name_of_a_page(root_browser: ConsoleBrowser, studio: Studio) -> None:
    studio.server.apply({"projects": [{"id": "choose", "title": "Choose"}]})
    assert "Members manage the project" in root_browser.open("/console/projects/choose")
