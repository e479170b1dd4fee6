"""The sections of the admin console about the service itself, in Chromium: one test for each task."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.kit.browser import new_user, query
from tests.kit.browser_pages import look, open_console, window
from tests.kit.long_tests import takes_long
from tests.kit.server import Server
from tests.kit.webhook_receiver import WebhookReceiver, webhook_receiver

__all__ = ["window"]
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def administrator(server: Server) -> str:
    login = new_user(server, nick="Service Administrator")
    server.apply({"permissions": [{"user_id": login, "application_id": 1, "data": {"roles": ["root"]}}]})
    return login


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with webhook_receiver() as receiver:
        yield receiver


def query_in_thread(server: Server, sql: str, *values: str) -> list[Any]:
    """The thread of the browser has a running event loop, in which `query` cannot run."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(query, server, sql, *values).result()


@takes_long
def test_identity_provider_is_added_edited_and_deleted(page: Page, server: Server, administrator: str) -> None:
    open_console(page, server, administrator)
    page.get_by_role("link", name="Identity providers").first.click()
    page.get_by_role("link", name="Add provider").click()
    page.get_by_role("link", name="Discord").click()
    page.get_by_label("Id", exact=True).fill("browser-made")
    page.get_by_label("Client id").fill("5678")
    page.get_by_label("Client secret").fill("secret of Discord")
    page.get_by_label("Position").fill("3")
    look(page, "new-provider")
    page.get_by_role("button", name="Add provider").click()
    expect(page.get_by_role("status")).to_contain_text("callback address")
    expect(page.get_by_label("Callback address")).to_have_value(
        f"{server.base_url}/login/upstream/browser-made/callback"
    )
    page.get_by_label("Claims").fill("login")
    page.get_by_role("button", name="Save changes").click()
    expect(page.locator(".field .wrong")).to_contain_text("Each line must be NAME=MEMBER")
    expect(page.get_by_label("Claims")).to_be_focused()
    look(page, "provider")
    page.get_by_label("Claims").fill("subject=id")
    page.get_by_role("button", name="Save changes").click()
    page.get_by_role("button", name="Disable provider").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Disabled")
    page.get_by_role("navigation", name="Breadcrumbs").get_by_role("link").first.click()
    page.get_by_role("link", name="Discord").click()
    page.get_by_role("link", name="Delete provider").click()
    page.get_by_role("button", name="Delete provider").click()
    expect(page.get_by_role("status").first).to_contain_text("deleted")


@takes_long
def test_signing_key_is_rotated(page: Page, server: Server, administrator: str) -> None:
    open_console(page, server, administrator)
    page.get_by_role("link", name="Signing keys").first.click()
    count = page.locator("tbody tr").count()
    page.get_by_label("New key").select_option("side ES256")
    page.get_by_role("button", name="Create the new key").click()
    expect(page.get_by_role("status")).to_contain_text("signs in a few seconds")
    expect(page.locator("tbody tr")).to_have_count(count + 1)
    look(page, "signing-keys")


@takes_long
def test_webhook_is_created_and_a_failed_event_is_sent_again(
    page: Page, server: Server, administrator: str, receiver: WebhookReceiver
) -> None:
    open_console(page, server, administrator)
    page.get_by_role("link", name="Webhooks").first.click()
    page.get_by_role("link", name="Add webhook").click()
    page.get_by_label("Address").fill(receiver.url)
    page.get_by_label("Events").fill("keys")
    page.get_by_role("button", name="Create webhook").click()
    expect(page.get_by_label("Secret of the signatures")).not_to_be_empty()
    webhook_id = query_in_thread(server, "SELECT webhook_id FROM webhooks WHERE url = $1", receiver.url)[0][0]
    failure = """INSERT INTO webhook_failures (webhook_id, position, at, type, user_id, data, tries, problem, expires)
        VALUES ($1, 1, now(), 'user_disabled', '7200001', '{}', 9, 'status 500', now() + interval '1 day')"""
    query_in_thread(server, failure, webhook_id)
    page.goto(f"{server.base_url}/console/webhooks/{webhook_id}")
    look(page, "webhook")
    page.get_by_role("button", name="Send again").first.click()
    expect(page.get_by_role("status")).to_contain_text("sent again")
    receiver.wait_for("7200001", 1)
    page.get_by_role("link", name="Delete webhook").click()
    page.get_by_role("button", name="Delete webhook").click()
    expect(page.get_by_role("status").first).to_contain_text("deleted")


def test_document_is_chosen_compared_and_applied(
    page: Page, server: Server, administrator: str, tmp_path: Path
) -> None:
    document = {
        "users": [{"login": "browser.document@example.com", "tags": ["browser-document"]}],
        "applications": [{"application_id": 7210, "name": "Documented game"}],
        "schemas": {"7210": {"private_data": {"chat": {"mute": {"value": False}}}}},
        "roles": {
            "7210": [
                {
                    "name": "muter",
                    "condition": {"tag": "browser-document"},
                    "meta": {"private_data": {"chat": {"mute": {"value": True}}}},
                }
            ]
        },
    }
    file = tmp_path / "state.json"
    file.write_text(json.dumps(document))
    open_console(page, server, administrator)
    page.get_by_role("link", name="State").first.click()
    page.get_by_label("File").set_input_files(file)
    expect(page.get_by_role("textbox", name="Document")).to_have_value(file.read_text())
    page.get_by_role("button", name="Compare").click()
    # Users of other tests may gain something, too.
    expect(page.locator("#impact .new").get_by_text("chat.mute", exact=True)).to_be_visible()
    look(page, "state-compared")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("status").first).to_contain_text("3 records created", timeout=60_000)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    exported = json.loads(download.value.path().read_text())
    assert "browser.document@example.com" in [user["login"] for user in exported["users"]]


@takes_long
def test_connection_is_tested_and_a_deleted_provider_is_restored(
    page: Page, server: Server, administrator: str
) -> None:
    open_console(page, server, administrator)
    page.goto(f"{server.base_url}/console/identity-providers/new?preset=oidc")
    page.get_by_label("Id", exact=True).fill("restored-idp")
    page.get_by_label("Issuer").fill(server.base_url)  # this service is an OpenID provider itself
    page.get_by_label("Client id").fill("unknown-client")
    page.get_by_label("Client secret").fill("secret of nobody")
    page.get_by_role("button", name="Add provider").click()
    page.get_by_role("button", name="Test connection").click()
    expect(page.get_by_role("alert")).to_contain_text("Client id and Client secret")
    look(page, "provider-test")
    page.get_by_role("link", name="Delete provider").click()
    page.get_by_role("button", name="Delete provider").click()
    page.goto(f"{server.base_url}/console/audit?target=restored-idp&operation=identity_provider.delete")
    page.get_by_role("link", name="identity_provider.delete").click()
    page.get_by_role("link", name="Undo this change").click()
    expect(page.get_by_role("main")).to_contain_text("is the same as before")
    look(page, "undo-deletion")
    page.get_by_role("button", name="Undo this change").click()
    expect(page.get_by_role("status")).to_contain_text("undone")
    page.goto(f"{server.base_url}/console/audit?target=restored-idp&operation=identity_provider.create")
    page.get_by_role("link", name="identity_provider.create").first.click()
    expect(page.get_by_role("main")).to_contain_text("Why there is no undo")
    look(page, "no-undo")


@takes_long
def test_large_document_shows_its_progress(page: Page, server: Server, administrator: str) -> None:
    open_console(page, server, administrator)
    page.goto(f"{server.base_url}/console/state")
    users = [{"login": f"progress-{number}@example.com"} for number in range(300)]
    page.get_by_role("textbox", name="Document").fill(json.dumps({"users": users}))
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("status")).to_contain_text("300 records created")
    expect(page.get_by_role("progressbar")).to_be_hidden()
    look(page, "state-applied")
