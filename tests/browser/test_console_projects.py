"""Projects and role assignment in the console, in Chromium: one test for each task of an administrator."""

import pytest
from playwright.sync_api import Page, expect

from tests.kit.browser import new_user
from tests.kit.browser_pages import look, open_console, window
from tests.kit.long_tests import takes_long
from tests.kit.server import Server

__all__ = ["window"]
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def project_administrator(server: Server) -> str:
    login = new_user(server, nick="Project Administrator", user_id="7200001")
    server.apply(
        {
            "users": [{"login": "tester@studio-7200.example", "user_id": "7200002", "tags": ["beta_7200"]}],
            "permissions": [{"user_id": login, "application_id": 1, "data": {"roles": ["root"]}}],
        }
    )
    return login


@takes_long
def test_group_with_a_condition_gives_a_role_in_a_project(
    page: Page, server: Server, project_administrator: str
) -> None:
    open_console(page, server, project_administrator)
    page.get_by_role("link", name="Projects").first.click()
    page.get_by_role("link", name="Add project").click()
    page.get_by_label("Name", exact=True).fill("Browser Team")
    look(page, "projects")
    page.get_by_role("button", name="Create project").click()
    expect(page.get_by_role("status").first).to_contain_text("The project has been created")
    page.get_by_role("link", name="Add member").click()
    page.get_by_label("E-mail address or user id").fill("tester@studio-7200.example")
    page.get_by_role("button", name="Add member").click()
    expect(page.get_by_role("status").first).to_contain_text("member of the project now")
    look(page, "members")
    page.get_by_role("link", name="tester@studio-7200.example", exact=True).click()
    page.get_by_label("viewer").uncheck()
    page.get_by_label("Role", exact=True).select_option("developer")
    expect(page.locator("#impact .new").first).to_be_visible()
    look(page, "member")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").first).to_contain_text("roles of the member have been saved")
    server.apply(
        {
            "applications": [{"application_id": 7200, "name": "Browser game", "project_id": "browser_team"}],
            "roles": {"7200": [{"name": "helper", "meta": {"private_data": {"mute": {"value": True}}}}]},
        }
    )
    page.goto(f"{server.base_url}/console/projects/browser_team")
    tabs = page.get_by_role("navigation", name="Project")
    tabs.get_by_role("link", name="Groups").click()
    page.get_by_role("link", name="Add group").click()
    page.get_by_label("Title").fill("Beta testers")
    page.get_by_role("button", name="Create group").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Beta testers")
    group = page.url
    page.goto(f"{server.base_url}/console/projects/browser_team/services")
    look(page, "services")
    page.get_by_role("link", name="Browser game", exact=True).click()
    page.get_by_label("Role", exact=True).select_option("helper")
    expect(page.locator("#impact")).to_contain_text("No one gains or loses a permission.")
    look(page, "service")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Beta testers gets the role helper")).to_be_checked()
    page.goto(group)
    condition = page.get_by_role("group", name="New condition")
    condition.get_by_label("Name").fill("Beta")
    condition.get_by_label("row 1: value").fill("beta_7200")
    expect(page.locator("#impact .new")).to_have_text("mute")
    expect(page.locator("#impact")).to_contain_text("tester@studio-7200.example gains mute at Browser game")
    look(page, "group")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").first).to_contain_text("The group has been saved")


@takes_long
def test_first_permission_is_made_and_explained_as_documented(
    page: Page, server: Server, project_administrator: str
) -> None:
    """The steps of "A first permission" in docs/first_permission.rst, with the words of the pages only."""
    open_console(page, server, project_administrator)
    page.get_by_role("link", name="Projects").first.click()
    page.get_by_role("link", name="Add project").click()
    page.get_by_label("Name", exact=True).fill("First Team")
    page.get_by_role("button", name="Create project").click()
    page.get_by_role("navigation", name="Project").get_by_role("link", name="Applications").click()
    page.get_by_role("link", name="Add application").click()
    page.get_by_label("Name").fill("First game")
    page.get_by_role("button", name="Create application").click()
    tabs = page.get_by_role("navigation", name="Application")
    tabs.get_by_role("link", name="Schema").click()
    for path, default in (("chat.write", "yes"), ("chat.kick", "no")):
        page.get_by_label("Path of the new rule").fill(path)
        page.get_by_label("Default of the new rule").select_option(default)
        page.get_by_role("button", name="Add a row").click()
        expect(page.get_by_label(f"Path of {path}")).to_be_visible()
    save(page)
    for role in ("moderator", "tester"):
        page.get_by_role("link", name="Add role").first.click()
        page.get_by_label("Name").fill(role)
        page.get_by_role("button", name="Create role").click()
        page.get_by_label("chat.kick").check()
        save(page)
    page.get_by_role("link", name="first_team").click()
    page.get_by_role("navigation", name="Project").get_by_role("link", name="Groups").click()
    page.get_by_role("link", name="Add group").click()
    page.get_by_label("Title").fill("First testers")
    page.get_by_role("button", name="Create group").click()
    condition = page.get_by_role("group", name="New condition")
    condition.get_by_label("Name").fill("Beta")
    condition.get_by_label("row 1: value").fill("beta_7200")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").first).to_contain_text("The group has been saved")
    page.get_by_role("main").get_by_role("link", name="Applications").click()
    page.get_by_role("link", name="First game", exact=True).click()
    page.get_by_label("Role", exact=True).select_option("tester")
    expect(page.locator("#impact")).to_contain_text("gains chat.kick at First game")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("First testers gets the role tester")).to_be_checked()
    page.get_by_role("link", name="Application", exact=True).click()
    tabs.get_by_role("link", name="Users with roles").click()
    page.get_by_role("link", name="Give roles").click()
    page.get_by_label("E-mail address or user id").fill("tester@studio-7200.example")
    page.get_by_role("button", name="Choose roles").click()
    page.get_by_label("Role", exact=True).select_option("moderator")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Effective permissions").click()
    expect(page.get_by_role("heading", name="2 rules of tester@studio-7200.example at First game, now")).to_be_visible()
    kick = page.locator("li.leaf", has=page.get_by_text("kick", exact=True))
    expect(kick).to_contain_text("role moderator")
    expect(kick).to_contain_text("granted by the project first_team to the group First testers, by the condition Beta")


def save(page: Page) -> None:
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").first).to_contain_text("has been saved")


def test_condition_is_tested_with_a_user_at_an_address(page: Page, server: Server, project_administrator: str) -> None:
    server.apply(
        {
            "projects": [{"id": "tested_team", "title": "Tested Team"}],
            "groups": [
                {
                    "group_id": "720000000000000000000001",
                    "project_id": "tested_team",
                    "title": "Staff",
                    "conditions": [{"title": "Studio", "condition": {"domain": "studio-7200.example", "tag": "staff"}}],
                }
            ],
        }
    )
    open_console(page, server, project_administrator)
    page.goto(f"{server.base_url}/console/projects/tested_team/groups/720000000000000000000001")
    page.get_by_role("link", name="Test with a user").click()
    page.get_by_label("User", exact=True).fill("tester@studio-7200.example")
    outcome = page.locator("#outcome")
    expect(outcome).to_contain_text("No.")
    expect(outcome.locator("li", has_text="tag staff")).to_contain_text("Decides")
    page.get_by_label("Group").select_option("The condition below")
    page.get_by_label("Condition").fill("ip=192.0.2.0/24 tag=beta_7200")
    page.get_by_label("IP address").fill("192.0.2.7")
    expect(outcome).to_contain_text("Yes.")
    look(page, "tester")


@takes_long
def test_role_is_assigned_on_the_page_of_a_user(page: Page, server: Server, project_administrator: str) -> None:
    server.apply(
        {
            "applications": [{"application_id": 7201, "name": "Assigned game"}],
            "roles": {"7201": [{"name": "guide", "meta": {"private_data": {"help": {"value": True}}}}]},
        }
    )
    open_console(page, server, project_administrator)
    page.goto(f"{server.base_url}/console/users/7200002/roles")
    look(page, "user-roles")
    page.get_by_label("Application", exact=True).select_option("7201")
    page.get_by_role("button", name="Choose roles").click()
    page.get_by_label("Role", exact=True).select_option("guide")
    expect(page.locator("#impact .new")).to_have_text("help")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").first).to_contain_text("The roles have been saved.")
    page.get_by_label("guide").uncheck()
    expect(page.locator("#impact .old")).to_have_text("help")
    page.get_by_label("guide").check()
    expect(page.locator("#impact")).to_contain_text("No one gains")
    look(page, "assignment")
    page.get_by_role("navigation", name="Breadcrumbs").get_by_role("link", name="Users with roles").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    look(page, "holders")
