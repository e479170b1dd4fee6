"""The section "Identity providers"."""

import itertools
import json
from collections.abc import Iterator

import pytest

from tests.console.conftest import ConsoleBrowser, console_browser
from tests.kit.browser import query
from tests.kit.builders import PASSWORD
from tests.kit.console_pages import PAYLOAD
from tests.kit.server import until
from tests.perm.endpoints.conftest import Studio

SECTION = "/console/identity-providers"
OF_KIND = "SELECT provider_id FROM identity_providers WHERE kind = $1"
STORED = "SELECT * FROM identity_providers WHERE provider_id = $1"
_numbers = itertools.count(1)


@pytest.fixture
def provider_id(root_browser: ConsoleBrowser) -> Iterator[str]:
    """A provider that is added with the form, and removed after the test."""
    name = f"console-{next(_numbers)}"
    root_browser.open(f"{SECTION}/new", params={"preset": "discord"})
    notice = root_browser.act(f"{SECTION}/new", id=name, client_id="studio", client_secret="the first secret")
    assert "callback address" in notice
    yield name
    query(root_browser.server, "DELETE FROM identity_providers WHERE provider_id = $1", name)


@pytest.fixture(scope="module")
def clerk(studio: Studio) -> Iterator[ConsoleBrowser]:
    with console_browser(studio, "can_manage_clients") as browser:
        yield browser


def test_form_begins_with_the_values_of_a_known_provider(root_browser: ConsoleBrowser, provider_id: str) -> None:
    row = query(root_browser.server, STORED, provider_id)[0]
    assert (row["kind"], row["client_id"], row["scopes"]) == ("oauth2", "studio", ["identify", "email"])
    assert json.loads(row["claims"]) == {"subject": "id", "name": "username", "email_verified": "verified"}
    assert "Which provider?" in root_browser.open(f"{SECTION}/new")
    text = root_browser.open(SECTION)
    assert f"{root_browser.server.base_url}/login/upstream/{provider_id}/callback" in text


@pytest.mark.parametrize(
    ("preset", "fields", "label"),
    [
        ("steam_ticket", {"client_id": "480", "client_secret": "key", "ticket_identity": "sso"}, "Web API key"),
        ("google_play", {"client_id": "1.apps.googleusercontent.com", "client_secret": "secret"}, "Client secret"),
        ("game_center", {"client_id": "com.example.game", "max_age": "60"}, "Bundle id"),
        ("oidc_ticket", {"id": "epic", "client_id": "xyz", "issuer": "https://id.example"}, "Audience"),
    ],
)
def test_provider_for_tickets_is_added_and_edited(
    root_browser: ConsoleBrowser, preset: str, fields: dict[str, str], label: str
) -> None:
    text = root_browser.open(f"{SECTION}/new", params={"preset": preset})
    assert label in text
    assert ('name="position"' in text, 'name="trusted_email"' in text) == (False, False)
    root_browser.act(f"{SECTION}/new", **fields, create_users="1")
    [provider_id] = [row["provider_id"] for row in query(root_browser.server, OF_KIND, preset)]
    path = f"{SECTION}/{provider_id}"
    text = root_browser.open(path)
    assert "POST /proxy/api/ticket" in text
    assert "Callback address" not in text
    root_browser.act(path, name="My game")
    row = query(root_browser.server, STORED, provider_id)[0]
    assert (row["name"], row["create_users"], row["client_id"]) == ("My game", True, fields["client_id"])
    assert "none: for tickets of games" in root_browser.open(SECTION)
    query(root_browser.server, "DELETE FROM identity_providers WHERE provider_id = $1", provider_id)


def test_provider_is_edited_and_its_secret_is_never_shown(root_browser: ConsoleBrowser, provider_id: str) -> None:
    path = f"{SECTION}/{provider_id}"
    before = query(root_browser.server, STORED, provider_id)[0]
    text = root_browser.open(path)
    notice = root_browser.act(path, name="Chat", scopes="identify", claims="subject=id\nname=login", trusted_email="1")
    assert notice == "The changes have been saved."
    after = query(root_browser.server, STORED, provider_id)[0]
    assert (after["name"], after["scopes"], after["trusted_email"]) == ("Chat", ["identify"], True)
    assert json.loads(after["claims"]) == {"subject": "id", "name": "login"}
    assert after["secret_sealed"] == before["secret_sealed"]  # an empty field keeps it
    root_browser.open(path)
    root_browser.act(path, client_secret="the second secret")
    assert query(root_browser.server, STORED, provider_id)[0]["secret_sealed"] != before["secret_sealed"]
    for page in (text, root_browser.open(path), root_browser.open("/console/audit", params={"target": provider_id})):
        assert "the first secret" not in page
        assert "the second secret" not in page


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"id": "Not An Id"}, "Must be 1 to 32 characters"),
        ({"token_url": "ftp://x"}, "Must be an address"),
        ({"client_id": ""}, "This is required"),
        ({"claims": "login"}, "Each line must be NAME=MEMBER"),
        ({"claims": "subject=a\nsubject=b"}, "Subject must be given once"),
        ({"position": "first"}, "Must be an integer"),
    ],
)
def test_form_says_which_field_is_wrong(root_browser: ConsoleBrowser, fields: dict[str, str], error: str) -> None:
    root_browser.open(f"{SECTION}/new", params={"preset": "discord"})
    known = {"id": "console-refused", "client_id": "studio", "name": "Kept name", "client_secret": "not shown"}
    answer = root_browser.submit(f"{SECTION}/new", **known | fields)
    assert (answer.status_code, root_browser.problem.startswith(error)) == (422, True), root_browser.problem
    assert ("Kept name" in answer.text, "not shown" in answer.text) == (True, False)
    assert query(root_browser.server, STORED, "console-refused") == []


def test_disabled_provider_has_no_button_and_signs_nobody_in(root_browser: ConsoleBrowser, provider_id: str) -> None:
    path, button = f"{SECTION}/{provider_id}", f"/login/upstream/{provider_id}"
    with root_browser.server.client() as visitor:
        until(lambda: button in visitor.get("/login").text)
        root_browser.open(path)
        assert "Nobody can sign in" in root_browser.act(f"{path}/disable")
        until(lambda: button not in visitor.get("/login").text)
        assert visitor.get(button).status_code == 404
        assert visitor.get(f"{button}/callback").status_code == 404
        assert "sign in with the provider again" in root_browser.act(f"{path}/enable")
        until(lambda: button in visitor.get("/login").text)
        assert visitor.get(button).status_code == 303
        assert "deleted" in root_browser.delete(f"{path}/delete")
        assert root_browser.get(path).status_code == 404
        assert visitor.get(button).status_code == 404


def test_without_root_a_provider_is_renamed_and_disabled_only(clerk: ConsoleBrowser, provider_id: str) -> None:
    path = f"{SECTION}/{provider_id}"
    text = clerk.open(path)
    assert ('name="token_url"' in text, 'name="client_id"' in text) == (False, False)
    assert clerk.act(path, name="Renamed") == "The changes have been saved."
    answer = clerk.submit(path, token_url="https://evil.example/")
    assert (answer.status_code, "root is required" in clerk.problem) == (403, True)
    assert "disabled" in clerk.act(f"{path}/disable")
    answer = clerk.send(f"{path}/enable")
    assert (answer.status_code, "root is required" in answer.text) == (403, True)
    row = query(clerk.server, STORED, provider_id)[0]
    assert (row["name"], row["disabled"]) == ("Renamed", True)
    clerk.open(f"{SECTION}/new", params={"preset": "steam"})
    answer = clerk.submit(f"{SECTION}/new", id="console-clerk")
    assert (answer.status_code, "root is required" in clerk.problem) == (403, True)


def test_edit_that_changes_who_signs_in_needs_proof(studio: Studio, provider_id: str) -> None:
    with console_browser(studio, "can_manage_clients") as browser:
        path = f"{SECTION}/{provider_id}"
        browser.open(path)
        browser.forget_authentication()
        assert browser.act(path, position="4") == "The changes have been saved."
        before = query(studio.server, STORED, provider_id)
        answer = browser.submit(path, client_secret="a new secret")
        assert (answer.status_code, "Confirm that it is you" in answer.text) == (403, True)
        assert query(studio.server, STORED, provider_id) == before
        assert browser.act(path, current_password=PASSWORD) == "The changes have been saved."
    assert query(studio.server, STORED, provider_id)[0]["secret_sealed"] != before[0]["secret_sealed"]


def test_edit_of_a_provider_that_was_changed_meanwhile_is_refused(
    root_browser: ConsoleBrowser, provider_id: str
) -> None:
    path = f"{SECTION}/{provider_id}"
    root_browser.open(path)
    query(root_browser.server, "UPDATE identity_providers SET name = 'Other' WHERE provider_id = $1", provider_id)
    answer = root_browser.submit(path, name="Mine")
    assert (answer.status_code, "in the meantime" in root_browser.problem) == (409, True)
    assert query(root_browser.server, STORED, provider_id)[0]["name"] == "Other"


def test_values_of_providers_are_escaped(root_browser: ConsoleBrowser, provider_id: str) -> None:
    path = f"{SECTION}/{provider_id}"
    root_browser.open(path)
    root_browser.act(path, name=PAYLOAD)
    for page in (path, SECTION):
        text = root_browser.get(page).text
        assert ("<script>alert" in text, "<img src=x" in text) == (False, False), page
