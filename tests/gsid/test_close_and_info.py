"""closeGsid and info."""

from typing import Any

import pytest

from tests.kit.browser import Browser
from tests.kit.game import Game, Session, outcome, press_continue, public_text, violation
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import Server


@pytest.fixture(scope="module")
def local(server: Server) -> Any:
    """A game at an address that may use the info endpoint."""
    with Game(server, "127.0.0.1") as game:
        yield game


def info(local: Game, session: Session) -> dict[str, Any]:
    answer = local.ask("info", session.gsid)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"status", "session"}
    assert answer.json()["status"] == "OK"
    found: dict[str, Any] = answer.json()["session"]
    return found


def test_info_has_exactly_the_specified_fields(game: Game, local: Game) -> None:
    session = game.register(distr="steam", factor="device é", app_id=10, gapp_id=11)
    found = info(local, session)
    assert found.pop("created") == session.row("floor(extract(epoch FROM created)) AS made")["made"]
    assert found == {
        "distr": "steam",
        "factor": "device é",
        "app_id": 10,
        "gapp_id": 11,
        "ip": game.address,
        "last_seen": 0,
        "state": "",
    }
    assert all(type(found[name]) is int for name in ("app_id", "gapp_id", "last_seen"))


def test_info_of_a_session_without_applications_has_0(game: Game, local: Game) -> None:
    found = info(local, game.register())
    assert (found["app_id"], found["gapp_id"], found["distr"], found["factor"]) == (0, 0, "", "")


def test_info_contains_no_user_data(game: Game, local: Game, browser: Browser, ann: str) -> None:
    session = game.register()
    press_continue(browser, session)
    session.poll()
    text = local.ask("info", session.gsid).text
    assert not [word for word in ("1001", ann, "Ann", "token", "jwt") if word in text]


def test_info_changes_nothing(game: Game, local: Game) -> None:
    session = game.register()
    before = dict(session.row())
    info(local, session)
    assert dict(session.row()) == before


def test_info_from_another_address_is_a_violation(game: Game, local: Game) -> None:
    session = game.register()
    for headers in (
        {},
        {"X-Forwarded-For": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
        {"X-Real-IP": "127.0.0.1"},
        {"Ip": "127.0.0.1"},
        {"Authorization": "Ip 127.0.0.1"},
        {"Location": session.secret},
    ):
        violation(game.ask("info", session.gsid, headers))


def test_info_of_an_expired_session_is_available_until_the_retention_ends(game: Game, local: Game) -> None:
    session = game.register()
    session.change("ends = now() - interval '9 min'")
    assert info(local, session)["state"] == ""
    session.change("ends = now() - interval '11 min'")
    violation(local.ask("info", session.gsid))


@pytest.mark.parametrize("status", ["Success", "Error"])
def test_close_sets_the_state_and_ends_the_session(game: Game, local: Game, browser: Browser, status: str) -> None:
    session = game.register()
    answer = session.close(status)
    assert (answer.status_code, answer.json()) == (200, {"status": "OK", "gsid": session.gsid})
    assert info(local, session)["state"] == status
    assert outcome(session.poll()) == ("ERROR", "session closed")
    assert browser.get(session.page).status_code == 410
    assert browser.get(session.decision).status_code == 410


def test_each_accepted_close_sets_the_state(game: Game, local: Game) -> None:
    session = game.register()
    for status in ("Success", "Error", "Success"):
        assert session.close(status).status_code == 200
        assert info(local, session)["state"] == status


@pytest.mark.parametrize("status", ["success", "SUCCESS", "", "OK", "Success ", None, 1, True, ["Success"], {}])
def test_close_with_an_unknown_status_is_400_and_changes_nothing(game: Game, status: Any) -> None:
    session = game.register()
    answer = session.close(status)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("status: must be ")
    assert session.status == "pending"


def test_close_without_a_status_is_400(game: Game) -> None:
    answer = game.ask("closeGsid", game.register().gsid)
    assert (answer.status_code, answer.json()["error"]) == (400, "status: is required")


def test_close_without_valid_evidence_is_a_violation_and_changes_nothing(game: Game, other: Game) -> None:
    session = game.register()
    moved = Session(other, session.gsid, session.match, session.location)
    violation(moved.close())
    violation(moved.close(headers={"Location": "x"}))
    assert (session.status, session.row("state")["state"]) == ("pending", "")
    with_key = game.register(public_key=public_text(rsa_key()))
    violation(with_key.close())
    assert with_key.signed(rsa_key(), "closeGsid", status="Success").status_code == 200


def test_close_after_the_confirmation_withdraws_the_login(game: Game, browser: Browser) -> None:
    session = game.register()
    press_continue(browser, session)
    session.close("Success")
    assert outcome(session.poll()) == ("ERROR", "session closed")


def test_close_after_the_delivery_does_not_make_the_login_available_again(
    game: Game, browser: Browser, local: Game
) -> None:
    session = game.register()
    press_continue(browser, session)
    assert outcome(session.poll())[0] == "OK"
    for status in ("Success", "Error"):
        assert session.close(status).status_code == 200
        assert info(local, session)["state"] == status
        violation(session.poll())


@pytest.mark.parametrize("status", ["pending", "confirmed"])
def test_close_of_an_expired_session_answers_session_expired(game: Game, local: Game, status: str) -> None:
    session = game.register()
    session.change(f"ends = now() - interval '1 min', status = '{status}'")
    assert outcome(session.close()) == ("ERROR", "session expired")
    assert info(local, session)["state"] == ""
    assert session.status == status
    session.change("ends = now() - interval '11 min'")
    violation(session.close())


def test_close_of_an_expired_session_of_another_client_is_a_violation(game: Game, other: Game) -> None:
    session = game.register()
    session.change("ends = now() - interval '1 min'")
    violation(Session(other, session.gsid, session.match, session.location).close())


def test_close_after_the_delivery_is_accepted_even_if_the_session_has_expired(
    game: Game, browser: Browser, local: Game
) -> None:
    """A game no longer polls after the delivery and may report its result later."""
    session = game.register()
    press_continue(browser, session)
    assert outcome(session.poll())[0] == "OK"
    session.change("ends = now() - interval '1 min'")
    assert session.close().json() == {"status": "OK", "gsid": session.gsid}
    assert info(local, session)["state"] == "Success"


def test_close_does_not_delete_the_session(game: Game, local: Game) -> None:
    session = game.register(distr="steam")
    session.close()
    assert info(local, session)["distr"] == "steam"


def test_closed_session_cannot_be_confirmed(game: Game, browser: Browser) -> None:
    session = game.register()
    browser.follow(browser.get(session.page))
    form = browser.form(f"{session.decision}/continue")
    session.close()
    assert browser.follow(browser.post(f"{session.decision}/continue", form)).status_code == 410
    assert session.status == "closed"
    assert session.row("user_id")["user_id"] is None
