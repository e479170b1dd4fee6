"""An authorization is answered once: by a code or by a no, and whoever answers again gets a page."""

import httpx
import pytest

from tests.kit.builders import PASSWORD
from tests.kit.oauth import Browser, Site, new_browser, new_site, next_path_of, query_of
from tests.kit.server import Server


@pytest.fixture(scope="module")
def asking(server: Server) -> Site:
    return new_site(server, consent=True)


def assert_finished(answer: httpx.Response) -> None:
    assert answer.status_code == 400
    assert "Location" not in answer.headers
    assert "already finished" in answer.text


@pytest.mark.parametrize("first", ["allow", "deny"])
@pytest.mark.parametrize("second", ["allow", "deny"])
def test_a_second_answer_is_a_page(server: Server, asking: Site, first: str, second: str) -> None:
    browser = new_browser(server).sign_in()
    page = browser.authorize(asking)
    answer = query_of(browser.submit(page, {"decision": first}))
    assert ("code" in answer) == (first == "allow")
    assert_finished(browser.submit(page, {"decision": second}))
    if first == "allow":
        assert asking.redeem(answer["code"]).status_code == 200  # the first one is as good as ever


def test_a_reload_after_signing_in_is_a_page(server: Server, site: Site) -> None:
    browser = new_browser(server)
    sign_in = browser.authorize(site)
    assert "code" in query_of(browser.submit(sign_in, {"login": browser.login, "password": PASSWORD}))
    assert_finished(browser.http.get(next_path_of(sign_in)))


def test_that_somebody_else_signed_in_is_told_once(server: Server, oidc: Site) -> None:
    ann, bob = new_browser(server).sign_in(), new_browser(server)
    sign_in = bob.authorize(oidc, id_token_hint=oidc.tokens(ann)["id_token"])
    entered = bob.submit(sign_in, {"login": bob.login, "password": PASSWORD})
    assert query_of(entered)["error"] == "login_required"
    assert_finished(bob.http.get(next_path_of(sign_in)))


def test_choosing_another_account_is_no_answer(server: Server, asking: Site) -> None:
    browser, other = new_browser(server).sign_in(), new_browser(server)
    page = browser.authorize(asking)
    sign_in = browser.http.get(browser.submit(page, {"decision": "other"}).headers["Location"])
    entered = browser.submit(sign_in, {"login": other.login, "password": PASSWORD})
    consent = browser.http.get(entered.headers["Location"])
    assert "code" in query_of(browser.submit(consent, {"decision": "allow"}))


def test_who_was_signed_out_meanwhile_may_still_answer(server: Server, asking: Site) -> None:
    browser = new_browser(server).sign_in()
    page = browser.authorize(asking)
    browser.submit(browser.http.get("/account"), {}, form=0)  # signs out
    answer = browser.submit(page, {"decision": "allow"})
    assert answer.headers["Location"].startswith("/login?next=")
    back = _sign_in_again(browser, answer)
    assert "code" in query_of(browser.submit(back, {"decision": "allow"}))


def _sign_in_again(browser: Browser, answer: httpx.Response) -> httpx.Response:
    sign_in = browser.http.get(answer.headers["Location"])
    entered = browser.submit(sign_in, {"login": browser.login, "password": PASSWORD})
    return browser.http.get(entered.headers["Location"])
