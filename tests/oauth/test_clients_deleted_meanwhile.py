"""A client that is deleted during a request counts as unknown to it."""

from collections.abc import Callable

import httpx
import pytest

from tests.kit.browser import query
from tests.kit.deleted_meanwhile import answer_while_deleting
from tests.kit.device import begin, new_device_site
from tests.kit.oauth import PAR, Site, error_of, new_browser, new_site
from tests.kit.server import Server


def deletion_of(site: Site) -> str:
    return f"DELETE FROM oauth_clients WHERE client_id = '{site.client_id}'"


def push(site: Site) -> httpx.Response:
    return site.http.post(PAR, data=site.query(), headers=site.basic())


@pytest.mark.parametrize(
    ("new", "statement", "send"),
    [(new_device_site, "INTO game_sessions", begin), (new_site, "INTO oauth_pushed_requests", push)],
)
def test_client_that_is_deleted_meanwhile_is_invalid(
    server: Server, new: Callable[..., Site], statement: str, send: Callable[[Site], httpx.Response]
) -> None:
    site = new(server)
    if send is push:
        server.apply({"clients": [{"client_id": site.client_id, "profile": "oidc"}]})
    assert send(site).status_code in (200, 201)
    answer = answer_while_deleting(server, deletion_of(site), statement, lambda: send(site))
    assert error_of(answer) == (401, "invalid_client")


def test_consent_to_a_client_that_is_deleted_meanwhile_is_not_saved(server: Server) -> None:
    site, browser = new_site(server, consent=True), new_browser(server).sign_in()
    question = browser.authorize(site)
    answer = answer_while_deleting(
        server, deletion_of(site), "INTO oauth_consents", lambda: browser.submit(question, {"decision": "allow"})
    )
    assert answer.status_code == 303
    assert browser.http.get(answer.headers["Location"]).status_code < 500
    assert query(server, "SELECT FROM oauth_consents WHERE client_id = $1", site.client_id) == []
