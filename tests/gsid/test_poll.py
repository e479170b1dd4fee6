"""getGsidResult: the outcomes of a poll, and the lifetime of a session."""

import time
from typing import Any

import httpx
import jwt as pyjwt
import orjson
import pytest

from sso.accounts.user_jwt_claims import factor_digest
from tests.gsid.conftest import META
from tests.kit.browser import Browser, new_user, query
from tests.kit.builders import PASSWORD
from tests.kit.game import (
    BASE,
    Game,
    Session,
    outcome,
    press_continue,
    public_text,
    sign_in_on_game_page,
    violation,
)
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import Server
from tests.perm.endpoints.tokens import ServiceKey

COMMON = {"status", "gsid", "ts", "started", "last_seen"}
DATA = {
    "auth", "country", "lang", "level", "nick", "sso_nick", "reg_time", "stoken", "tags", "token", "token_exp",
    "user_id", "status",
}  # fmt: skip
LOGIN = "/proxy/api/login"


def delivered(browser: Browser, session: Session, **options: Any) -> dict[str, Any]:
    """Returns the result of a poll after Ann has confirmed."""
    press_continue(browser, session)
    answer = session.poll(**options)
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()
    assert data["status"] == "OK"
    return data


def claims(server: Server, token: str) -> dict[str, Any]:
    with server.client() as client:
        keys = pyjwt.PyJWKSet.from_dict(client.get("/proxy/oauth/keys").json())
    found: dict[str, Any] = pyjwt.decode(token, keys[pyjwt.get_unverified_header(token)["kid"]], algorithms=["RS256"])
    return found


def test_poll_is_held_and_then_answered_with_retry(game: Game) -> None:
    session = game.register()
    began = time.monotonic()
    answer = session.poll()
    assert 0.9 < time.monotonic() - began < 60
    data = answer.json()
    assert answer.status_code == 200
    assert set(data) == COMMON | {"delay"}
    assert (data["status"], data["gsid"], data["last_seen"]) == ("RETRY", session.gsid, 0)
    assert all(type(data[name]) is int for name in ("ts", "started", "last_seen", "delay"))
    assert data["delay"] >= 0
    assert 1 <= data["ts"] - data["started"] <= 9
    assert abs(data["ts"] - time.time()) < 60
    assert answer.headers["Cache-Control"] == "no-store"


def test_session_stays_pending_after_retry(game: Game, browser: Browser) -> None:
    session = game.register()
    assert outcome(session.poll())[0] == "RETRY"
    assert session.status == "pending"
    assert delivered(browser, session)["user_id"] == "1001"


def test_ok_result_has_all_login_data_with_their_types(game: Game, browser: Browser) -> None:
    session = game.register()
    data = delivered(browser, session)
    assert set(data) == COMMON | DATA
    assert (data["gsid"], data["user_id"], data["auth"], data["nick"]) == (session.gsid, "1001", "gsid", "Ann")
    assert (data["country"], data["lang"], data["level"], data["tags"]) == ("DE", "en", "3", "beta,eu")
    assert data["sso_nick"] == data["nick"]
    assert all(isinstance(data[name], str) for name in DATA - {"token_exp"})
    assert all(type(data[name]) is int for name in ("ts", "started", "last_seen", "token_exp"))
    assert data["reg_time"].isdecimal()
    assert data["token_exp"] == 2_592_000
    assert data["token"] != data["stoken"]


def test_tokens_of_the_result_work_in_place_of_a_password(game: Game, browser: Browser) -> None:
    data = delivered(browser, game.register())
    for name in ("token", "stoken"):
        answer = game.http.post(LOGIN, json={"token": data[name]})
        assert (answer.status_code, answer.json()["user_id"]) == (200, "1001")


def test_poll_after_the_delivery_is_a_violation(game: Game, browser: Browser) -> None:
    session = game.register()
    delivered(browser, session)
    for _ in range(3):
        violation(session.poll())
        violation(session.poll({"Location": session.secret}))
    session.change("ends = now() - interval '1 s'")
    violation(session.poll())
    session.change("ends = now() - interval '11 min'")
    violation(session.poll())


def test_result_without_a_factor_has_no_jwt(game: Game, browser: Browser) -> None:
    assert "jwt" not in delivered(browser, game.register(factor=""))
    assert "jwt" not in delivered(browser, game.register(nojwt="0"))


def test_result_with_nojwt_has_no_jwt(game: Game, browser: Browser) -> None:
    assert "jwt" not in delivered(browser, game.register(factor="device", nojwt="1"))


def test_result_with_a_factor_has_a_jwt_of_this_login(game: Game, browser: Browser, server: Server) -> None:
    found = claims(server, delivered(browser, game.register(factor="device é"))["jwt"])
    assert (found["typ"], found["auth"], found["sub"], found["uid"]) == ("user_token", "gsid", "1001", "1001")
    assert (found["iss"], found["nick"], found["fac"]) == (server.base_url, "Ann", factor_digest("device é"))
    assert not {"ips", "pub", "app_id"} & set(found)


def test_fixed_ip_and_fixed_ips_are_in_the_jwt(game: Game, browser: Browser, server: Server) -> None:
    asked = {"factor": "device", "fixed_ip": "1", "fixed_ips[]": ["10.1.2.3/8"]}
    found = claims(server, delivered(browser, game.register(**asked))["jwt"])
    assert found["ips"] == [f"{game.address}/32", "10.0.0.0/8"]
    found = claims(server, delivered(browser, game.register(factor="device", **{"fixed_ips[]": ["10.0.0.1"]}))["jwt"])
    assert found["ips"] == ["10.0.0.1/32"]


def test_jwt_public_key_is_in_the_jwt(game: Game, browser: Browser, server: Server) -> None:
    key = public_text(rsa_key())
    found = claims(server, delivered(browser, game.register(factor="device", jwt_public_key=key))["jwt"])
    assert found["pub"] == key


def test_meta_1_adds_the_meta_tags(game: Game, browser: Browser) -> None:
    assert delivered(browser, game.register(meta="1"))["meta"] == META
    assert "meta" not in delivered(browser, game.register(meta="0"))


def test_with_email_and_the_secret_of_the_application_adds_the_login(
    game: Game, browser: Browser, server: Server, ann: str
) -> None:
    secret = server.sso("app", "email-secret", "10").stdout.split()[-1]
    assert delivered(browser, game.register(app_id=10, with_email=secret))["login"] == ann
    for wrong in (secret[:-1], secret.upper(), "1", ""):
        assert "login" not in delivered(browser, game.register(app_id=10, with_email=wrong))
    assert "login" not in delivered(browser, game.register(with_email=secret))  # needs the secret of application 0


def test_app_id_and_gapp_id_add_permissions(game: Game, browser: Browser, server: Server) -> None:
    data = delivered(browser, game.register(app_id=10, gapp_id=11, factor="device"))
    assert data["permissions"] == {"10": ["chat.mute"], "11": ["skin"]}
    assert claims(server, data["jwt"])["app_id"] == 10
    assert delivered(browser, game.register(gapp_id=11))["permissions"] == {"11": ["skin"]}
    assert "permissions" not in delivered(browser, game.register(app_id=0))


@pytest.fixture(scope="module")
def service(server: Server) -> ServiceKey:
    """Registers one key for the services 22 and 23."""
    key = ServiceKey()
    meta = {"service_meta": {"public_key": key.pem}}
    server.apply({"applications": [{"application_id": 22, "name": "Service", **meta}]})
    server.apply({"applications": [{"application_id": 23, "name": "Other service", **meta}]})
    server.apply({"schemas": {"22": {"private_data": {"serve": {"value": True}}}}})
    return key


def test_service_jwt_sets_the_application(game: Game, browser: Browser, server: Server, service: ServiceKey) -> None:
    token = service.sign(server, 22)
    data = delivered(browser, game.register(service_jwt=token, factor="device"))
    assert data["permissions"] == {"22": ["serve"]}
    assert claims(server, data["jwt"])["app_id"] == 22
    for named in ({"app_id": 22}, {"gapp_id": 22}, {"app_id": 10, "gapp_id": 22}):
        row = game.register(service_jwt=token, **named).row("app_id, gapp_id")
        assert dict(row) == {"app_id": 0, "gapp_id": 0} | named


def test_service_jwt_in_the_header_takes_precedence(game: Game, server: Server, service: ServiceKey) -> None:
    header = {"Service-Jwt": service.sign(server, 22)}
    for fields in ({}, {"service_jwt": ""}, {"service_jwt": "x"}, {"service_jwt": service.sign(server, 23)}):
        assert game.register(header, **fields).row("app_id")["app_id"] == 22
    for answer in (
        game.get_gsid(header, app_id=23, service_jwt=service.sign(server, 23)),
        game.get_gsid({"Service-Jwt": "x"}, service_jwt=service.sign(server, 22)),
    ):
        assert answer.status_code == 400
        assert answer.json()["error"].startswith("service_jwt: ")


def test_service_jwt_of_another_application_or_an_invalid_one_is_refused(
    game: Game, server: Server, service: ServiceKey
) -> None:
    now = int(time.time())
    good = service.sign(server, 22)
    unsigned = pyjwt.encode({"typ": "service_token", "app_id": 22, "aud": server.base_url, "iat": now}, "", "none")
    for token, named in (
        (service.sign(server, 23), {"app_id": 22}),
        (good, {"app_id": 10}),
        (good, {"app_id": 10, "gapp_id": 11}),
        (service.sign(server, 22, iat=now - 700, exp=now - 100), {}),
        (service.sign(server, 22, exp=now + 7200), {}),
        (service.sign(server, 22, typ="user_token"), {}),
        (service.sign(server, 22, aud="https://elsewhere.example"), {}),
        (service.sign(server, 999), {}),
        (ServiceKey().sign(server, 22), {}),
        (unsigned, {}),
        (good[:-2], {}),
        ("x", {}),
    ):
        answer = game.get_gsid(service_jwt=token, **named)
        assert answer.status_code == 400, named
        assert answer.json()["error"].startswith("service_jwt: ")
    assert not query(server, "SELECT 1 FROM game_sessions WHERE address = $1", game.address)


def test_short_token_is_bound_to_the_registering_address(game: Game, other: Game, browser: Browser) -> None:
    session = game.register(short_token="1")
    polled_elsewhere = Session(other, session.gsid, session.match, session.location)
    press_continue(browser, session)
    data = polled_elsewhere.poll({"Location": session.secret}).json()
    assert (data["stoken"], data["token_exp"]) == ("", 300)
    assert game.http.post(LOGIN, json={"token": data["token"]}).status_code == 200
    assert other.http.post(LOGIN, json={"token": data["token"]}).status_code == 401


def test_signed_poll_from_any_address_gets_the_login(game: Game, other: Game, browser: Browser) -> None:
    session = game.register(public_key=public_text(rsa_key()))
    press_continue(browser, session)
    violation(session.poll())
    moved = Session(other, session.gsid, session.match, session.location)
    assert outcome(moved.signed(rsa_key()))[0] == "OK"
    violation(moved.signed(rsa_key()))


def test_poll_accepts_a_form(game: Game) -> None:
    session = game.register()
    session.close()
    answer = game.http.post(f"{BASE}/getGsidResult", data={"gsid": session.gsid})
    assert outcome(answer) == ("ERROR", "session closed")


def seconds_left(session: Session) -> float:
    return float(session.row("extract(epoch FROM ends - created) AS life")["life"])


def test_session_lives_two_minutes_and_two_more_with_every_poll_up_to_twenty(game: Game) -> None:
    session = game.register()
    assert seconds_left(session) == 120
    assert outcome(session.poll())[0] == "RETRY"
    assert seconds_left(session) == 240
    session.change("ends = created + interval '19 min'")
    assert outcome(session.poll())[0] == "RETRY"
    assert seconds_left(session) == 1200
    assert outcome(session.poll())[0] == "RETRY"
    assert seconds_left(session) == 1200


def test_refused_poll_or_close_does_not_extend_the_session(game: Game, other: Game) -> None:
    session = game.register()
    violation(Session(other, session.gsid, session.match, session.location).poll())
    session.close()
    session.poll()
    assert seconds_left(session) == 120


def test_expired_session_is_reported_to_its_client_for_ten_minutes(game: Game, other: Game, browser: Browser) -> None:
    session = game.register()
    for ago in ("1 s", "9 min 50 s"):
        session.change(f"ends = now() - interval '{ago}'")
        assert outcome(session.poll()) == ("ERROR", "session expired")
        assert set(session.poll().json()) == {"status", "error"}
        violation(Session(other, session.gsid, session.match, session.location).poll())
    session.change("ends = now() - interval '10 min 1 s'")
    violation(session.poll())
    violation(session.close())


def test_session_ends_after_twenty_minutes_of_polling(game: Game) -> None:
    session = game.register()
    session.change("created = now() - interval '20 min', ends = now()")
    assert outcome(session.poll()) == ("ERROR", "session expired")


def test_login_of_an_expired_session_is_not_delivered(game: Game, browser: Browser) -> None:
    session = game.register()
    press_continue(browser, session)
    session.change("ends = now() - interval '1 s'")
    assert outcome(session.poll()) == ("ERROR", "session expired")
    assert session.status == "confirmed"


def test_user_disabled_after_the_confirmation_is_not_logged_in(game: Game, server: Server) -> None:
    login = new_user(server)
    session = game.register()
    with Browser(server) as browser:
        assert sign_in_on_game_page(browser, session, login, PASSWORD).status_code == 303
    query(server, "UPDATE users SET disabled = true WHERE login = $1", login)
    answer = session.poll()
    assert outcome(answer)[0] == "ERROR"
    assert set(answer.json()) == {"status", "error"}


def test_user_who_loses_access_after_the_confirmation_is_not_logged_in(
    game: Game, server: Server, browser: Browser
) -> None:
    session = game.register(app_id=20)
    press_continue(browser, session)
    server.apply({"schemas": {"20": {"login": {"cannot": {"value": True}}}}})
    assert outcome(session.poll()) == ("ERROR", "session denied")
    assert outcome(session.poll()) == ("ERROR", "session denied")


def test_started_and_ts_are_from_the_database_clock(game: Game) -> None:
    """Otherwise the age of a session could be negative."""
    data = game.get_gsid().json()
    polled = orjson.loads(game.ask("getGsidResult", data["gsid"]).content)
    assert polled["started"] == data["started"] <= polled["ts"]


@pytest.mark.parametrize("what", ["getGsid", "getGsidResult", "closeGsid", "info"])
def test_methods_other_than_post_are_refused(game: Game, what: str) -> None:
    for method in ("GET", "PUT", "DELETE", "PATCH"):
        answer: httpx.Response = game.http.request(method, f"{BASE}/{what}")
        assert answer.status_code == 405
        assert set(answer.headers["Allow"].split(", ")) == {"OPTIONS", "POST"}
