"""The section "Applications": editors, their previews, assertions and access keys."""

import html
import re
from collections.abc import Iterator

import pytest

from tests.console.conftest import ConsoleBrowser, console_browser
from tests.kit.browser import query
from tests.kit.console_pages import PAYLOAD
from tests.perm.endpoints.conftest import Studio

SCHEMA = '{"chat": {"mute": {"value": false}, "write": {"value": false}}}'
ROLE = '{"private_data": {"chat": {"mute": {"value": true}}}}'


def example(browser: ConsoleBrowser) -> str:
    """The example below a field of the current page."""
    found = re.search(r'id="example"[^>]*>(.*?)</pre>', browser.page.text, re.DOTALL)
    assert found
    return html.unescape(found[1])


@pytest.fixture(scope="module")
def browser(studio: Studio) -> Iterator[ConsoleBrowser]:
    with console_browser(studio, "can_manage_applications") as browser:
        yield browser


@pytest.fixture(scope="module")
def base(studio: Studio, browser: ConsoleBrowser) -> str:
    """The path of an application with a schema and an empty role."""
    base = f"/console/applications/{studio.application()}"
    browser.open(f"{base}/schema")
    assert browser.act(f"{base}/schema", private_data=SCHEMA) == "The schema has been saved."
    browser.open(f"{base}/new-role")
    assert "Give it rules" in browser.act(f"{base}/roles", name="moderator")
    return base


def test_application_is_created_by_root(root_browser: ConsoleBrowser) -> None:
    root_browser.open("/console/applications/new")
    assert "created" in root_browser.act("/console/applications", name="Console game", description=PAYLOAD)
    assert "<img src=x" not in root_browser.page.text
    assert "Console game" in root_browser.open("/console/applications", params={"search": "console g"})


def test_editor_says_where_the_json_is_wrong(browser: ConsoleBrowser, base: str) -> None:
    browser.open(f"{base}/schema")
    answer = browser.submit(f"{base}/schema", private_data='{"chat": }')
    assert (answer.status_code, "Line 1" in browser.problem) == (422, True)
    assert "{&#34;chat&#34;: }" in answer.text  # what was typed is still there
    fields = browser.form(f"{base}/schema") | {"private_data": '{"chat": 5}'}
    part = html.unescape(browser.post(f"{base}/schema/preview", fields).text)
    assert ('class="box bad"' in part, 'must be an object, such as {"value": true}' in part) == (True, True)


def test_examples_can_be_copied_into_the_editors(browser: ConsoleBrowser, studio: Studio) -> None:
    base = f"/console/applications/{studio.application()}"
    browser.open(f"{base}/schema")
    assert "saved" in browser.act(f"{base}/schema", private_data=example(browser))
    browser.open(f"{base}/new-role")
    assert "Give it rules" in browser.act(f"{base}/roles", name="kicker")
    assert "<code>private_data.chat.kick</code>" in browser.page.text  # a rule of the schema
    assert "saved" in browser.act(f"{base}/roles/kicker", meta=example(browser))
    user, application_id = studio.user(), int(base.rpartition("/")[2])
    data = {"user_id": user.user_id, "roles": ["kicker"]}
    assert studio.root.call("meta/data", action="save", application_id=application_id, data=data).status == 200
    assert studio.rules_of(user, application_id, "list_short") == ["chat.kick", "chat.write"]


def test_name_of_a_role_is_refused_on_the_page_of_the_application(browser: ConsoleBrowser, base: str) -> None:
    browser.open(f"{base}/new-role")
    answer = browser.submit(f"{base}/roles", name="no role!")
    assert (answer.status_code, "A name must be" in browser.problem) == (422, True)
    assert browser.form(f"{base}/roles")["name"] == "no role!"
    answer = browser.submit(f"{base}/roles", name="moderator")
    assert (answer.status_code, "a role with this name" in browser.problem) == (409, True)


def test_preview_shows_who_gains_what_and_changes_nothing(browser: ConsoleBrowser, base: str, studio: Studio) -> None:
    user = studio.user()
    application_id = int(base.rpartition("/")[2])
    data = {"user_id": user.user_id, "roles": ["moderator"]}
    assert studio.root.call("meta/data", action="save", application_id=application_id, data=data).status == 200
    browser.open(f"{base}/roles/moderator")
    fields = browser.form(f"{base}/roles/moderator") | {"meta": ROLE}
    part = browser.post(f"{base}/roles/moderator/preview", fields).text
    assert f"User {user.user_id}" in part
    assert '<span class="new">private_data.chat.mute</span>' in part
    assert studio.rules_of(user, application_id, "list") == []
    assert "saved" in browser.act(f"{base}/roles/moderator", meta=ROLE)
    assert studio.rules_of(user, application_id, "list") == ["private_data.chat.mute"]


def test_failing_assertion_refuses_a_save_until_it_is_overridden(browser: ConsoleBrowser, base: str) -> None:
    browser.open(f"{base}/assertions")
    assert "saved" in browser.act(f"{base}/assertions", assertions="only moderator may chat.write")
    browser.open(f"{base}/schema")
    opened = SCHEMA.replace('"write": {"value": false}', '"write": {"value": true}')
    answer = browser.submit(f"{base}/schema", private_data=opened)
    assert (answer.status_code, "would fail" in browser.problem) == (409, True)
    browser.open(f"{base}/schema")
    assert "saved" in browser.act(f"{base}/schema", private_data=opened, override="1")


def test_access_key_is_shown_once_and_deleted(browser: ConsoleBrowser, base: str) -> None:
    browser.open(f"{base}/keys/new")
    answer = browser.submit(f"{base}/keys", comment="console key")
    assert "not shown again" in answer.text
    application_id = int(base.rpartition("/")[2])
    [row] = query(browser.server, "SELECT id FROM access_keys WHERE application_id = $1", application_id)
    assert "no longer works" in browser.act(f"{base}/keys/{row['id']}/delete")


def test_role_is_deleted(browser: ConsoleBrowser, base: str) -> None:
    browser.open(f"{base}/new-role")
    browser.act(f"{base}/roles", name="short_lived")
    assert "deleted" in browser.act(f"{base}/roles/short_lived/delete")
    assert browser.get(f"{base}/roles/short_lived").status_code == 404
