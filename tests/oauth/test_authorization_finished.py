"""A pending authorization is finished once, by a code or by an error; later attempts get a page."""

import httpx
import orjson
import pytest

from tests.kit.builders import PASSWORD
from tests.kit.oauth import Browser, Site, new_browser, new_site, next_path_of, query_of
from tests.kit.server import Server


@pytest.fixture(scope="module")
def asking(server: Server) -> Site:
    return new_site(server, consent=True)


def assert_finished(response: httpx.Response) -> None:
    assert response.status_code == 400
    assert "Location" not in response.headers
    assert "already finished" in response.text


@pytest.mark.parametrize("first", ["allow", "deny"])
@pytest.mark.parametrize("second", ["allow", "deny"])
def test_second_decision_shows_the_finished_page(server: Server, asking: Site, first: str, second: str) -> None:
    browser = new_browser(server).sign_in()
    page = browser.authorize(asking)
    response = query_of(browser.submit(page, {"decision": first}))
    assert ("code" in response) == (first == "allow")
    assert_finished(browser.submit(page, {"decision": second}))
    if first == "allow":
        assert asking.redeem(response["code"]).status_code == 200  # the code stays valid


def test_reload_after_sign_in_shows_the_finished_page(server: Server, site: Site) -> None:
    browser = new_browser(server)
    sign_in = browser.authorize(site)
    assert "code" in query_of(browser.submit(sign_in, {"login": browser.login, "password": PASSWORD}))
    assert_finished(browser.http.get(next_path_of(sign_in)))


def test_sign_in_of_another_user_is_reported_to_the_client_once(server: Server, oidc: Site) -> None:
    ann, bob = new_browser(server).sign_in(), new_browser(server)
    sign_in = bob.authorize(oidc, id_token_hint=oidc.tokens(ann)["id_token"])
    signed_in = bob.submit(sign_in, {"login": bob.login, "password": PASSWORD})
    assert query_of(signed_in)["error"] == "login_required"
    assert_finished(bob.http.get(next_path_of(sign_in)))


def test_choosing_another_account_does_not_finish_the_authorization(server: Server, asking: Site) -> None:
    browser, other = new_browser(server).sign_in(), new_browser(server)
    page = browser.authorize(asking)
    sign_in = browser.http.get(browser.submit(page, {"decision": "other"}).headers["Location"])
    signed_in = browser.submit(sign_in, {"login": other.login, "password": PASSWORD})
    consent = browser.http.get(signed_in.headers["Location"])
    assert "code" in query_of(browser.submit(consent, {"decision": "allow"}))


@pytest.mark.parametrize("parameter", ["id_token_hint", "claims"])
def test_another_account_than_the_client_requires_is_an_error(server: Server, oidc: Site, parameter: str) -> None:
    browser, other = new_browser(server).sign_in(), new_browser(server)
    id_token = oidc.tokens(browser)["id_token"]
    claims = orjson.dumps({"id_token": {"sub": {"value": oidc.claims(id_token)["sub"]}}}).decode()
    value = {"id_token_hint": id_token, "claims": claims}[parameter]
    page = browser.authorize(oidc, prompt="select_account", **{parameter: value})
    sign_in = browser.http.get(browser.submit(page, {"decision": "other"}).headers["Location"])
    signed_in = browser.submit(sign_in, {"login": other.login, "password": PASSWORD})
    assert query_of(signed_in)["error"] == "login_required"


def test_user_signed_out_meanwhile_can_sign_in_and_decide(server: Server, asking: Site) -> None:
    browser = new_browser(server).sign_in()
    page = browser.authorize(asking)
    browser.submit(browser.http.get("/account"), {}, form=0)  # signs out
    response = browser.submit(page, {"decision": "allow"})
    assert response.headers["Location"].startswith("/login?next=")
    back = _sign_in_again(browser, response)
    assert "code" in query_of(browser.submit(back, {"decision": "allow"}))


def _sign_in_again(browser: Browser, response: httpx.Response) -> httpx.Response:
    sign_in = browser.http.get(response.headers["Location"])
    signed_in = browser.submit(sign_in, {"login": browser.login, "password": PASSWORD})
    return browser.http.get(signed_in.headers["Location"])
