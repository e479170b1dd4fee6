"""Violations: the client gets only the id of a log record; the log and `sso why` have the reason."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson
import pytest

from sso.cli.why import lines
from sso.gsid.rate_limit import MAX_RECORDED_REFUSALS
from tests.kit.browser import Browser, query
from tests.kit.game import Game, Session, outcome, press_continue, public_text, sign, violation, violation_log
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import Server

TOO_MANY = MAX_RECORDED_REFUSALS + 6


def why(server: Server, record: str) -> dict[str, str]:
    shown = server.sso("why", record).stdout.splitlines()
    return {line[:10].strip(): line[10:] for line in shown}


def test_violation_id_is_random_and_finds_the_log_entry(game: Game, other: Game) -> None:
    session = game.register()
    moved = Session(other, session.gsid, session.match, session.location)
    first, second = violation(moved.poll()), violation(moved.poll())
    assert first != second
    assert session.gsid[:8] not in first
    (entry,) = violation_log(game.server, first)
    assert (entry["reason"], entry["expected"], entry["found"]) == ("wrong address", game.address, other.address)
    assert entry["gsid"] == session.gsid
    assert not violation_log(game.server, session.gsid)


def test_log_entry_has_the_failed_check_and_both_values(
    game: Game, other: Game, browser: Browser, server: Server
) -> None:
    plain, keyed, done = game.register(), game.register(public_key=public_text(rsa_key())), game.register()
    press_continue(browser, done)
    assert done.poll().json()["status"] == "OK"
    body = orjson.dumps({"gsid": keyed.gsid})
    moved = Session(other, plain.gsid, plain.match, plain.location)
    for answer, reason, expected, found in (
        (moved.poll(), "wrong address", game.address, other.address),
        (plain.poll({"Location": "wrong"}), "wrong location", "sha256 ", "sha256 "),
        (keyed.poll(), "the session has a key", "a signature", "none"),
        (
            game.send("getGsidResult", body, {"Sign": sign(rsa_key(1), body)}),
            "wrong signature",
            "by key sha256 ",
            "bytes",
        ),
        (keyed.poll(public_key=public_text(rsa_key(1))), "wrong public key", "sha256 ", "sha256 "),
        (keyed.poll(public_key="x"), "unusable public key", "sha256 ", "base64"),
        (plain.poll({"Sign": "x"}), "signature without a registered key", "no key", "a signature"),
        (plain.poll({"Ip": "8.8.8.8"}), "Ip header", game.address, "Ip is not signed"),
        (game.get_gsid({"Ip": "8.8.8.8"}), "Ip header", "", "Ip is not signed"),
        (game.ask("getGsidResult", "x"), "no such session", "", ""),
        (done.poll(), "repeated attempt", "one delivery", "another poll"),
        (game.ask("info", plain.gsid), "info", "SSO_INFO_ALLOW", game.address),
    ):
        (entry,) = violation_log(server, violation(answer))
        assert reason in entry["reason"]
        assert expected in entry["expected"], entry
        assert found in entry["found"], entry
        assert entry["address"] in (game.address, other.address)


def test_why_shows_the_log_entry_without_secrets(game: Game, other: Game, server: Server) -> None:
    session = game.register()
    wrong = "W" * 43
    record = violation(Session(other, session.gsid, session.match, session.location).poll({"Location": wrong}))
    shown = why(server, record)
    assert list(shown) == ["when", "gsid", "from", "reason", "expected", "found"]
    assert (shown["gsid"], shown["from"], shown["reason"]) == (session.gsid, other.address, "wrong location")
    (entry,) = violation_log(server, record)
    assert (shown["expected"], shown["found"]) == (entry["expected"], entry["found"])
    assert shown["expected"] == f"sha256 {hashlib.sha256(session.secret.encode()).hexdigest()[:12]}…"
    assert shown["found"] == f"sha256 {hashlib.sha256(wrong.encode()).hexdigest()[:12]}…"


def test_why_of_an_unknown_id_fails_with_one_line(server: Server) -> None:
    done = server.sso("why", "'; --", check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_why_escapes_control_characters_in_values_of_the_client() -> None:
    sent = "x\nreason    nothing\x1b[2J\u202e"
    values = {"reason": "no such session", "expected": "", "found": sent, "address": "127.0.0.1"}
    shown = dict(lines({"created": "2026-01-31T18:00:00Z", "gsid": sent, **values}))
    assert shown["gsid"] == shown["found"] == r"x\nreason    nothing\x1b[2J\u202e"


@pytest.mark.parametrize("length", [65, 10_000])
def test_record_has_at_most_64_characters_of_the_gsid(game: Game, server: Server, length: int) -> None:
    (entry,) = violation_log(server, violation(game.ask("getGsidResult", "x" * length)))
    assert entry["gsid"] == "x" * 64


def test_log_contains_no_secrets(game: Game, other: Game, browser: Browser, server: Server) -> None:
    session = game.register(factor="a very secret device", with_email="a guessed secret")
    keyed = game.register(public_key=public_text(rsa_key()))
    signature = sign(rsa_key(), orjson.dumps({"gsid": keyed.gsid}))
    wrong, wrong_signature = "W" * 43, sign(rsa_key(1), b"x")
    moved = Session(other, session.gsid, session.match, session.location)
    for headers in (
        {"Location": wrong}, {"Authorization": f"Location {wrong}"}, {"Request-Sign": wrong_signature},
        {"Authorization": f"Sign {wrong_signature}"},
    ):  # fmt: skip
        violation(moved.poll(headers))
    violation(moved.poll(params={"Location": wrong}))
    violation(moved.poll({"Location": session.secret, "Sign": wrong_signature}))
    keyed.close(headers={"Request-Sign": signature})
    press_continue(browser, session)
    data = moved.poll(params={"Location": session.location}).json()
    assert data["status"] == "OK"
    violation(moved.poll({"Location": session.location}))
    logged = server.log()
    for secret in (
        session.secret, keyed.secret, wrong, signature, wrong_signature, data["token"], data["stoken"], data["jwt"],
        "a very secret device", "a guessed secret", browser.cookie(),
    ):  # fmt: skip
        assert secret
        assert secret not in logged


def test_response_is_the_same_for_every_reason(game: Game, other: Game) -> None:
    """Neither the body nor a header shows whether a session exists."""
    session = game.register()
    moved = Session(other, session.gsid, session.match, session.location)
    answers = [moved.poll(), moved.poll({"Location": "x"}), other.ask("getGsidResult", "x"), moved.close("Error")]
    for answer in answers:
        violation(answer)
    names = [sorted(set(answer.headers) - {"x-request-id", "date"}) for answer in answers]
    assert names == [names[0]] * len(names)
    assert len({len(answer.content) for answer in answers}) == 1


@pytest.mark.parametrize("what", ["info", "getGsidResult"])
def test_repeated_violations_of_an_address_share_a_record(game: Game, server: Server, what: str) -> None:
    """With known and unknown gsids, with and without evidence."""
    session = game.register(public_key=public_text(rsa_key()))
    ways: list[tuple[str, dict[str, str]]] = [(session.gsid, {"Sign": "x"}), (session.gsid, {}), ("x", {})]
    records = concurrent_violations(game, [(what, *ways[number % len(ways)]) for number in range(TOO_MANY)])
    records.append(violation(game.ask(what, "x")))
    rows = query(server, "SELECT id, reason, expected FROM game_violations WHERE address = $1", game.address)
    assert len(rows) <= MAX_RECORDED_REFUSALS + 2  # and one shared record per worker
    assert set(records) == {row["id"] for row in rows}
    shared = {row["id"]: row["expected"] for row in rows if row["reason"] == "blocked"}
    assert shared[records[-1]] == "at most 100 refused requests in a minute"
    assert sum(record in shared for record in records) == len(records) - MAX_RECORDED_REFUSALS


def test_repeated_violations_do_not_block_other_clients_at_the_same_address(
    game: Game, browser: Browser, server: Server
) -> None:
    """Many clients may share an address, and one of them may be an attacker."""
    session, keyed = game.register(), game.register(public_key=public_text(rsa_key()))
    records = concurrent_violations(game, [("getGsidResult", "x")] * TOO_MANY)
    assert len(set(records)) <= MAX_RECORDED_REFUSALS + 2
    assert outcome(session.poll())[0] == "RETRY"
    assert outcome(session.poll({"Location": session.secret}))[0] == "RETRY"
    assert outcome(keyed.signed(rsa_key()))[0] == "RETRY"
    violation(keyed.poll())
    press_continue(browser, session)
    assert outcome(session.poll())[0] == "OK"
    assert outcome(game.register().close())[0] == "OK"


def concurrent_violations(game: Game, requests: list[tuple[Any, ...]]) -> list[str]:
    """Sends the requests concurrently and returns the ids of their records."""
    with ThreadPoolExecutor(8) as pool:
        return [violation(answer) for answer in pool.map(lambda arguments: game.ask(*arguments), requests)]
