"""The section "Applications": editors, their previews, assertions and access keys."""

import html
from collections.abc import Iterator
from urllib.parse import urlencode

import orjson
import pytest

from tests.admin.conftest import Administrator
from tests.console.conftest import ConsoleBrowser, console_browser
from tests.kit.browser import query
from tests.kit.console_pages import PAYLOAD
from tests.perm.endpoints.conftest import Studio

SCHEMA = '{"chat": {"mute": {"value": false}, "write": {"value": false}}}'
ROLE = '{"private_data": {"chat": {"mute": {"value": true}}}}'


@pytest.fixture(scope="module")
def browser(studio: Studio) -> Iterator[ConsoleBrowser]:
    with console_browser(studio, "can_manage_applications") as browser:
        yield browser


@pytest.fixture
def base(studio: Studio, browser: ConsoleBrowser) -> str:
    """The path of an application with a schema and an empty role."""
    base = f"/console/applications/{studio.application()}"
    browser.open(f"{base}/schema?view=json")
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
    browser.open(f"{base}/schema?view=json")
    answer = browser.submit(f"{base}/schema", private_data='{"chat": }')
    assert (answer.status_code, "Line 1, column" in browser.problem) == (422, True)
    assert 'id="problem"' not in answer.text  # it is shown once, below its field
    assert "{&#34;chat&#34;: }" in answer.text  # what was typed is still there
    fields = browser.form(f"{base}/schema") | {"private_data": '{"chat": 5}'}
    part = html.unescape(browser.post(f"{base}/schema/preview", fields).text)
    assert ('class="box bad"' in part, 'must be an object, such as {"value": true}' in part) == (True, True)


def press(browser: ConsoleBrowser, path: str, button: str, value: str, **fields: str) -> dict[str, str]:
    """Presses a button of the editor that saves nothing. Returns the fields of the form afterwards."""
    assert browser.submit(path, **fields, **{button: value}).status_code == 200
    return browser.form(path)


def test_schema_and_role_are_made_without_json(browser: ConsoleBrowser, studio: Studio) -> None:
    base = f"/console/applications/{studio.application()}"
    schema, role = f"{base}/schema", f"{base}/roles/kicker"
    browser.open(schema)
    number = max(int(name.partition(":")[2]) for name in browser.form(schema) if name.startswith("path:"))
    row = {f"path:{number}": "chat.kick", f"description:{number}": "Remove people"}
    fields = press(browser, schema, "add", "rule", **row)
    assert fields[f"path:{number}"] == "chat.kick"
    row = {f"path:{number + 1}": "title", f"section:{number + 1}": "public_data", f"default:{number + 1}": "value"}
    fields = press(browser, schema, "show", "json", **row, **{f"value:{number + 1}": "Recruit"})
    assert orjson.loads(fields["private_data"]) == {"chat": {"kick": {"value": False, "description": "Remove people"}}}
    assert orjson.loads(fields["public_data"]) == {"title": {"value": "Recruit"}}
    answer = browser.submit(schema, show="table", private_data='{"chat": }')
    assert (answer.status_code, "Line 1, column" in browser.problem) == (422, True)  # and the view stays
    fields = press(
        browser, schema, "show", "table", private_data=fields["private_data"].replace('"desc', '"colour": 1, "desc')
    )
    assert [path for name, path in fields.items() if name.startswith("path:")][:2] == ["chat.kick", "title"]
    fields = press(browser, schema, "remove", "2")
    assert "title" not in fields.values()
    answer = browser.submit(schema, **{"path:1": "chat kick"})
    assert (answer.status_code, browser.problem.startswith("A name must be 1 to 64 letters")) == (422, True)
    assert browser.act(schema, **{"path:1": "chat.kick"}) == "The schema has been saved."
    browser.open(f"{base}/new-role")
    browser.act(f"{base}/roles", name="kicker")
    assert "Test the condition" not in browser.page.text
    assert browser.form(role).keys().isdisjoint({"give:private_data.chat.kick", "meta"})
    rows = {"give:private_data.chat.kick": "1", "condition:member:1": "uid", "condition:value:1": browser.user_id}
    fields = press(browser, role, "add", "condition", **rows)
    assert (fields["condition:value:1"], fields["condition:member:2"]) == (browser.user_id, "tag")
    fields = press(browser, role, "show", "json")
    assert orjson.loads(fields["meta"]) == {"private_data": {"chat": {"kick": {"value": True}}}}
    assert fields["condition"] == f"uid={browser.user_id}"
    press(browser, role, "show", "table", condition='{"uid": ["1"], "or": [{"tag": "a"}, {"domain": "b.example"}]}')
    press(browser, role, "remove", "condition:1")
    assert "saved" in browser.act(role, **{"condition:member:9": "tag", "condition:value:9": "beta"})
    stored = query(browser.server, "SELECT condition, meta FROM roles WHERE name = 'kicker'")[0]
    assert orjson.loads(stored["condition"]) == {"or": [{"tag": "a"}, {"domain": "b.example"}], "tag": "beta"}
    assert "Test the condition" in browser.open(role)


def test_schema_that_the_management_api_accepts_is_shown_and_saved(
    studio: Studio, browser: ConsoleBrowser, base: str
) -> None:
    """With spaces, and as a form, it has more bytes than the management API accepts."""
    rules = {f"r{number:05}": {"value": True, "description": "x" * 70} for number in range(9000)}
    path = f"/schemas/{base.rpartition('/')[2]}"
    admin = Administrator.of(studio.root)
    answer = admin.request("PATCH", path, json={"private_data": {"huge": rules}})
    assert answer.status_code == 200, answer.text
    schema = f"{base}/schema"
    assert "at most 150 rules" in browser.open(schema)
    fields = browser.form(schema)
    changed = fields["private_data"].replace('"r00007":{"value":true', '"r00007":{"value":false')
    assert len(urlencode(fields)) > 1024 * 1024
    assert browser.act(schema, private_data=changed) == "The schema has been saved."
    stored = admin.data(path)["private_data"]["huge"]
    assert stored == rules | {"r00007": rules["r00007"] | {"value": False}}


def test_description_keeps_its_lines(browser: ConsoleBrowser, base: str) -> None:
    path = f"{base}/roles/moderator"
    change = "UPDATE roles SET description = $1 WHERE application_id = $2 AND name = 'moderator' RETURNING 1"
    application_id = int(base.rpartition("/")[2])
    assert query(browser.server, change, "First\nSecond\n\nThird", application_id)
    browser.open(path)
    typed = browser.form(path)["description"].replace("\n", "\r\n")  # as browsers send it
    assert "saved" in browser.act(path, description=typed, default="1")
    select = "SELECT description FROM roles WHERE application_id = $1 AND name = 'moderator'"
    assert query(browser.server, select, application_id)[0][0] == "First\nSecond\n\nThird"


def test_rules_that_the_schema_does_not_declare_stay_and_are_shown(browser: ConsoleBrowser, base: str) -> None:
    browser.open(f"{base}/new-role")
    browser.act(f"{base}/roles", name="old_hand")
    path = f"{base}/roles/old_hand"
    undeclared = '{"private_data": {"gone": {"value": "x", "params": "eu"}}}'
    press(browser, path, "show", "json")
    assert "saved" in browser.act(path, meta=undeclared)
    text = browser.open(path)
    assert ("not in the schema" in text, "does not declare" in text) == (True, True)
    assert "saved" in browser.act(path, description="Kept")
    press(browser, path, "show", "json") if browser.open(path) else None
    assert orjson.loads(browser.form(path)["meta"]) == orjson.loads(undeclared)


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
    browser.open(f"{base}/roles/moderator?view=json")
    fields = browser.form(f"{base}/roles/moderator") | {"meta": ROLE}
    part = browser.post(f"{base}/roles/moderator/preview", fields).text
    assert "1 user is affected" in part
    assert '<span class="new">chat.mute</span>' in part
    assert studio.rules_of(user, application_id, "list") == []
    assert "saved" in browser.act(f"{base}/roles/moderator", meta=ROLE)
    assert studio.rules_of(user, application_id, "list") == ["private_data.chat.mute"]


def test_failing_assertion_refuses_a_save_until_it_is_overridden(browser: ConsoleBrowser, base: str) -> None:
    browser.open(f"{base}/assertions")
    assert "saved" in browser.act(f"{base}/assertions", assertions="only moderator may chat.write")
    browser.open(f"{base}/schema?view=json")
    opened = SCHEMA.replace('"write": {"value": false}', '"write": {"value": true}')
    answer = browser.submit(f"{base}/schema", private_data=opened)
    assert (answer.status_code, "would fail" in browser.problem) == (409, True)
    browser.open(f"{base}/schema?view=json")
    assert "saved" in browser.act(f"{base}/schema", private_data=opened, override="1")


def test_access_key_is_shown_once_and_deleted(browser: ConsoleBrowser, base: str) -> None:
    browser.open(f"{base}/keys/new")
    answer = browser.submit(f"{base}/keys", comment="console key")
    assert "not shown again" in answer.text
    application_id = int(base.rpartition("/")[2])
    [row] = query(browser.server, "SELECT id FROM access_keys WHERE application_id = $1", application_id)
    assert "no longer works" in browser.delete(f"{base}/keys/{row['id']}/delete")


def test_role_is_deleted(browser: ConsoleBrowser, base: str) -> None:
    browser.open(f"{base}/new-role")
    browser.act(f"{base}/roles", name="short_lived")
    assert "deleted" in browser.delete(f"{base}/roles/short_lived/delete")
    assert browser.get(f"{base}/roles/short_lived").status_code == 404
