"""A server that an administrator connects to cannot control the terminal."""

import json
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from tests.kit.server import clean_environment
from tests.kit.terminal import run_sso_on_terminal

# A title of the window, "clear the screen" with C0 and with C1, and an override of the direction of text.
ATTACK = "A\x1b]0;owned\x07\x1b[2J\x9b2J\u202eB"
CONTROLS = ("\x1b", "\x07", "\x9b", "\u202e")
ESCAPED = r"A\x1b]0;owned\x07\x1b[2J\x9b2J\u202eB"


class Hostile(BaseHTTPRequestHandler):
    status = 200
    answers: ClassVar[list[object]] = []

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.dumps(self.answers.pop(0)).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Hostile) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def shown(url: str, folder: Path, answers: list[object], *arguments: str, status: int = 200) -> str:
    """Returns what a command shows on the terminal after these answers."""
    Hostile.status, Hostile.answers = status, answers
    login = {"kind": "client", "client_id": "x", "access_token": "x", "ends": int(time.time()) + 3600}
    (folder / "sso").mkdir(exist_ok=True)
    (folder / "sso/logins.json").write_text(json.dumps({"servers": {url: login}, "last": url}))
    environment = clean_environment(XDG_CONFIG_HOME=str(folder), TERM="xterm", NO_COLOR="1", PATH=os.environ["PATH"])
    return run_sso_on_terminal(arguments, environment)[1]


@pytest.mark.parametrize("status", [200, 400])
def test_texts_of_the_server_are_escaped_on_a_terminal(url: str, tmp_path: Path, status: int) -> None:
    """An error, and a link that the server made."""
    answer = {"status": "ERROR", "error": ATTACK} if status == 400 else {"data": {"link": ATTACK, "mailed": True}}
    text = shown(url, tmp_path, [answer], "--server", url, "user", "invite", "a@b.de", status=status)
    assert ESCAPED in text
    assert not [character for character in CONTROLS if character in text]


def test_json_on_a_terminal_has_escapes_of_json(url: str, tmp_path: Path) -> None:
    state: dict[str, object] = {"disabled": False, "deletion_due": None, "second_factors": []}
    user = {"user_id": "1", "login": "a", "nick": ATTACK, **state}
    text = shown(url, tmp_path, [{"data": [user]}], "--server", url, "user", "list", "--json")
    assert json.loads(text)["nick"] == ATTACK
    assert not [character for character in CONTROLS if character in text]


def test_game_client_shows_no_control_characters(url: str, tmp_path: Path) -> None:
    session = {"status": "OK", "gsid": ATTACK, "match": ATTACK}
    text = shown(url, tmp_path, [session, {"status": "RETRY", "delay": ATTACK}], "play", url, "--no-socket")
    text = text.replace("\x1b[1m", "").replace("\x1b[0m", "").replace("\r\x1b[K", "")  # its own
    assert not [character for character in CONTROLS if character in text]
