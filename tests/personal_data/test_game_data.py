"""Data that games have: exports ask for it, and an erasure has it removed. A stand-in game answers on a real socket."""

import io
import itertools
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from sso.doctor.checks import data_removals
from sso.personal_data.games.model import MAX_ANSWER, TOPIC
from tests.admin.conftest import Administrator, administrator
from tests.kit.browser import Browser, fresh_browser, query, user_id_of
from tests.kit.builders import PASSWORD
from tests.kit.server import Server, until
from tests.kit.webhook_receiver import WebhookReceiver, webhook_receiver
from tests.perm.endpoints.conftest import Studio
from tests.personal_data.conftest import unique_user

pytestmark = pytest.mark.two_workers

_numbers = itertools.count(800_400)
STATES = "SELECT state, problem, tries, accepted FROM data_requests WHERE subject_id = $1 AND kind = 'remove'"


@pytest.fixture
def game() -> Iterator[WebhookReceiver]:
    with webhook_receiver() as game:
        yield game


def new_application(server: Server, **gdpr: Any) -> int:
    application_id = next(_numbers)
    record = {"application_id": application_id, "name": f"Game <{application_id}>", "settings": {"gdpr": gdpr}}
    server.apply({"applications": [record]})
    return application_id


def sign_in(server: Server, login: str, application_id: int) -> None:
    with server.client() as client:
        body = {"login": login, "password": PASSWORD, "app_id": application_id}
        assert client.post("/proxy/api/login", json=body).status_code == 200


def data_secret(server: Server, application_id: int) -> str:
    return server.sso("app", "data-secret", str(application_id)).stdout.split()[-1]


def request_export(browser: Browser) -> None:
    browser.open_account()
    answer = browser.submit("/account/export")
    assert answer.status_code == 303, answer.text
    assert "We are asking your games" in browser.follow(answer).text


def wait_until_ready(browser: Browser) -> str:
    assert until(lambda: "Ask again" in browser.open_account().text, 60)
    return browser.page.text


def download(browser: Browser) -> dict[str, Any]:
    answer = browser.submit("/account/export")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/zip"), answer.text
    assert int(answer.headers["Content-Length"]) == len(answer.content)
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


def test_export_contains_the_answers_of_games_and_names_those_that_fail(server: Server, game: WebhookReceiver) -> None:
    characters = b'{"characters": [{"name": "<b>Anna</b>"}, "Bob\\u202e", {"level": 3}, 7]}'
    failing = {
        "/away": (404, b"", "status 404"),
        "/elsewhere": (302, b"", "status 302"),
        "/large": (200, b'"' + b"x" * (MAX_ANSWER - 1) + b'"', f"the answer is unusable: more than {MAX_ANSWER} bytes"),
        "/text": (200, b"no JSON", "the answer is not JSON"),
        "/nested": (200, b"[" * 100_000, "the answer is not JSON"),
        "/bytes": (200, b"\xff", "the answer is not UTF-8"),
    }
    game.headers = {"Location": game.address("/target")}
    first = new_application(
        server,
        data_sources=[{"fetch": game.address("/data", answer=b'{"gold": 7}'), "remove": game.address("/remove")}],
        char_sources=[game.address("/characters", answer=characters)],
    )
    second = new_application(
        server, data_sources=[{"fetch": game.address(path, *answer[:2])} for path, answer in failing.items()]
    )
    third = new_application(server, data_sources=[{"fetch": game.address("/later", 202)}])
    other = new_application(server, data_sources=[{"fetch": game.address("/unused", answer=b"{}")}])
    login = unique_user(server)
    for application_id in (first, second, third):
        sign_in(server, login, application_id)
    with fresh_browser(server, login) as browser:
        request_export(browser)
        (later,) = until(lambda: game.requests_to("/later"), 60)
        assert later.event.keys() == {"user_id", "request_id", "kind", "callback_url"}
        assert later.is_signed_with(data_secret(server, third))
        assert not later.is_signed_with(data_secret(server, first))
        assert later.event["user_id"] == user_id_of(server, login)
        without = browser.submit("/account/export", games="without")
        assert without.json()["account"]["login"] == login
        call_link(server, later.event["callback_url"])
        page = wait_until_ready(browser)
        assert "&lt;b&gt;Anna&lt;/b&gt;</bdi>, <bdi>Bob</bdi>" in page
        assert f"Game &lt;{second}&gt;" in page
        files = download(browser)
    assert files[f"games/{first}/data-1.json"] == {"gold": 7}
    assert files[f"games/{first}/characters-1.json"] == json.loads(characters)
    assert files[f"games/{third}/data-1.json"] == {"late": True}
    assert files["account-data.json"]["account"]["login"] == login
    index = files["games.json"]
    assert {entry["application_id"] for entry in index} == {first, second, third}
    assert [entry["problem"] for entry in index if entry["state"] == "failed"] == [one[2] for one in failing.values()]
    assert not game.requests_to("/target") + game.requests_to("/unused") + game.requests_to("/remove")
    assert other not in {entry["application_id"] for entry in files["account-data.json"]["game_data"]["requests"]}


def call_link(server: Server, url: str) -> None:
    """The game sends what it was asked for: once, and nothing but JSON of a bounded size."""
    with httpx.Client(verify=False) as client:
        assert client.post(url[:-1] + ("A" if url[-1] != "A" else "B"), content=b"{}").status_code == 404
        assert client.post(url, content=b'"' + b"x" * MAX_ANSWER).status_code == 413
        for wrong in (b"", b"{", b"[" * 100_000, b"\xff", b'"\0"'):
            assert client.post(url, content=wrong).status_code == 400, wrong[:10]
        assert client.post(url, json={"late": True}).json() == {"status": "OK"}
        assert client.post(url, json={"late": False}).status_code == 404
    assert url.rpartition("/")[2] not in server.log()


def test_exports_are_limited_and_links_expire(server: Server, game: WebhookReceiver) -> None:
    application_id = new_application(server, data_sources=[{"fetch": game.address("/later", 202)}])
    login = unique_user(server)
    sign_in(server, login, application_id)
    user_id = user_id_of(server, login)
    with fresh_browser(server, login) as browser:
        browser.open_account()
        for number in range(1, 4):
            assert browser.submit("/account/export", games="again").status_code == 303
            assert until(lambda: waiting(server, user_id), 60)
            assert browser.submit("/account/export", games="again").status_code == 303  # the first one goes on
            expire(server, user_id)
            assert "Not complete" in wait_until_ready(browser)
            assert len(game.requests_to("/later")) == number
            link = game.requests_to("/later")[-1].event["callback_url"]
            assert httpx.post(link, json={}, verify=False).status_code == 404
        assert download(browser)["games.json"][0]["problem"] == "the game has not sent the data within 3 days"
        browser.open_account()
        answer = browser.submit("/account/export", games="again")
        assert (answer.status_code, int(answer.headers["Retry-After"]) > 3600) == (429, True)
        query(server, "UPDATE data_requests SET expires = now() WHERE user_id = $1", user_id)
        assert "Not complete" not in browser.open_account().text


def waiting(server: Server, user_id: str) -> list[Any]:
    return query(server, "SELECT FROM data_requests WHERE user_id = $1 AND state = 'waiting'", user_id)


def expire(server: Server, user_id: str) -> None:
    """Lets the time pass in which the game may call its link, or must accept a removal."""
    query(server, "UPDATE data_requests SET deadline = now(), next_try = now() WHERE user_id = $1", user_id)
    wake_senders(server)


def wake_senders(server: Server) -> None:
    """They look for requests that are due only every 20 seconds if nothing wakes them."""
    query(server, "SELECT pg_notify('sso', $1)", TOPIC)


def erase(server: Server, login: str) -> str:
    user_id = user_id_of(server, login)
    server.sso("user", "delete", login, "--now", "--yes")
    return user_id


def removals(server: Server, user_id: str, state: str) -> list[Any]:
    return [row for row in query(server, STATES, user_id) if row["state"] == state]


def audit_of(server: Server, user_id: str) -> list[tuple[str, Any]]:
    rows = query(server, "SELECT operation, after FROM audit WHERE target = $1 ORDER BY id", user_id)
    return [(row["operation"], json.loads(row["after"])) for row in rows if "data" in row["operation"]]


def finding(server: Server) -> str:
    lines = server.sso("doctor", check=False).stdout.splitlines()
    return next(line for line in lines if "data removals" in line)


def test_erasure_asks_games_until_each_address_has_accepted(server: Server, game: WebhookReceiver) -> None:
    """Also over a restart of the service, with two workers. Each address accepts each user once."""
    sources = [{"remove": game.address("/first", 204)}, {"remove": game.address("/second", 503)}]
    application_id = new_application(server, data_sources=sources)
    logins = [unique_user(server) for _ in range(2)]
    for login in logins:
        sign_in(server, login, application_id)
    users = [erase(server, login) for login in logins]
    for user_id in users:
        assert until(lambda: removals(server, user_id, "pending")[0]["problem"] == "status 503", 60)  # noqa: B023
    server.stop()
    server.start()
    game.answers["/second"] = 200, b"not read"
    query(server, "UPDATE data_requests SET next_try = now() WHERE application_id = $1", application_id)
    wake_senders(server)
    for user_id in users:
        assert until(lambda: removals(server, user_id, "done"), 60)  # noqa: B023
        assert len([one for one in game.requests_to("/first") if one.event["user_id"] == user_id]) == 1
        assert len([one for one in game.requests_to("/second") if one.event["user_id"] == user_id]) >= 2
        ((operation, after),) = audit_of(server, user_id)
        assert (operation, after["tries"] >= 2) == ("user.data_removed", True)
    assert all(one.is_signed_with(data_secret(server, application_id)) for one in game.deliveries)
    assert {tuple(one.event) for one in game.deliveries} == {("user_id", "request_id", "kind")}


def test_removal_is_given_up_after_30_days_and_can_be_sent_again(
    server: Server, game: WebhookReceiver, studio: Studio, root: Administrator
) -> None:
    application_id = new_application(server, data_sources=[{"remove": game.address("/remove", 500)}])
    login = unique_user(server)
    sign_in(server, login, application_id)
    user_id = erase(server, login)
    assert until(lambda: removals(server, user_id, "pending")[0]["problem"] == "status 500", 60)
    assert str(application_id) not in data_removals(server.settings["SSO_DATABASE_URL"]).detail
    expire(server, user_id)
    assert until(lambda: removals(server, user_id, "failed"), 60)
    ((operation, after),) = audit_of(server, user_id)
    assert (operation, after["problem"], after["days"]) == ("user.data_removal_failed", "status 500", 30)
    assert f"1 of application {application_id} (status 500)" in finding(server)
    # The application gets another address. An administrator sends the request there.
    sources = [{"remove": game.address("/corrected", 200)}]
    record = {"application_id": application_id, "settings": {"gdpr": {"data_sources": sources}}}
    server.apply({"applications": [record]})
    (listed,) = root.data("/data-requests", user_id=user_id, state="failed", kind="remove")
    assert (listed["application_id"], listed["problem"], listed["next_try"]) == (application_id, "status 500", None)
    path = f"/data-requests/{listed['id']}/retry"
    viewer = administrator(studio, "can_view_users")
    assert viewer.data("/data-requests", application_id=application_id) == [listed]
    assert viewer.request("POST", path).status_code == 403
    send_again_in_console(server, application_id, path)
    assert until(lambda: removals(server, user_id, "done"), 60)
    assert str(application_id) not in data_removals(server.settings["SSO_DATABASE_URL"]).detail
    assert root.request("POST", path).status_code == 409
    for wrong in ("x", "0", "99999999999999999999", "-1"):
        assert root.request("POST", f"/data-requests/{wrong}/retry").status_code == 404, wrong
    assert root.get("/data-requests", state="open").status_code == 400
    assert root.get("/data-requests", after="x").status_code == 400


def send_again_in_console(server: Server, application_id: int, path: str) -> None:
    login = unique_user(server)
    server.apply({"permissions": [{"user_id": login, "application_id": 1, "data": {"roles": ["root"]}}]})
    with fresh_browser(server, login) as browser:
        filters = {"state": "failed", "application_id": str(application_id)}
        assert "status 500" in browser.get("/console/data-requests", params=filters).text
        answer = browser.submit(f"/console{path}")
        assert "is being sent again" in browser.follow(answer).text


def test_addresses_of_sources_are_checked_when_they_are_saved(root: Administrator) -> None:
    application_id = root.request("POST", "/applications", json={"name": "Sources"}).json()["data"]["application_id"]
    urls = [f"https://{host}/" for host in ("10.1.2.3", "[fd00::1]", "169.254.169.254", "user:pass@game.example.com")]
    urls += ["http://game.example.com/", "ftp://game.example.com/", "https://a.example.com/#x"]
    for url in urls:
        for gdpr, field in (
            ({"char_sources": ["https://a.example.com/", url]}, "char_sources[1]"),
            ({"data_sources": [{"fetch": url}]}, "data_sources[0].fetch"),
            ({"data_sources": [{"fetch": "https://a.example.com/", "remove": url}]}, "data_sources[0].remove"),
        ):
            answer = root.request("PATCH", f"/applications/{application_id}", json={"settings": {"gdpr": gdpr}})
            assert (answer.status_code, field in answer.text) == (400, True), (url, answer.text)
    assert root.data(f"/applications/{application_id}")["settings"] == {}
