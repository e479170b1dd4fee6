"""The sections "OAuth clients" and "Game sessions"."""

import html
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from sso.console.clients import recorded_request_pages
from sso.console.clients.quickstarts import FOLDER, FRAMEWORKS
from sso.core.path_ids import path_id
from tests.admin.conftest import Administrator
from tests.console.conftest import ConsoleBrowser, console_browser
from tests.kit.browser import query
from tests.kit.builders import PASSWORD
from tests.kit.game import Game
from tests.kit.row_locks import changed_when_somebody_waits
from tests.kit.server import until
from tests.perm.endpoints.conftest import Studio

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def browser(studio: Studio) -> Iterator[ConsoleBrowser]:
    with console_browser(studio, "can_manage_clients", "can_manage_game_sessions") as browser:
        yield browser


def new_client(browser: ConsoleBrowser, client_id: str, framework: str = "flask", **fields: str) -> str:
    """Creates a client with the wizard. Returns the page with the quickstart."""
    browser.open("/console/clients/new", params={"framework": framework})
    answer = browser.submit("/console/clients/new", client_id=client_id, **fields)
    return html.unescape(answer.text)


def secret_on(page: str) -> str:
    found = re.search(r'id="secret" type="text" value="([^"]+)"', page)
    assert found
    return found[1]


@pytest.mark.parametrize("key", [key for key, framework in FRAMEWORKS.items() if framework.file])
def test_programs_are_those_of_the_examples(key: str) -> None:
    assert (FOLDER / f"{key}.txt").read_text() == (EXAMPLES / FRAMEWORKS[key].example).read_text()


@pytest.mark.parametrize("key", [key for key, framework in FRAMEWORKS.items() if framework.file])
def test_wizard_and_documentation_choose_the_same_signature_of_id_tokens(key: str) -> None:
    page = Path("docs/quickstarts", f"{key}.rst").read_text()
    assert ("--id-alg ES256" in page) == (FRAMEWORKS[key].id_alg == "ES256")


def test_quickstart_names_the_other_files_of_the_program(browser: ConsoleBrowser) -> None:
    assert "also needs manage.py and urls.py" in new_client(browser, "console-django", "django")
    assert "also needs" not in browser.open("/console/clients/console-django/quickstart/flask")


def test_wizard_ends_in_a_quickstart_with_the_values_of_the_client(browser: ConsoleBrowser) -> None:
    assert "What do you build it with?" in browser.open("/console/clients/new")
    page = new_client(browser, "console-shop", name="Shop")
    secret = secret_on(page)
    assert 'client_id="console-shop"' in page
    assert f'ISSUER = "{browser.server.base_url}"' in page
    assert f"export CLIENT_SECRET={secret}" in page
    client = browser.server.client()
    form = {"grant_type": "authorization_code", "code": "x", "redirect_uri": "http://127.0.0.1:5000/callback"}
    with client:
        answer = client.post("/proxy/oauth/token", data=form, auth=("console-shop", secret))
        assert answer.json()["error"] == "invalid_grant"  # the client is authenticated
    assert secret not in browser.open("/console/clients/console-shop")
    row = query(
        browser.server, "SELECT user_id FROM audit WHERE operation = 'client.create' AND target = 'console-shop'"
    )
    assert row[0]["user_id"] == browser.user_id
    assert algorithm_of(browser, "console-shop") == "ES256"  # recommended: the library of Flask verifies it


def algorithm_of(browser: ConsoleBrowser, client_id: str) -> str:
    (row,) = query(browser.server, "SELECT id_alg FROM oauth_clients WHERE client_id = $1", client_id)
    return str(row["id_alg"])


@pytest.mark.parametrize(
    ("framework", "chosen", "stored"),
    [
        ("spring", None, ""),
        ("other", None, ""),
        ("other", "EdDSA", "EdDSA"),
        ("flask", "", ""),
        ("device", None, "ES256"),
    ],
)
def test_wizard_recommends_the_cheapest_signature_that_the_library_verifies(
    browser: ConsoleBrowser, framework: str, chosen: str | None, stored: str
) -> None:
    client_id = f"signed-{framework}-{chosen}"
    new_client(browser, client_id, framework, **({} if chosen is None else {"id_alg": chosen}))
    assert algorithm_of(browser, client_id) == stored


def test_wizard_says_what_is_wrong(browser: ConsoleBrowser) -> None:
    new_client(browser, "not an id")
    assert (browser.page.status_code, "Must " in browser.problem) == (422, True)
    page = new_client(browser, "console-app", "single_page_app")
    assert "CLIENT_SECRET" not in page
    page = new_client(browser, "console-tv", "device")
    assert "client_id=console-tv" in page


def test_other_library_gets_values_to_copy_and_a_checklist(browser: ConsoleBrowser) -> None:
    uris = "https://other.example/cb https://other.example/two"
    page = new_client(browser, "console-other", "other", redirect_uris=uris, id_alg="ES256")
    assert ("3. Copy and run" in page, "3. Give your library these values" in page) == (False, True)
    issuer = browser.server.base_url
    copied = {
        "issuer": issuer,
        "discovery": f"{issuer}/.well-known/openid-configuration",
        "client-id": "console-other",
        "redirect-uri-1": "https://other.example/cb",
        "redirect-uri-2": "https://other.example/two",
        "algorithm": "ES256",
    }
    for field, value in copied.items():
        assert f'id="{field}" type="text" value="{value}"' in page
    assert ("client_secret_basic or client_secret_post" in page, "4. Go through this list" in page) == (True, True)
    secret = secret_on(page)
    again = browser.open("/console/clients/console-other/quickstart/other")
    assert ("4. Go through this list" in again, secret in again) == (True, False)
    page = new_client(browser, "console-phone", "other", public="1")
    assert ('id="secret"' in page, "none (public client)" in page, "The client has no secret." in page) == (
        False,
        True,
        True,
    )
    stored = "SELECT client_id, id_alg, secret_sealed IS NULL AS public FROM oauth_clients WHERE client_id = ANY ($1)"
    rows = query(browser.server, stored, ["console-other", "console-phone"])
    assert sorted(tuple(row.values()) for row in rows) == [
        ("console-other", "ES256", False),
        ("console-phone", "", True),
    ]
    new_client(browser, "console-odd", "other", id_alg="none")
    assert browser.page.status_code == 422
    assert "4. Go through this list" not in new_client(browser, "console-listed")


def test_client_of_the_profile_fapi2_has_an_address_of_keys(browser: ConsoleBrowser) -> None:
    new_client(browser, "console-bank", "fapi2", jwks_uri="http://bank.example/jwks.json")
    assert (browser.page.status_code, "https" in browser.problem) == (422, True)
    page = new_client(browser, "console-bank", "fapi2", jwks_uri="https://bank.example/jwks.json")
    assert ("3. Give your library these values" in page, 'id="secret"' in page) == (True, False)
    page = browser.open("/console/clients/console-bank")
    assert ("FAPI 2.0 Security Profile" in page, "none (it signs with its keys)" in page) == (True, True)
    assert ("quickstart/fapi2" in page, "quickstart/flask" in page) == (True, False)
    browser.submit("/console/clients/console-bank", jwks_uri="https://bank.example/new.json")
    (row,) = query(browser.server, "SELECT profile, jwks_uri FROM oauth_clients WHERE client_id = 'console-bank'")
    assert tuple(row.values()) == ("fapi2", "https://bank.example/new.json")


def test_client_is_edited_disabled_and_deleted(browser: ConsoleBrowser) -> None:
    new_client(browser, "console-edited")
    path = "/console/clients/console-edited"
    browser.open(path)
    assert "saved" in browser.act(path, name="New name", redirect_uris="https://one.example/cb https://two.example/cb")
    assert "https://two.example/cb" in browser.page.text
    assert "disabled" in browser.act(f"{path}/disable")
    assert "again" in browser.act(f"{path}/enable")
    assert "deleted" in browser.delete(f"{path}/delete")
    assert browser.get(path).status_code == 404


def test_edit_of_a_name_keeps_a_redirect_uri_with_a_comma(browser: ConsoleBrowser) -> None:
    uris = ["https://one.example/cb?maps=a,b", "https://two.example/cb"]
    new_client(browser, "console-comma", redirect_uris=" ".join(uris))
    path = "/console/clients/console-comma"
    browser.open(path)
    assert "saved" in browser.act(path, name="Renamed")
    (row,) = query(browser.server, "SELECT name, redirect_uris FROM oauth_clients WHERE client_id = 'console-comma'")
    assert dict(row) == {"name": "Renamed", "redirect_uris": uris}


def test_corrected_form_of_a_client_is_saved(browser: ConsoleBrowser) -> None:
    new_client(browser, "console-corrected", name="Before")
    path = "/console/clients/console-corrected"
    browser.open(path)
    answer = browser.submit(path, name="After", redirect_uris="no address")
    assert (answer.status_code, browser.form(path)["name"]) == (422, "After")
    assert "saved" in browser.act(path, redirect_uris="https://corrected.example/cb")
    assert browser.form(path)["name"] == "After"


def test_edit_that_may_give_tokens_needs_proof(studio: Studio) -> None:
    path, stored = "/console/clients/console-guarded", "SELECT * FROM oauth_clients WHERE client_id = 'console-guarded'"
    with console_browser(studio, "can_manage_clients") as browser:
        new_client(browser, "console-guarded", redirect_uris="https://one.example/cb")
        browser.forget_authentication()
        browser.open(path)
        assert "saved" in browser.act(path, name="Renamed")  # nothing that gives tokens
        before = query(studio.server, stored)
        answer = browser.submit(path, redirect_uris="https://added.example/cb")
        assert (answer.status_code, "Confirm that it is you" in answer.text) == (403, True)
        assert query(studio.server, stored) == before
        assert "saved" in browser.act(path, current_password=PASSWORD)
    assert query(studio.server, stored)[0]["redirect_uris"] == ["https://added.example/cb"]


def test_link_offers_a_redirect_uri_and_stores_nothing(browser: ConsoleBrowser, studio: Studio) -> None:
    new_client(browser, "console-linked", redirect_uris="https://one.example/cb")
    path, stored = "/console/clients/console-linked", "SELECT redirect_uris FROM oauth_clients WHERE client_id = $1"
    text = browser.open(path, params={"add_redirect_uri": "https://two.example/cb"})
    assert "Save it only if this address is yours" in text
    assert browser.form(path)["redirect_uris"].split() == ["https://one.example/cb", "https://two.example/cb"]
    assert query(studio.server, stored, "console-linked")[0]["redirect_uris"] == ["https://one.example/cb"]
    assert "Save it only" not in browser.open(path, params={"add_redirect_uri": "javascript:alert(1)"})


def test_secret_is_rotated_and_shown_once(browser: ConsoleBrowser) -> None:
    first = secret_on(new_client(browser, "console-rotated"))
    path = "/console/clients/console-rotated"
    browser.open(path)
    answer = browser.submit(f"{path}/rotate-secret", days="9999")
    assert (answer.status_code, browser.form(f"{path}/rotate-secret")["days"]) == (422, "9999")
    assert "Must be a number of days from 0 to 3650." in answer.text
    second = secret_on(html.unescape(browser.submit(f"{path}/rotate-secret", days="3").text))
    assert second != first
    assert second not in browser.open(path)
    token = browser.form("/logout")["csrf"]
    assert browser.post(f"{path}/rotate-secret", {"csrf": token, "finish": "1"}).status_code == 303
    assert "<dd>1</dd>" in browser.open(path)


def test_login_of_a_game_is_listed_and_ended(browser: ConsoleBrowser, studio: Studio) -> None:
    with Game(browser.server) as game, console_browser(studio, "can_view_game_sessions") as viewer:
        gsid = game.get_gsid(distr="console store").json()["gsid"]
        filters = {"address": game.address}
        assert gsid in browser.open("/console/game-sessions", params=filters)
        text = viewer.open("/console/game-sessions", params=filters)
        assert ("console store" in text, gsid in text) == (True, False)  # a gsid opens the login page
        assert "ended" in browser.act(f"/console/game-sessions/{gsid}/end")
        # A login that has ended has no button.
        assert f"/{gsid}/end" not in browser.open("/console/game-sessions", params=filters)


def test_later_page_of_logins_updates_itself(browser: ConsoleBrowser, studio: Studio) -> None:
    with Game(browser.server) as game:
        for _ in range(2):
            game.register()
        found = Administrator.of(studio.root).get("/game-sessions", address=game.address, limit=1).json()
    shown = {"address": game.address, "after": found["next"]}
    page = browser.open("/console/game-sessions", params=shown)
    update = re.search(r'id="results" [^>]*hx-get="([^"]+)"', page)
    assert update
    assert dict(parse_qsl(urlsplit(update[1]).query)) == shown


def make_waiting(browser: ConsoleBrowser, client_id: str, registered_by: str = "open", new_id: str = "") -> str:
    """Adds a client as if it had registered itself, as the service here lets none. Returns its path in the console."""
    new_client(browser, client_id)
    query(
        browser.server,
        "UPDATE oauth_clients SET registered_by = $2, client_id = $3, approved = false, disabled = true, consent = true"
        " WHERE client_id = $1",
        client_id,
        registered_by,
        new_id or client_id,
    )
    return f"/console/clients/{path_id(new_id or client_id)}"


def test_waiting_client_is_approved_as_it_was_shown_or_refused(browser: ConsoleBrowser) -> None:
    agent = "https://agent.example.com/client.json"
    one, other = make_waiting(browser, "waits-one"), make_waiting(browser, "waits-two")
    document = make_waiting(browser, "waits-three", "metadata_document", agent)
    listed = browser.open("/console/clients/waiting", params={"search": "waits-"})
    assert ("waits-one" in listed, "waits-two" in listed) == (True, True)
    # It changes itself after the administrator has looked at it.
    changed = "UPDATE oauth_clients SET redirect_uris = '{https://evil.example/}' WHERE client_id = 'waits-one'"
    query(browser.server, changed)
    refused = browser.submit(f"{one}/approve")
    assert refused.status_code == 409
    assert query(browser.server, "SELECT approved FROM oauth_clients WHERE client_id = 'waits-one'")[0][0] is False
    browser.open("/console/clients/waiting")
    assert "approved" in browser.act(f"{one}/approve")
    state = "SELECT approved, disabled FROM oauth_clients WHERE client_id = $1"
    assert tuple(query(browser.server, state, "waits-one")[0]) == (True, False)
    assert "refused" in browser.act(f"{other}/refuse")
    assert not query(browser.server, state, "waits-two")
    assert agent in browser.open(document)
    browser.open("/console/clients/waiting")
    assert "refused" in browser.act(f"{document}/refuse")
    assert tuple(query(browser.server, state, agent)[0]) == (True, True)
    assert browser.delete(f"{document}/delete")
    assert browser.delete(f"{one}/delete")


def test_links_to_a_client_whose_id_is_an_address_open_its_pages(browser: ConsoleBrowser) -> None:
    agent = "https://linked.example.com/client.json"
    path = make_waiting(browser, "linked-agent", "metadata_document", agent)
    listed = browser.open("/console/search", params={"q": agent})
    assert f'href="{path}"' in listed
    page = browser.open(f"{path}/branding")
    assert f'<a href="{path}">' in page
    assert "saved" in browser.act(f"{path}/branding", signin_text="Hello")


@pytest.mark.parametrize("registered_by", ["open", "metadata_document"])
def test_client_that_is_approved_meanwhile_is_not_refused(browser: ConsoleBrowser, registered_by: str) -> None:
    path = make_waiting(browser, f"raced-{registered_by}", registered_by)
    browser.open("/console/clients/waiting")
    form = browser.form(f"{path}/refuse")
    approval = f"UPDATE oauth_clients SET approved = true, disabled = false WHERE client_id = 'raced-{registered_by}'"
    with ThreadPoolExecutor(1) as pool:
        with changed_when_somebody_waits(browser.server, approval):
            answer = pool.submit(browser.post, f"{path}/refuse", form)
        assert (answer.result().status_code, "does not wait for approval" in answer.result().text) == (409, True)
    state = "SELECT approved, disabled FROM oauth_clients WHERE client_id = $1"
    assert tuple(query(browser.server, state, f"raced-{registered_by}")[0]) == (True, False)


def test_registration_token_is_shown_once_and_revoked(browser: ConsoleBrowser) -> None:
    section = "/console/clients/registration-tokens"
    assert "SSO_CLIENT_REGISTRATION" in browser.open(f"{section}/new")
    assert browser.submit(section, uses="0", days="1").status_code == 422
    assert "uses" in browser.page.text
    answer = browser.submit(section, uses="3", days="2")
    found = re.search(r'id="token" type="text" value="([^"]+)"', answer.text)
    assert found
    listed = browser.open(section)
    assert (found[1] in listed, "3 of 3" in listed) == (False, True)
    number = re.search(rf'href="{section}/(\d+)/revoke"', listed)
    assert number
    assert "revoked" in browser.delete(f"{section}/{number[1]}/revoke")
    assert f"{section}/{number[1]}/revoke" not in browser.open(section)


def test_streams_of_a_client_are_shown_paused_enabled_and_removed(browser: ConsoleBrowser, studio: Studio) -> None:
    new_client(browser, "console-streams")
    columns = "stream_id, client_id, method, endpoint_url, events, failing_since, problem"
    values = "'console-s', 'console-streams', 'push', 'https://rp.example/e', '{session-revoked}', now(), 'status 503'"
    query(studio.server, f"INSERT INTO signal_streams ({columns}) VALUES ({values})")
    path = "/console/clients/console-streams"
    text = browser.open(path)
    assert all(part in text for part in ("Signal streams", "https://rp.example/e", "session-revoked", "status 503"))
    status = "SELECT status FROM signal_streams WHERE stream_id = 'console-s'"
    assert "It keeps its events" in browser.act(f"{path}/signal-streams/console-s/pause")
    assert [row["status"] for row in query(studio.server, status)] == ["paused"]
    assert "is delivered now" in browser.act(f"{path}/signal-streams/console-s/enable")
    assert "has been deleted" in browser.act(f"{path}/signal-streams/console-s/delete")
    assert query(studio.server, status) == []
    assert "Signal streams" not in browser.open(path)


def test_requests_of_a_client_are_recorded_and_errors_explained(browser: ConsoleBrowser) -> None:
    new_client(browser, "console-recorded")
    path = "/console/clients/console-recorded/requests"
    assert f'href="{path}"' in browser.open("/console/clients/console-recorded")
    assert "There are no recorded requests." in browser.open(path)
    assert "recorded for an hour" in browser.act(f"{path}/record")
    form = {"grant_type": "refresh_token", "client_id": "console-recorded", "refresh_token": "not-shown"}

    def is_recorded() -> bool:  # each worker begins when it has heard of it
        browser.http.post("/proxy/oauth/token", data=form)
        return "401 invalid_client" in browser.open(path)

    assert until(is_recorded)
    text = browser.page.text
    assert ("not-shown" in text, "(9 characters)" in text) == (False, True)
    assert ("Token request" in text, "Sender not proven" in text, "POST /proxy/oauth/token" in text) == (True,) * 3
    assert 'href="/docs/testing.html#invalid-client"' in text
    codes = "(?m)^({})$".format("|".join(recorded_request_pages.EXPLAINED))
    assert set(re.findall(codes, Path("docs/testing.rst").read_text())) == recorded_request_pages.EXPLAINED
    assert "has ended" in browser.act(f"{path}/stop")
    assert "401 invalid_client" in browser.open(path)
