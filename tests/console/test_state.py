"""The section "State": export, comparison and application of documents."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from sso.console.state.document import digest
from tests.console.conftest import ConsoleBrowser, console_browser
from tests.kit.browser import query
from tests.kit.builders import PASSWORD
from tests.kit.console_pages import PAYLOAD
from tests.perm.endpoints.conftest import Studio

SECTION = "/console/state"
COMPARE, APPLY = f"{SECTION}/compare", f"{SECTION}/apply"


@pytest.fixture(scope="module")
def viewer(studio: Studio) -> Iterator[ConsoleBrowser]:
    with console_browser(studio, "can_view_state") as browser:
        yield browser


def compare(browser: ConsoleBrowser, document: Any) -> str:
    browser.open(SECTION)
    browser.submit(COMPARE, document=document if isinstance(document, str) else json.dumps(document))
    return browser.page.text


def apply(browser: ConsoleBrowser, **fields: str) -> None:
    """Sends the form of the page with its other button."""
    browser.send(APPLY, **browser.form(COMPARE) | fields)


def test_export_is_a_file_with_the_chosen_sections(viewer: ConsoleBrowser) -> None:
    answer = viewer.get(f"{SECTION}/export.json", params={"sections": ["clients", "roles"]})
    assert answer.headers["Content-Disposition"] == 'attachment; filename="sso-state.json"'
    assert answer.json().keys() <= {"clients", "roles"}
    assert "users" in viewer.get(f"{SECTION}/export.json").json()
    answer = viewer.get(f"{SECTION}/export.json", params={"sections": "weather"})
    assert (answer.status_code, "sections: expected names" in viewer.problem) == (422, True)


def test_document_is_compared_and_applied(root_browser: ConsoleBrowser, studio: Studio) -> None:
    login = "of-a-document@example.com"
    document = {
        "users": [{"login": login, "nick": "Document", "tags": ["console-state"]}],
        "applications": [{"application_id": 7301, "name": "Console state"}],
        "schemas": {"7301": {"private_data": {"chat": {"kick": {"value": False}}}}},
        "roles": {
            "7301": [
                {
                    "name": "tester",
                    "condition": {"tag": "console-state"},
                    "meta": {"private_data": {"chat": {"kick": {"value": True}}}},
                }
            ]
        },
    }
    text = compare(root_browser, document)
    assert root_browser.page.status_code == 200, root_browser.problem
    assert "user.create" in text
    assert "Nothing has been changed yet" in text
    assert '<span class="new">chat.kick</span>' in text
    assert query(root_browser.server, "SELECT FROM users WHERE login = $1", login) == []
    apply(root_browser)
    assert "has been applied: 3 records created, 1 changed" in root_browser.notice
    assert query(root_browser.server, "SELECT nick FROM users WHERE login = $1", login)[0]["nick"] == "Document"
    assert "Applying it would change nothing" in compare(root_browser, document)


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ("", "Choose a file, or paste the document"),
        ('{"users": [}', "This is not valid JSON (line 1, column 12)"),
        ("[]", "Must be one JSON object"),
        ({"weather": []}, "weather: is unknown"),
        ({"users": [{"login": "ann@example.com", "pasword": "x"}]}, "users[0]"),
    ],
)
def test_page_says_where_a_document_is_wrong(root_browser: ConsoleBrowser, document: Any, error: str) -> None:
    compare(root_browser, document)
    assert (root_browser.page.status_code, root_browser.problem.startswith(error)) == (422, True), root_browser.problem


def test_document_is_applied_by_root_with_proof_only(viewer: ConsoleBrowser, studio: Studio) -> None:
    document = {"users": [{"login": "not-applied@example.com"}]}
    assert "would be created" in compare(viewer, document)
    assert "gains or loses" not in viewer.page.text
    assert f'formaction="{APPLY}"' not in viewer.page.text
    apply(viewer)
    assert (viewer.page.status_code, "can_manage_state is required" in viewer.page.text) == (403, True)
    with console_browser(studio, "can_manage_state") as manager:
        compared = compare(manager, document)
        assert re.search("No one gains or loses|users? (is|are) affected", compared)
        apply(manager, compared=digest(json.dumps(document)))
        assert (manager.page.status_code, "The role root is required" in manager.problem) == (403, True)
    assert query(viewer.server, "SELECT FROM users WHERE login = 'not-applied@example.com'") == []


def test_document_that_was_not_compared_is_not_applied(root_browser: ConsoleBrowser) -> None:
    compare(root_browser, {"users": [{"login": "compared@example.com"}]})
    apply(root_browser, document='{"users": [{"login": "edited-later@example.com"}]}')
    assert (root_browser.page.status_code, "Compare it again" in root_browser.problem) == (409, True)
    assert "edited-later@example.com" in root_browser.page.text
    assert query(root_browser.server, "SELECT FROM users WHERE login = 'edited-later@example.com'") == []


def test_large_document_survives_the_confirmation(studio: Studio) -> None:
    """Larger than other forms may be: 300 kB."""
    document = {"users": [{"login": "of-a-large-document@example.com", "meta": {"text": "long " * 60_000}}]}
    with ConsoleBrowser(studio.server, studio.root) as browser:
        compare(browser, document)
        assert browser.page.status_code == 200, browser.problem
        browser.forget_authentication()
        apply(browser)
        assert "Confirm that it is you" in browser.page.text
        browser.submit(APPLY, current_password=PASSWORD)
        assert "has been applied: 1 records created" in browser.notice


def test_values_of_documents_are_escaped(root_browser: ConsoleBrowser) -> None:
    text = compare(root_browser, {"users": [{"login": "escaped@example.com", "nick": PAYLOAD[:60]}]})
    assert "&lt;script&gt;alert" in text
    assert "<script>alert" not in text
    text = compare(root_browser, f"</textarea>{PAYLOAD}")
    assert "<script>alert" not in text


def test_large_document_shows_how_far_it_is(root_browser: ConsoleBrowser) -> None:
    users = [{"login": f"large-{number}@example.com"} for number in range(400)]
    compare(root_browser, {"users": users})
    apply(root_browser, current_password=PASSWORD)
    page = root_browser.page.text
    steps = re.findall(r"Storing records: ([\d,]+) of 400", page)
    assert all(1 <= int(step) <= 400 for step in steps)
    assert "The document has been applied: 400 records created, 0 changed, 0 as they were." in page
    assert page.rstrip().endswith("</html>")
    found = query(root_browser.server, "SELECT count(*) AS n FROM users WHERE login LIKE 'large-%'")
    assert found[0]["n"] == 400


def test_large_document_with_an_error_changes_nothing_and_says_so(root_browser: ConsoleBrowser) -> None:
    users = [{"login": f"wrong-{number}@example.com"} for number in range(300)]
    text = json.dumps({"users": users, "memberships": [{"project_id": "no_such_project", "users": []}]})
    root_browser.open(SECTION)
    answer = root_browser.send(APPLY, document=text, compared=digest(text), current_password=PASSWORD)
    assert answer.status_code == 200
    assert "Nothing was applied." in answer.text
    assert "memberships[0]" in answer.text
    found = query(root_browser.server, "SELECT count(*) AS n FROM users WHERE login LIKE 'wrong-%'")
    assert found[0]["n"] == 0
