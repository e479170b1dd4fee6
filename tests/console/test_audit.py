"""The section "Audit trail": filters, differences, links and undo."""

from collections.abc import Iterator

import pytest

from sso.console.audit.differences import FieldDifference, differences
from tests.console.conftest import ConsoleBrowser, console_browser
from tests.kit.browser import new_user, query, user_id_of
from tests.kit.console_pages import last_entry, page_of
from tests.perm.endpoints.conftest import Studio


@pytest.fixture(scope="module")
def auditor(studio: Studio) -> Iterator[ConsoleBrowser]:
    with console_browser(studio, "can_manage_users", "can_view_audit") as browser:
        yield browser


@pytest.fixture
def changed_user(auditor: ConsoleBrowser) -> str:
    login = new_user(auditor.server, nick="Before", tags=["one"])
    auditor.act(page_of(auditor, login), nick="After", tags="one, two")
    return login


def test_filters_select_entries(auditor: ConsoleBrowser, changed_user: str) -> None:
    user_id = user_id_of(auditor.server, changed_user)
    text = auditor.open("/console/audit", params={"target": user_id, "operation": "user.save"})
    assert " changed nickname and tags of " in text
    assert "user.create" not in text
    assert f'href="/console/users/{user_id}"' in text
    assert "No entry matches" in auditor.open("/console/audit", params={"target": user_id, "until": "2001-01-01"})
    assert "Must be a day" in auditor.get("/console/audit", params={"since": "yesterday"}).text


def test_entry_shows_differences_and_is_undone(auditor: ConsoleBrowser, changed_user: str) -> None:
    entry = last_entry(auditor, "user.save")["id"]
    text = auditor.open(f"/console/audit/{entry}")
    assert '<span class="old">Before</span>' in text
    assert '<span class="new">["one","two"]</span>' in text
    assert "No one gains or loses" in auditor.open(f"/console/audit/{entry}/undo")
    assert "undone" in auditor.act(f"/console/audit/{entry}/undo")
    row = query(auditor.server, "SELECT nick, tags FROM users WHERE login = $1", changed_user)[0]
    assert tuple(row) == ("Before", ["one"])


def test_undo_does_not_overwrite_a_later_change(auditor: ConsoleBrowser, changed_user: str) -> None:
    stored = "SELECT nick, tags, phone FROM users WHERE login = $1"
    entry = last_entry(auditor, "user.save")["id"]
    auditor.act(page_of(auditor, changed_user), phone="+1555")  # another field does not matter
    auditor.act(page_of(auditor, changed_user), tags="one, two, three")
    answer = auditor.get(f"/console/audit/{entry}/undo")
    assert (answer.status_code, "changed again since: tags." in auditor.problem) == (409, True)
    answer = auditor.send(f"/console/audit/{entry}/undo")
    assert (answer.status_code, "changed again since: tags." in auditor.problem) == (409, True)
    assert tuple(query(auditor.server, stored, changed_user)[0]) == ("After", ["one", "two", "three"], "+1555")
    auditor.act(page_of(auditor, changed_user), tags="one, two")
    auditor.open(f"/console/audit/{entry}/undo")
    assert "undone" in auditor.act(f"/console/audit/{entry}/undo")
    assert tuple(query(auditor.server, stored, changed_user)[0]) == ("Before", ["one"], "+1555")


def test_undo_needs_the_right_of_the_operation(studio: Studio, auditor: ConsoleBrowser, changed_user: str) -> None:
    entry = last_entry(auditor, "user.save")["id"]
    with console_browser(studio, "can_view_audit") as browser:
        text = browser.open(f"/console/audit/{entry}")
        assert "Undo this change" not in text
        assert 'href="/console/users/' not in text
        token = browser.form("/logout")["csrf"]
        answer = browser.post(f"/console/audit/{entry}/undo", {"csrf": token})
        assert (answer.status_code, "can_manage_users is required" in answer.text) == (403, True)


def test_change_of_a_secret_cannot_be_undone(auditor: ConsoleBrowser, changed_user: str) -> None:
    path = page_of(auditor, changed_user, "/security")
    auditor.act(f"{path}/password", password="another long password")
    entry = last_entry(auditor, "user.save")["id"]
    text = auditor.open(f"/console/audit/{entry}")
    assert "another long password" not in text
    assert "Undo this change" not in text


def test_differences_are_listed_by_path() -> None:
    before = {"name": "a", "meta": {"chat": {"kick": True, "mute": True}}, "same": 1}
    after = {"name": "a", "meta": {"chat": {"kick": False}, "new": {"x": 1}}, "same": 1}
    assert differences(before, after) == [
        FieldDifference("meta.chat.kick", "true", "false"),
        FieldDifference("meta.chat.mute", "true", None),
        FieldDifference("meta.new.x", None, "1"),
    ]
    assert differences(None, {"a": {}}) == [FieldDifference("a", None, "{}")]
    assert differences({"a": 1}, None) == [FieldDifference("a", "1", None)]
    assert differences(None, None) == []
