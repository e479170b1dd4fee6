"""`sso play`: logins of a game with a real server."""

import gc
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
import trio.testing

import sso.cli
from sso.cli.play.client import Answer, GameClient, GameLoginError, GameSession, PollCallbacks, wait_for_result
from sso.core.keys import private_pem
from tests.kit.browser import AuthenticatorApp, Browser, fresh_browser, new_user
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.play import playing, sign_in_to
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import Server, until


@pytest.fixture
def browser(server: Server) -> Iterator[Browser]:
    with Browser(server) as browser:
        yield browser


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("key") / "game.pem"
    file.write_text(private_pem(rsa_key()))
    return file


def run(*arguments: str) -> int:
    """Runs `sso play` in this process and returns the exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["sso", "play", *arguments])
        try:
            with pytest.raises(SystemExit) as exit_:
                sso.cli.main()
        finally:
            gc.enable()
    assert isinstance(exit_.value.code, int)
    return exit_.value.code


class ScriptedClient(GameClient):
    """Answers each poll with the next response and records its time."""

    def __init__(self, *answers: Answer | Exception) -> None:
        super().__init__("http://game.example")
        self.answers = list(answers)
        self.times: list[float] = []

    async def poll(self, session: GameSession) -> Answer:
        self.times.append(trio.current_time())
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def answer(code: int, headers: dict[str, str] | None = None, /, **body: Any) -> Answer:
    return Answer(code, body, httpx.Headers(headers))


async def test_ban_is_reported_with_its_reason() -> None:
    ban = {"reason": "Cheating", "until": None, "scope": "all", "appeal_url": None}
    client = ScriptedClient(answer(403, status="ERROR", error="banned", ban=ban))
    with pytest.raises(GameLoginError, match="the player is banned: Cheating"):
        await wait_for_result(client, GameSession("gsid", "link", "words", ""), PollCallbacks())


async def test_client_follows_the_rules_for_polls(autojump_clock: trio.testing.MockClock) -> None:
    done = answer(200, status="OK", nick="Ann")
    rules = (
        (httpx.ReadTimeout(""), 0),
        (answer(200, status="RETRY", delay=7), 7),
        (answer(200, status="RETRY", delay=0), 0),
        (answer(200, status="CANCELLED"), 0),
        (httpx.ConnectError("refused"), 1),
        (answer(503, {"Retry-After": "2"}, status="ERROR", error="away"), 2),
        (answer(429, {"Retry-After": "3"}, status="ERROR", error="too many connections"), 3),
    )
    session = GameSession("gsid", "link", "words", "")
    for first, pause in rules:
        client = ScriptedClient(first, done)
        assert (await wait_for_result(client, session, PollCallbacks()))["nick"] == "Ann"
        assert client.times[1] - client.times[0] == pytest.approx(pause, abs=0.01), first
    for last, error in (
        (answer(200, status="ERROR", error="session expired"), "the session has expired"),
        (answer(403, status="ERROR", error="0123abcd"), "sso why 0123abcd"),
        (answer(403, status="ERROR", error="0123abcd", reason="wrong address"), ": wrong address$"),  # in the demo
        (answer(403, status="ERROR", error="login not allowed"), "^login not allowed$"),
    ):
        with pytest.raises(GameLoginError, match=error):
            await wait_for_result(ScriptedClient(last), session, PollCallbacks())
    with pytest.raises(GameLoginError, match="is not available"):
        await wait_for_result(ScriptedClient(*[httpx.ConnectError("refused")] * 100), session, PollCallbacks())


def state_of(server: Server, gsid: str) -> str:
    with server.client() as http:
        return str(http.post("/proxy/api/gameSession/info", json={"gsid": gsid}).json()["session"]["state"])


def test_login_with_a_second_factor(server: Server, browser: Browser) -> None:
    """The stages are shown, in order; then who it is. Secrets are cut short."""
    login = new_user(server, nick="Ann", totp_secret=TOTP_SECRET)
    with playing(server, "--factor", "pc", "--distr", "store", "--qr") as game:
        browser.get(game.path)
        assert game.shows("the page is open")
        assert "store" in browser.page.text
        words = game.line_after("these words:")
        assert f">{words}<" in browser.page.text
        assert "█" in game.out
        browser.follow(browser.submit("/login", login=login, password=PASSWORD))
        assert game.shows("second factor")
        browser.follow(browser.submit("/login/code", otp=AuthenticatorApp(TOTP_SECRET).code()))
        assert game.ended() == 0, game.err
        assert game.err == ""
        stages = ["waiting for the browser", "the page is open", "second factor"]  # others pass in an instant
        assert [line for line in game.out.splitlines() if line in stages] == stages
        assert "Signed in as Ann, user " in game.out
        assert "valid for 30 days" in game.out
        assert "  jwt         eyJ" in game.out
        assert max(map(len, game.out.splitlines())) < 100
        assert state_of(server, game.gsid) == "Success"
    assert "You are signed in" in browser.get(browser.page.url.path).text


def test_json_option_prints_the_response(server: Server) -> None:
    login = new_user(server)
    with fresh_browser(server, login) as browser, playing(server, "--json", "--no-socket") as game:
        browser.follow(browser.get(game.path))
        browser.submit(f"/game/{game.gsid}/continue")
        assert game.ended() == 0, game.err
        answer = json.loads(game.out)
        assert (answer["status"], answer["gsid"], answer["nick"]) == ("OK", game.gsid, "Ann")
        assert len(answer["token"]) > 40
        assert "jwt" not in answer
        assert "the page is open" not in game.err


def test_key_option_signs_requests(server: Server, browser: Browser, key_file: Path) -> None:
    with playing(server, "--key", str(key_file)) as game:
        with server.client() as http:  # from the same address, but without the key
            assert http.post("/proxy/api/gameSession/getGsidResult", json={"gsid": game.gsid}).status_code == 403
        sign_in_to(game, browser, new_user(server))
        assert game.ended() == 0, game.err
        assert "Signed in as Ann" in game.out
        assert state_of(server, game.gsid) == "Success"


def test_denied_session_is_reported(server: Server) -> None:
    with fresh_browser(server, new_user(server)) as browser, playing(server) as game:
        browser.follow(browser.get(game.path))
        browser.submit(f"/game/{game.gsid}/deny")
        assert game.ended() == 1
        assert game.err == "sso: the sign-in was denied in the browser\n"


def test_ctrl_c_closes_the_session(server: Server, browser: Browser) -> None:
    with playing(server) as game:
        browser.get(game.path)
        assert game.shows("the page is open")
        game.interrupt()
        assert game.ended() == 1
        assert game.err == ""
        assert state_of(server, game.gsid) == "Error"
        assert until(lambda: browser.get(game.path).status_code == 410)


def test_errors_are_reported_in_one_line(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    no_key = tmp_path / "empty.pem"
    no_key.write_text("nothing")
    for arguments, error in (
        (["http://127.0.0.1:1"], "http://127.0.0.1:1 cannot be reached"),
        ([f"{server.base_url}/nothing"], "is not a sign-on service: it responded with HTTP 404"),
        ([server.base_url, "--app-id", "999999"], "the session was not registered: "),
        ([server.base_url, "--key", str(no_key)], "is not a PEM private key"),
    ):
        assert run(*arguments) == 1
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.startswith("sso: ")
        assert error in shown.err
        assert shown.err.count("\n") == 1
    assert run("127.0.0.1:8000") == 2
