"""The editors of schemas, roles and conditions in Chromium: nothing is written as JSON, with scripts and without."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import DESKTOP, SharedWindows, Window
from tests.kit.browser import new_user
from tests.kit.browser_pages import look, look_again, open_console
from tests.kit.long_tests import takes_long
from tests.kit.server import Server

pytestmark = pytest.mark.browser


@pytest.fixture(params=[True, pytest.param(False, marks=takes_long)], ids=["scripts", "no-scripts"])
def scripts(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def window(shared_windows: SharedWindows, scripts: bool) -> Iterator[Window]:
    with shared_windows.use(DESKTOP, scripts=scripts) as window:
        yield window


@pytest.fixture(scope="module")
def administrator(server: Server) -> str:
    login = new_user(server, nick="Editor", user_id="7400001")
    server.apply(
        {
            "users": [
                {"login": "beta1@studio-7400.example", "user_id": "7400002", "tags": ["beta_7400"]},
                {"login": "beta2@studio-7400.example", "user_id": "7400003", "tags": ["beta_7400"]},
            ],
            "permissions": [{"user_id": login, "application_id": 1, "data": {"roles": ["root"]}}],
        }
    )
    return login


def test_role_with_a_condition_is_made_without_json(
    page: Page, server: Server, administrator: str, scripts: bool
) -> None:
    application = 7400 + scripts
    server.apply({"applications": [{"application_id": application, "name": f"Edited game {application}"}]})
    base = f"{server.base_url}/console/applications/{application}"
    open_console(page, server, administrator)
    page.goto(f"{base}/schema")
    page.get_by_label("Path of the new rule").fill("chat.kick")
    page.get_by_label("Description of the new rule").fill("Remove people from the chat")
    page.get_by_role("button", name="Add a row").click()
    expect(page.get_by_label("Path of chat.kick")).to_have_value("chat.kick")
    page.get_by_label("Path of the new rule").fill("title")
    page.get_by_label("Section of the new rule").select_option("Public")
    page.get_by_label("Default of the new rule").select_option("value")
    page.get_by_label("Value of the new rule").fill("Recruit")
    if scripts:
        look(page, "schema")
    page.get_by_role("button", name="JSON").click()
    expect(page.get_by_label("Public data")).to_have_value('{\n  "title": {\n    "value": "Recruit"\n  }\n}')
    if scripts:
        look_again(page, "schema-json")
    page.get_by_role("button", name="Rules", exact=True).click()
    page.get_by_role("button", name="Remove title").click()
    expect(page.get_by_label("Path of title")).to_have_count(0)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").first).to_contain_text("The schema has been saved.")
    page.get_by_role("link", name="Add role").first.click()
    page.get_by_label("Name", exact=True).fill("moderator")
    page.get_by_role("button", name="Create role").click()
    page.get_by_label("chat.kick").check()
    page.get_by_label("row 1: value").fill("beta_7400")
    if not scripts:
        page.get_by_role("button", name="Preview").click()
    impact = page.locator("#impact")
    expect(impact).to_contain_text("2 users meet the condition now: beta1@studio-7400.example")
    expect(impact).to_contain_text("2 users are affected")
    expect(impact.locator(".new").first).to_have_text("chat.kick")
    page.get_by_role("button", name="Add a row").click()
    page.get_by_label("row 2: what is compared").select_option("is one of these users")
    page.get_by_label("row 2: value").fill("beta2@studio-7400.example")
    if not scripts:
        page.get_by_role("button", name="Preview").click()
    expect(impact).to_contain_text("1 user meets the condition now: beta2@studio-7400.example")
    page.get_by_text("Only at certain times").click()
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_role("button", name="Add hours of the week").click()
    page.get_by_placeholder("00:00").fill("00:00")
    page.get_by_label("Sat").check()
    page.get_by_label("Sat").uncheck()
    if scripts:
        look(page, "role")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").first).to_contain_text("The role has been saved.")
    page.goto(f"{base}/roles/moderator?view=json")
    condition = json.loads(page.get_by_label("Condition", exact=True).input_value())
    time = {"zone": "Europe/Berlin", "weekly": [{"from": "00:00"}]}
    assert condition == {"tag": "beta_7400", "uid": ["7400003"], "time": time}


@pytest.mark.parametrize("scripts", [True], indirect=True)
def test_rules_are_found_and_values_are_suggested(page: Page, server: Server, administrator: str) -> None:
    rules = {f"rule_{number}": {"value": False} for number in range(20)}
    server.apply(
        {
            "applications": [{"application_id": 7410, "name": "Large game"}],
            "schemas": {"7410": {"private_data": {"chat": rules, "wall": {"paint": {"value": False, "params": "eu"}}}}},
            "roles": {"7410": [{"name": "painter", "meta": {"private_data": {"gone": {"value": True}}}}]},
        }
    )
    open_console(page, server, administrator)
    page.goto(f"{server.base_url}/console/applications/7410/roles/painter")
    expect(page.locator(".rule-choice").first).to_contain_text("not in the schema")
    page.get_by_label("Find a rule").fill("paint")
    expect(page.locator(".rule-choice:visible")).to_have_count(1)
    page.get_by_label("wall.paint").check()
    page.locator(".rule-choice:visible").get_by_label("Parameters").fill("eu, us")
    page.get_by_label("row 1: value").press_sequentially("ta_74")
    expect(page.locator("#suggested option")).to_have_count(1)
    expect(page.locator("#suggested option")).to_have_attribute("value", "beta_7400")
    page.get_by_role("button", name="JSON").click()
    condition = page.get_by_label("Condition", exact=True)
    condition.fill("tga=beta_7400")
    expect(page.locator("#impact")).to_contain_text('"tga" is not known. Did you mean "tag"?')
    condition.fill('{"tag": ')
    page.get_by_role("button", name="Rules and condition").click()
    expect(page.locator(".wrong")).to_contain_text("this is not JSON")  # the view stays
    condition.fill('{"or": [{"tag": "beta_7400"}, {"and": [{"domain": "a.example"}, {"tag": "b"}]}]}')
    page.get_by_role("button", name="Rules and condition").click()
    expect(page.get_by_label("row 2: value")).to_have_value('{"and":[{"domain":"a.example"},{"tag":"b"}]}')
    look(page, "role-large")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").first).to_contain_text("The role has been saved.")
    page.goto(f"{server.base_url}/console/applications/7410/roles/painter?view=json")
    assert json.loads(page.get_by_label("Rules", exact=True).input_value())["private_data"] == {
        "gone": {"value": True},
        "wall": {"paint": {"value": True, "params": "eu,us"}},
    }
    assert '"and"' in page.get_by_label("Condition", exact=True).input_value()
