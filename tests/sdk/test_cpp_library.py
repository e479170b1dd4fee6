"""What the contract does not reach of the C++ library: QR codes, encrypted storage, storage that fails, and locales."""

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path
from threading import Event

import pytest
import segno

from sdk.contract.packages import SDK
from sdk.contract.runner import SCENARIOS, play
from tests.kit.long_tests import takes_long
from tests.sdk.answering import LOGIN, answering, signing_out

PARTS = SDK / "cpp/build/sso_parts"
LINK = "https://sso.example.com/?gsid=0c7c0f0e-4f0e-4f5c-9d1f-6f8f2b0f7a11"
OK = (200, json.dumps({"status": "OK"}))
needs_build = pytest.mark.skipif(not PARTS.exists(), reason="the package cpp is not built: run scripts/sdk")


def run(*arguments: str, **environment: str) -> list[str]:
    env = os.environ | environment
    done = subprocess.run([str(PARTS), *arguments], capture_output=True, text=True, timeout=60, check=True, env=env)
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def comma_locale(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Compiles a locale whose decimal point is a comma, and returns the environment that selects it."""
    folder = tmp_path_factory.mktemp("locales")
    program = shutil.which("localedef")
    if program is None:
        pytest.skip("there is no localedef: apt-get install libc-bin")
    subprocess.run([program, "-i", "de_DE", "-f", "UTF-8", str(folder / "de_DE.UTF-8")], check=False, timeout=60)
    if not (folder / "de_DE.UTF-8").exists():
        pytest.skip("localedef has no sources of locales: apt-get install locales")
    return {"LOCPATH": str(folder), "LC_ALL": "de_DE.UTF-8"}


@needs_build
# One text for each of the ten versions, at the end of its capacity, and a link.
@pytest.mark.parametrize("size", [0, 1, 14, 26, 42, 62, 84, 106, 122, 152, 180, 213])
def test_qr_code_equals_that_of_another_library(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # segno fills a byte with padding bits even if it is complete, so that the padding bytes differ from the standard.
    monkeypatch.setattr(segno.encoder, "write_padding_bits", lambda bits, _, length: bits.extend([0] * (-length % 8)))
    text = (LINK * 4)[:size] or "é" + LINK
    drawn = run("qr", text)

    def is_drawn_with(mask: int) -> bool:
        code = segno.make_qr(text, mask=mask, error="m", mode="byte", boost_error=False, encoding="utf-8")
        return ["".join(map(str, row)) for row in code.matrix] == drawn

    # Both choose one of eight masks; a reader accepts each of them.
    assert len([mask for mask in range(8) if is_drawn_with(mask)]) == 1


@needs_build
def test_text_that_is_too_long_has_no_qr_code() -> None:
    assert run("qr", "a" * 214) == []


@needs_build
@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("[1.5, -0.25e2, 1794801299, 1e-7, 0, 1,5]", "[1.5, -25, 1794801299, 9.9999999999999995e-08, 0, 1, 5]"),
        ('{"delay": 2.5}', '{"delay": 2.5}'),
        *((text, "malformed") for text in ("1.2.3", "-", "1e", "0x10", "nan", "inf", ".", "[1.5 2]")),
    ],
)
def test_numbers_are_read_and_written_in_a_locale_with_a_comma(
    text: str, written: str, comma_locale: dict[str, str]
) -> None:
    assert run("json", text, LC_ALL="C") == [".", written]
    assert run("json", text, **comma_locale) == [",", written]


@needs_build
def test_encrypted_store_opens_with_its_key_and_name_only(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    assert run("store", str(folder)) == ["long-token-1", "", "", "nothing"]
    stored = folder / "token"
    assert b"long-token-1" not in stored.read_bytes()
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600


@needs_build
def test_player_whose_token_cannot_be_stored_is_signed_in_and_knows_it(tmp_path: Path) -> None:
    scenario = json.loads((SCENARIOS / "ticket.json").read_text())
    scenario["events"][0]["stored"] = False
    (tmp_path / "ticket.json").write_text(json.dumps(scenario))
    # A file is no folder.
    program = ("sh", "-c", f'exec {SDK}/cpp/build/sso_game_driver "$1" /dev/null/folder', "sh")
    assert play("ticket", program, tmp_path).problems == []


@needs_build
def test_guest_key_that_cannot_be_opened_is_kept(tmp_path: Path) -> None:
    key = tmp_path / "guest_key"
    key.symlink_to(key)  # cannot be opened by anybody
    failed = {"event": "failed", "reason": "invalid"}
    script = {"runs": [[{"do": "guest", "factor": "device-1"}]], "requests": [], "events": [failed]}
    (tmp_path / "guest.json").write_text(json.dumps(script))
    program = ("sh", "-c", f'exec {SDK}/cpp/build/sso_game_driver "$1" {tmp_path}', "sh")
    assert play("guest", program, tmp_path).problems == []
    assert key.is_symlink()


@needs_build
def test_sign_out_is_not_undone_by_a_sign_in_that_still_runs() -> None:
    with signing_out() as (base_url, paths):
        assert run("sign_out", base_url) == ["cancelled", "nothing", "no player"]
    assert "/proxy/api/logout" in paths


@needs_build
@pytest.mark.parametrize(
    ("part", "answer", "ended_tokens"),
    [
        ("late_ticket", (200, json.dumps(LOGIN)), 2),  # the stored one, and that of the answer
        ("late_resume", (401, json.dumps({"status": "ERROR", "error": "the token has ended"})), 1),
    ],
)
def test_answer_that_comes_while_a_sign_out_runs_is_not_used(
    part: str, answer: tuple[int, str], ended_tokens: int
) -> None:
    calls = ("/proxy/api/ticket", "/proxy/api/login")
    paths: list[str] = []
    is_read = Event()

    def answer_to(path: str) -> tuple[int, str]:
        paths.append(path)
        if path == "/answer_is_read":
            is_read.wait(60)
        return answer if path in calls else OK

    def left(path: str, has_waited: bool) -> None:
        if path in calls:
            is_read.set()

    with answering(answer_to, left) as base_url:
        assert run(part, base_url) == ["cancelled", "nothing"]
    assert paths.count("/proxy/api/logout") == ended_tokens


@needs_build
def test_second_sign_out_does_not_end_the_request_of_the_first() -> None:
    has_begun, has_signed_out, has_left = Event(), Event(), Event()
    waited: list[bool] = []

    def answer(path: str) -> tuple[int, str]:
        if path == "/signed_out_twice":
            has_signed_out.set()
        elif path == "/logout_has_begun":
            has_begun.wait(60)
        elif path == "/proxy/api/logout":
            has_begun.set()
            has_signed_out.wait(60)
        return OK

    def left(path: str, has_waited: bool) -> None:
        if path == "/proxy/api/logout":
            waited.append(has_waited)
            has_left.set()

    with answering(answer, left, pause_s=0.3) as base_url:  # a request that was cancelled ends with the headers
        run("sign_out_twice", base_url)
        assert has_left.wait(60)
    assert waited == [True]


@needs_build
def test_page_that_is_not_found_does_not_mean_that_there_are_no_guests(tmp_path: Path) -> None:
    scenario = json.loads((SCENARIOS / "guests_are_off.json").read_text())
    scenario["requests"][0]["answer"] = "<html>404</html>"
    scenario["events"][0]["reason"] = "not_a_service"
    (tmp_path / "guests.json").write_text(json.dumps(scenario))
    assert play("guests", (f"{SDK}/cpp/build/sso_game_driver",), tmp_path).problems == []


@needs_build
@takes_long
def test_proxy_that_never_reaches_the_service_ends_a_sign_in(tmp_path: Path) -> None:
    scenario = json.loads((SCENARIOS / "restart.json").read_text())
    session, away = scenario["requests"][:2]
    away = {**away, "status": 502, "headers": {"Retry-After": "31"}, "times": 3}
    events = [scenario["events"][0], {"event": "failed", "reason": "unavailable"}]
    (tmp_path / "away.json").write_text(json.dumps({**scenario, "requests": [session, away], "events": events}))
    assert play("away", (f"{SDK}/cpp/build/sso_game_driver",), tmp_path).problems == []
