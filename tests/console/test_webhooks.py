"""The section "Webhooks": events that are delivered, and those that are not."""

import re
from collections.abc import Iterator

import pytest

from sso.console.webhook_pages import ALL_TEXTS, MAX_SHOWN
from sso.webhooks.event_filter import EVENT_NAMES
from tests.console.conftest import ConsoleBrowser, console_browser
from tests.kit.browser import new_user, query, user_id_of
from tests.kit.console_pages import PAYLOAD
from tests.kit.server import until
from tests.kit.webhook_receiver import WebhookReceiver, webhook_receiver
from tests.perm.endpoints.conftest import Studio

SECTION = "/console/webhooks"


@pytest.fixture(scope="module")
def browser(studio: Studio) -> Iterator[ConsoleBrowser]:
    with console_browser(studio, "can_manage_webhooks", "can_manage_users") as browser:
        yield browser


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with webhook_receiver() as receiver:
        yield receiver


@pytest.fixture
def webhook(browser: ConsoleBrowser, receiver: WebhookReceiver) -> Iterator[str]:
    """The page of a webhook for events of users, which is deleted after the test."""
    browser.open(f"{SECTION}/new")
    answer = browser.submit(SECTION, url=receiver.url, events="users")
    assert answer.status_code == 200, browser.problem
    webhook_id = query(browser.server, "SELECT webhook_id FROM webhooks WHERE url = $1", receiver.url)[0][0]
    yield f"{SECTION}/{webhook_id}"
    query(browser.server, "DELETE FROM webhooks WHERE webhook_id = $1", webhook_id)


def disable_user(browser: ConsoleBrowser) -> str:
    login = new_user(browser.server)
    user_id = user_id_of(browser.server, login)
    browser.open(f"/console/users/{user_id}")
    browser.act(f"/console/users/{user_id}/disable")
    return user_id


def test_generated_secret_is_shown_once_and_signs_the_events(
    browser: ConsoleBrowser, receiver: WebhookReceiver, webhook: str
) -> None:
    found = re.search(r'id="new-secret" type="text" value="([^"]+)"', browser.page.text)
    assert found
    assert found[1] not in browser.open(webhook)
    receiver.wait_for(disable_user(browser), 1)
    assert all(delivery.is_signed_with(found[1]) for delivery in receiver.deliveries)
    assert receiver.url in browser.open(SECTION)


def test_webhook_is_edited_disabled_and_deleted(browser: ConsoleBrowser, webhook: str) -> None:
    stored = "SELECT events, disabled, secret_sealed FROM webhooks WHERE webhook_id = $1"
    webhook_id = webhook.rpartition("/")[2]
    sealed = query(browser.server, stored, webhook_id)[0]["secret_sealed"]
    browser.open(webhook)
    assert browser.act(webhook, events="users keys") == "The changes have been saved."
    assert tuple(query(browser.server, stored, webhook_id)[0]) == (["users", "keys"], False, sealed)
    answer = browser.submit(webhook, events="weather")
    assert (answer.status_code, "[0]: must be one of" in browser.problem) == (422, True), browser.problem
    assert 'value="weather"' in answer.text
    assert "no events" in browser.act(f"{webhook}/disable")
    assert "from now on" in browser.act(f"{webhook}/enable")
    assert "deleted" in browser.delete(f"{webhook}/delete")
    assert browser.get(webhook).status_code == 404


def test_refused_webhook_names_the_field_and_keeps_what_was_typed(browser: ConsoleBrowser) -> None:
    browser.open(f"{SECTION}/new")
    answer = browser.submit(SECTION, url="ftp://tools.example/hook", events="users", secret="not shown again")
    assert (answer.status_code, browser.problem.startswith("Must ")) == (422, True)
    assert ("ftp://tools.example/hook" in answer.text, "not shown again" in answer.text) == (True, False)


def test_failed_events_are_sent_again(browser: ConsoleBrowser, receiver: WebhookReceiver, webhook: str) -> None:
    """Events that the receiver refuses for long are in the list; then they are sent again and leave it."""
    webhook_id = webhook.rpartition("/")[2]
    assert "can be sent again" in browser.open(webhook)
    failure = """INSERT INTO webhook_failures (webhook_id, position, at, type, user_id, data, tries, problem, expires)
        VALUES ($1, $2, now(), 'user_disabled', $3, '{}', 9, $4, now() + interval '1 day')"""
    for number in (1, 2):
        query(browser.server, failure, webhook_id, number, f"99{number}", f"status 500 {PAYLOAD}")
    assert "The events that could not be delivered, and could be sent again." in browser.open(f"{webhook}/delete")
    text = browser.open(webhook)
    assert ("status 500" in text, '"user_id":"991"' in text) == (True, True)
    assert "<img src=x" not in browser.page.text
    one = query(browser.server, "SELECT id FROM webhook_failures WHERE webhook_id = $1 ORDER BY id", webhook_id)[0][
        "id"
    ]
    assert browser.send(f"{webhook}/retry", id=str(one)).status_code == 303
    receiver.wait_for("991", 1)
    assert receiver.events_of("992") == []
    assert browser.send(f"{webhook}/retry").status_code == 303
    receiver.wait_for("992", 1)
    until(lambda: "can be sent again" in browser.open(webhook))


def test_page_of_a_webhook_shows_the_beginning_of_a_long_event(browser: ConsoleBrowser, webhook: str) -> None:
    failure = """INSERT INTO webhook_failures (webhook_id, position, at, type, data, expires) SELECT
        $1, 1, now(), 'user_banned', jsonb_build_object('reason', repeat('x', 9000)), now() + interval '1 day'"""
    query(browser.server, failure, webhook.rpartition("/")[2])
    shown = max(map(len, re.findall("x+", browser.open(webhook))))
    assert 1000 < shown < MAX_SHOWN < 9000


def test_forms_say_what_each_event_is(browser: ConsoleBrowser, webhook: str) -> None:
    assert ALL_TEXTS.keys() == set(EVENT_NAMES)
    for path in (f"{SECTION}/new", webhook):
        page = browser.open(path)
        for name, text in ALL_TEXTS.items():
            assert f"<code>{name}</code></dt><dd>{text}" in page, (path, name)
