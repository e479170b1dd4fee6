"""Each package signs in at the real service, with two workers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sdk.contract.packages import PACKAGES, Package
from tests.kit.browser import Browser, query
from tests.kit.builders import PASSWORD
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running
from tests.sdk.program import program

TANKS, FACTOR = 10, "a device"


@pytest.fixture(scope="module", params=PACKAGES, ids=lambda package: package.name)
def package(request: pytest.FixtureRequest) -> Package:
    package: Package = request.param
    if not package.is_built:
        pytest.skip(f"the package {package.name} is not built: run scripts/sdk")
    return package


@pytest.fixture(scope="module")
def server(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if not any(package.is_built for package in PACKAGES):
        pytest.skip("no package is built: run scripts/sdk")
    dsn = postgres_server.fresh()
    settings = QUICK | {"SSO_DATABASE_URL": dsn, "SSO_WORKERS": "2", "SSO_GUESTS": "on"}
    role = {"name": "member", "meta": {"private_data": {"chat": {"write": {"value": True}}}}, "default": True}
    with running(tmp_path_factory.mktemp("sdk"), **settings) as server:
        server.apply(
            {
                "users": [{"user_id": "4711", "login": "ann@example.com", "nick": "Ann", "password": PASSWORD}],
                "applications": [{"application_id": TANKS, "name": "Tanks"}],
                "roles": {str(TANKS): [role]},
            }
        )
        yield server
    postgres_server.drop(dsn)


def confirm(server: Server, url: str, words: str) -> None:
    """Opens the link in a browser, compares the words, and signs in."""
    with Browser(server) as browser:
        page = browser.get(url.removeprefix(server.base_url))
        assert words in page.text
        answer = browser.submit("/login", login="ann@example.com", password=PASSWORD)
        browser.follow(answer) if answer.is_redirect else None


def test_player_signs_in_comes_back_and_asks(package: Package, server: Server, tmp_path: Path) -> None:
    with program(package, server, tmp_path) as game:
        game.send(do="sign_in", factor=FACTOR, socket=True, sign="signed_requests" not in package.without)
        link = game.event("show_link")
        confirm(server, link["url"], link["words"])
        assert game.event("signed_in")["user_id"] == "4711"
        for rule, allow in (("chat.write", True), ("chat.kick", False)):
            game.send(do="check", application_id=TANKS, rule=rule)
            assert game.event("checked")["allow"] is allow
    with program(package, server, tmp_path) as game:
        game.send(do="resume", factor=FACTOR)
        assert game.event("signed_in")["nick"] == "Ann"
        assert len(query(server, "SELECT 1 FROM sign_ins WHERE user_id = '4711' AND NOT ended")) == 1
        game.send(do="renew")
        game.event("renewed")
        game.send(do="sign_out")
        game.event("signed_out")
        assert query(server, "SELECT 1 FROM sign_ins WHERE user_id = '4711' AND NOT ended") == []
        game.send(do="resume", factor=FACTOR)
        assert game.event("failed")["reason"] == "sign_in_needed"


def test_guest_comes_back(package: Package, server: Server, tmp_path: Path) -> None:
    if "guest" in package.without:
        pytest.skip(f"the platform of {package.name} has no signatures, and so no guests")
    with program(package, server, tmp_path) as game:
        game.send(do="guest", factor=FACTOR)
        guest = game.event("signed_in")
        assert guest["guest"] is True
    with program(package, server, tmp_path) as game:
        game.send(do="guest", factor=FACTOR)
        assert game.event("signed_in")["user_id"] == guest["user_id"]


def test_player_gives_up(package: Package, server: Server, tmp_path: Path) -> None:
    with program(package, server, tmp_path) as game:
        game.send(do="sign_in", factor=FACTOR, cancel_after="show_link")
        link = game.event("show_link")
        assert game.event("failed")["reason"] == "cancelled"
    with Browser(server) as browser:
        assert link["words"] not in browser.get(link["url"].removeprefix(server.base_url)).text
