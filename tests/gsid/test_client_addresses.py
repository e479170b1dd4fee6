"""The client's address behind proxies and behind servers that act for a client.

The tests have their own server, which trusts all peers as proxies, holds polls for the default time and allows few new
sessions.
"""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.kit import postgres
from tests.kit.browser import Browser, fresh_browser, new_user, query
from tests.kit.builders import PASSWORD
from tests.kit.game import Game, Session, outcome, sign_in_on_game_page, violation, violation_log
from tests.kit.server import QUICK, Server, running, until
from tests.perm.endpoints.tokens import ip_headers

KEY = {10: "k" * 40, 11: "m" * 40}
MONITOR = "10.9.9.9"
MOST = 5
HOLD_S = 100  # a poll that is answered by its end, and not at once, fails the test


@pytest.fixture(scope="module")
def proxied(postgres_server: postgres.Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = QUICK | {
        "SSO_DATABASE_URL": postgres_server.fresh(),
        "SSO_WORKERS": "2",
        "SSO_TRUSTED_PROXIES": "127.0.0.0/8,10.1.0.0/16",
        "SSO_INFO_ALLOW": f"{MONITOR}/32",
        "SSO_RATE_GETGSID": str(MOST),
        "SSO_GSID_HOLD_S": str(HOLD_S),
    }
    with running(tmp_path_factory.mktemp("proxied"), **settings) as server:
        server.apply(
            {
                "applications": [
                    {"application_id": 10, "name": "Tanks"},
                    {"application_id": 11, "name": "Tanks Studio"},
                ],
                "access_keys": [{"application_id": app, "hash": secret} for app, secret in KEY.items()],
            }
        )
        yield server


@pytest.fixture
def game(proxied: Server) -> Iterator[Game]:
    with Game(proxied) as game:
        yield game


def near(address: str) -> dict[str, str]:
    """Returns the header with which the proxy forwards a client at this address."""
    return {"X-Forwarded-For": address}


def access_key(server: Server, application_id: int) -> dict[str, Any]:
    found = query(server, "SELECT id FROM access_keys WHERE application_id = $1", application_id)[0]
    return {"id": found["id"], "hash": KEY[application_id]}


def closed(game: Game, address: str, **fields: Any) -> Session:
    """Registers a session from this address and closes it, so that a poll is answered at once."""
    session = game.register(near(address), **fields)
    assert session.close(headers={"Location": session.secret}).status_code == 200
    return session


def test_rightmost_untrusted_hop_is_the_client(game: Game) -> None:
    session = closed(game, "198.51.100.1, 203.0.113.1")
    assert session.row("address")["address"] == "203.0.113.1"
    for forwarded in ("203.0.113.1", "8.8.8.8, 203.0.113.1", "203.0.113.1, 10.1.2.3, 127.9.9.9", "::ffff:203.0.113.1"):
        assert outcome(session.poll(near(forwarded))) == ("ERROR", "session closed"), forwarded
    for forwarded in ("203.0.113.1, 198.51.100.1", "203.0.113.2", "127.0.0.1", "::1"):
        violation(session.poll(near(forwarded)))


@pytest.mark.parametrize("forwarded", ["a", "203.0.113.2, a", "203.0.113.2,", ",", "1" * 5000, "1.2.3", "unknown"])
def test_invalid_forwarded_address_is_a_violation_at_all_endpoints(game: Game, forwarded: str) -> None:
    session = closed(game, "203.0.113.2")
    for answer in (
        session.poll(near(forwarded)),
        session.close("Error", near(forwarded)),
        session.poll(near(forwarded) | {"Location": session.secret}),
        game.get_gsid(near(forwarded)),
        game.ask("info", session.gsid, near(forwarded)),
    ):
        assert violation_log(game.server, violation(answer))[0]["reason"] == "unknown address"
    query(game.server, "DELETE FROM throttle")


def test_thousand_hops_are_a_violation(game: Game) -> None:
    violation(game.get_gsid(near(", ".join(["10.1.0.1"] * 1000))))


def test_only_the_configured_forwarding_header_is_read(game: Game) -> None:
    session = closed(game, "203.0.113.3")
    for header in ({"Forwarded": "for=203.0.113.3"}, {"X-Real-IP": "203.0.113.3"}, {"Client-IP": "203.0.113.3"}):
        violation(session.poll(header))


def test_spellings_of_one_address_are_equal(game: Game) -> None:
    session = closed(game, "2001:DB8:0:0::7")
    assert session.row("address")["address"] == "2001:db8::7"
    assert outcome(session.poll(near("[2001:db8::0007]:443")))[0] == "ERROR"
    violation(session.poll(near("2001:db8::8")))


def test_info_is_allowed_by_the_forwarded_address(game: Game) -> None:
    session = game.register(near("203.0.113.4"))
    assert game.ask("info", session.gsid, near(MONITOR)).json()["session"]["ip"] == "203.0.113.4"
    violation(game.ask("info", session.gsid))
    violation(game.ask("info", session.gsid, near(f"{MONITOR}, 203.0.113.4")))


def test_signed_ip_header_is_the_client_address(game: Game) -> None:
    key = access_key(game.server, 10)
    session = game.register(near("203.0.113.5") | ip_headers(key, "192.0.2.5"), app_id=10, factor="x", fixed_ip="1")
    assert tuple(session.row("address, fixed_ips")) == ("192.0.2.5", ["192.0.2.5/32"])
    assert session.close(headers=near("192.0.2.5")).status_code == 200
    signed = ip_headers(key, "192.0.2.5")
    for header in (signed, {"Authorization": f"Ip {signed['Ip']}", "Signature": signed["Signature"]}):
        assert outcome(session.poll(near("203.0.113.6") | header)) == ("ERROR", "session closed")
    violation(session.poll(near("203.0.113.6") | ip_headers(key, "192.0.2.6")))


def test_signed_ip_header_counts_only_for_the_application_of_the_key(game: Game) -> None:
    other = ip_headers(access_key(game.server, 11), "192.0.2.7")
    own = ip_headers(access_key(game.server, 10), "192.0.2.7")
    for fields in ({}, {"app_id": 10}):
        violation(game.get_gsid(near("203.0.113.7") | other, **fields))
    violation(game.get_gsid(near("203.0.113.7") | own))
    session = game.register(near("203.0.113.7") | own, app_id=10)
    violation(session.poll(near("203.0.113.7") | other))
    violation(session.poll(near("192.0.2.7") | other))
    assert session.close(headers=near("203.0.113.7") | own).status_code == 200
    for_game = game.register(near("203.0.113.7") | own, app_id=11, gapp_id=10)
    assert for_game.close(headers=near("203.0.113.7") | other).status_code == 200
    query(game.server, "DELETE FROM throttle")


def test_invalid_or_old_signature_of_an_ip_header_is_a_violation(game: Game) -> None:
    key = access_key(game.server, 10)
    session = closed(game, "203.0.113.8", app_id=10)
    for seconds, accepted in ((-290, True), (290, True), (-310, False), (310, False)):
        answer = session.poll(near("8.8.8.8") | ip_headers(key, "203.0.113.8", time.time() + seconds))
        assert answer.status_code == (200 if accepted else 403)
    good = ip_headers(key, "203.0.113.8")
    for signature in ("", "x", good["Signature"][:-1] + "x", good["Signature"].replace(key["id"], "0" * 16)):
        violation(session.poll(near("8.8.8.8") | good | {"Signature": signature}))
        violation(session.poll(near("203.0.113.8") | good | {"Signature": signature}))  # beside a valid one
    violation(session.poll(near("8.8.8.8") | good | {"Ip": "203.0.113.9"}))
    violation(session.poll(near("8.8.8.8") | good | {"Authorization": "Ip 203.0.113.9"}))


def test_signed_ip_header_counts_neither_for_info_nor_for_rate_limits(game: Game) -> None:
    key = access_key(game.server, 10)
    session = game.register(near("203.0.113.10"), app_id=10)
    violation(game.ask("info", session.gsid, near("203.0.113.10") | ip_headers(key, MONITOR)))
    for number in range(MOST - 1):
        game.register(near("203.0.113.10") | ip_headers(key, f"192.0.2.{number}"), app_id=10)
    last = game.get_gsid(near("203.0.113.10") | ip_headers(key, "192.0.2.99"), app_id=10)
    assert last.status_code == 429


def test_new_sessions_per_address_and_minute_are_limited(game: Game, proxied: Server) -> None:
    """All workers share the limit; each connection may reach another worker."""

    def ask(address: str) -> Any:
        with Game(proxied) as fresh:
            return fresh.get_gsid(near(address))

    assert [ask("203.0.113.11").status_code for _ in range(MOST + 2)] == [200] * MOST + [429] * 2
    answer = ask("203.0.113.11")
    assert set(answer.json()) == {"status", "error"}
    assert answer.json()["status"] == "ERROR"
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    assert "Location" not in answer.headers
    made = query(proxied, "SELECT count(*) FROM game_sessions WHERE address = '203.0.113.11'")
    assert made[0]["count"] == MOST
    assert ask("203.0.113.12").status_code == 200
    query(proxied, "UPDATE throttle SET since = since - interval '61 s'")
    assert ask("203.0.113.11").status_code == 200


def test_ipv6_network_counts_as_one_client(game: Game) -> None:
    statuses = [game.get_gsid(near(f"2001:db8:1::{number}")).status_code for number in range(MOST + 1)]
    assert statuses == [200] * MOST + [429]
    assert game.get_gsid(near("2001:db8:2::1")).status_code == 200


@contextmanager
def held(session: Session, address: str) -> Iterator[list[tuple[str, str]]]:
    """Holds a poll inside the with block; its outcome is in the list afterwards."""
    answers: list[tuple[str, str]] = []
    poll = threading.Thread(target=lambda: answers.append(outcome(session.poll(near(address)))))
    poll.start()
    assert until(lambda: session.row("poll")["poll"] == 1)
    yield answers
    poll.join(HOLD_S / 2)
    assert not poll.is_alive()


def test_login_answers_the_held_poll(game: Game, proxied: Server) -> None:
    session = game.register(near("203.0.113.13"))
    with Browser(proxied, headers=near("203.0.113.13")) as browser:
        with held(session, "203.0.113.13") as answers:
            assert sign_in_on_game_page(browser, session, new_user(proxied), PASSWORD).status_code == 303
        assert answers == [("OK", "")]
        assert "You are signed in" in browser.get(session.decision).text


def test_close_answers_the_held_poll(game: Game, proxied: Server) -> None:
    session = game.register(near("203.0.113.17"))
    with held(session, "203.0.113.17") as answers, Game(proxied) as second:
        second.ask("closeGsid", session.gsid, near("203.0.113.17"), status="Error")
    assert answers == [("ERROR", "session closed")]


def test_denial_answers_the_held_poll(game: Game, proxied: Server) -> None:
    session = game.register(near("203.0.113.18"))
    with fresh_browser(proxied, new_user(proxied), headers=near("203.0.113.18")) as browser:
        browser.follow(browser.get(session.page))
        with held(session, "203.0.113.18") as answers:
            browser.submit(f"{session.decision}/deny")
    assert answers == [("ERROR", "session denied")]


def test_poll_is_held_no_longer_than_the_session_lives(game: Game) -> None:
    session = game.register(near("203.0.113.19"))
    session.change("created = now() - interval '1198 s', ends = now() + interval '2 s'")
    began = time.monotonic()
    assert session.poll(near("203.0.113.19")).json()["status"] in ("RETRY", "ERROR")
    assert time.monotonic() - began < HOLD_S / 2


@pytest.mark.parametrize(
    ("started", "near_by", "elsewhere"),
    [
        ("203.0.113.14", "203.0.113.14", "203.0.113.15"),
        ("2001:db8:3::1", "2001:db8:3::99", "2001:db8:4::1"),  # devices of one household differ in the last 64 bits
        ("203.0.113.16", "::ffff:203.0.113.16", "2001:db8::1"),
    ],
)
def test_page_says_whether_the_game_is_on_the_same_network(
    game: Game, proxied: Server, started: str, near_by: str, elsewhere: str
) -> None:
    session = game.register(near(started))
    for forwarded, is_near in {near_by: True, elsewhere: False}.items():
        with Browser(proxied, headers=near(forwarded)) as browser:
            browser.get(session.page)
            assert ("same network as this browser" in browser.page.text) == is_near
            assert ("on a different network" in browser.page.text) != is_near
            assert started in browser.page.text


def test_socket_of_a_client_without_an_address_closes_with_4403(proxied: Server) -> None:
    host, port = proxied.base_url.removeprefix("http://").split(":")
    head = "GET /ws/gameSession/refresh/x HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(f"{head}{key}X-Forwarded-For: a\r\n\r\n".encode())
        forwarded = b""
        while struct.pack("!H", 4403) not in forwarded and (piece := connection.recv(4096)):
            forwarded += piece
    assert b" 101 " in forwarded
    assert struct.pack("!H", 4403) in forwarded
