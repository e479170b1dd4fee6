"""The limit of requests to the console: for each administrator, pages and actions together, exports apart."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sso.core.ids import digest
from tests.console.conftest import ConsoleBrowser
from tests.kit.browser import query
from tests.kit.server import Server, running
from tests.perm.endpoints.conftest import Studio

LIMIT = 8


@pytest.fixture(scope="module")
def limited(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {**server.settings, "SSO_RATE_ADMIN": str(LIMIT), "SSO_BIND": "127.0.0.1:0", "SSO_WORKERS": "1"}
    folder: Path = tmp_path_factory.mktemp("limited")
    with running(folder, **settings) as running_server:
        yield running_server


@pytest.fixture
def browser(studio: Studio, limited: Server) -> Iterator[ConsoleBrowser]:
    user = studio.user()
    studio.give_rules(user, "can_view_audit", "can_view_users")
    with ConsoleBrowser(limited, user) as signed_in:
        yield signed_in


def stop_the_minute(browser: ConsoleBrowser, name: str) -> None:
    """The minute of the counter does not end while the test runs, however slow it is."""
    change = "UPDATE throttle SET since = now() + interval '10 minutes', expires = 'infinity' WHERE key = $1"
    query(browser.server, change, digest(f"{name}:user {browser.user_id}"))


def use_up_the_limit(browser: ConsoleBrowser) -> None:
    browser.open("/console/users")
    stop_the_minute(browser, "admin")
    for _ in range(LIMIT - 1):
        browser.open("/console/users")


def assert_refused(answer: httpx.Response) -> None:
    assert answer.status_code == 429, answer.request.url
    assert int(answer.headers["Retry-After"]) > 0
    assert "You have sent too many requests within a minute" in answer.text
    assert 'role="alert"' in answer.text


def test_pages_beyond_the_limit_are_refused_with_a_page_that_says_how_long_to_wait(browser: ConsoleBrowser) -> None:
    use_up_the_limit(browser)
    for path in ("/console", "/console/users?search=a", "/console/audit/1/undo", "/console/audit/export.csv"):
        answer = browser.get(path)
        assert_refused(answer)
        assert "<h1>Too many requests</h1>" in answer.text
    assert_refused(browser.send("/console/audit/1/undo"))


def test_htmx_gets_the_sentence_without_the_frame(browser: ConsoleBrowser) -> None:
    use_up_the_limit(browser)
    answer = browser.get("/console/users?search=a", headers={"HX-Request": "true"})
    assert_refused(answer)
    assert "<html" not in answer.text


def test_limit_of_an_administrator_is_not_that_of_another(
    browser: ConsoleBrowser, studio: Studio, limited: Server
) -> None:
    use_up_the_limit(browser)
    assert_refused(browser.get("/console"))
    other = studio.user()
    studio.give_rules(other, "can_view_users")
    with ConsoleBrowser(limited, other) as second:
        second.open("/console")


def test_exports_have_a_lower_limit(browser: ConsoleBrowser) -> None:
    browser.get("/console/users/export.csv")
    stop_the_minute(browser, "export")
    assert_refused(browser.get("/console/users/export.csv"))
    browser.open("/console/users")
