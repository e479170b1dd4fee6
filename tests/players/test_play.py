"""`sso play` as a guest, and with a guest who becomes an account."""

import json
import stat
from pathlib import Path

from tests.kit.browser import Browser, new_user
from tests.kit.play import Game, playing, sign_in_to
from tests.kit.server import Server


def result_of(game: Game) -> dict[str, object]:
    assert game.ended() == 0, game.err
    data: dict[str, object] = json.loads(game.out)
    return data


def test_guest_signs_in_again_with_the_key_of_the_file_and_is_merged(server: Server, tmp_path: Path) -> None:
    key = tmp_path / "guest.pem"
    users = []
    for _ in range(2):
        with playing(server, "--guest", str(key), "--json") as game:
            users.append(result_of(game))
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert users[0]["guest"] is True
    assert users[0]["user_id"] == users[1]["user_id"]
    with playing(server, "--guest", str(key), "--link", "--no-socket", "--json") as game, Browser(server) as browser:
        sign_in_to(game, browser, new_user(server))
        browser.follow(browser.submit(f"/game/{game.gsid}/continue"))
        data = result_of(game)
    assert (data["linked"], data["merged_from"]) == ("merged", users[0]["user_id"])


def test_file_with_another_key_and_link_without_guest_are_refused(server: Server, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("x")
    with playing(server, "--guest", str(key)) as game:
        assert game.ended() == 1
        assert "is not a PEM private key" in game.err
    with playing(server, "--link") as game:
        assert game.ended() == 2
        assert "--link needs --guest" in game.err
