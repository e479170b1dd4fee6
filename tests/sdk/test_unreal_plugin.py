"""What the contract does not reach of the Unreal plugin: a player who signs out or leaves while a sign-in runs."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sdk.contract.packages import SDK
from tests.sdk.answering import LOGIN, answering, signing_out

DRIVER = SDK / "unreal/build/test/sso_unreal_driver"
TICKET = {"do": "ticket", "provider": "steam", "ticket": "1", "factor": "d"}
pytestmark = pytest.mark.skipif(not DRIVER.exists(), reason="the package unreal is not built: run scripts/sdk")


def run(base_url: str, folder: Path, *commands: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns the events and their reasons."""
    lines = "\n".join(json.dumps(command) for command in commands)
    command = [str(DRIVER), base_url, str(folder)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, timeout=200)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return [(event["event"], event.get("reason", "")) for event in events]


def test_sign_out_is_not_undone_by_a_sign_in_that_still_runs(tmp_path: Path) -> None:
    with signing_out() as (base_url, paths):
        events = run(base_url, tmp_path, TICKET, {"do": "sign_in", "sign_out_after": "show_link"}, {"do": "resume"})
    assert events == [("signed_in", ""), ("show_link", ""), ("failed", "cancelled"), ("failed", "sign_in_needed")]
    assert "/proxy/api/logout" in paths


def test_sign_in_that_begins_when_the_game_ends_is_cancelled(tmp_path: Path) -> None:
    paths: list[str] = []

    def answer(path: str) -> tuple[int, str]:
        paths.append(path)
        return (503, "{}") if path == "/proxy/api/login" else (200, json.dumps(LOGIN))

    with answering(answer) as base_url:
        assert run(base_url, tmp_path, TICKET, {"do": "resume", "leave": True}) == [("signed_in", "")]
    assert paths.count("/proxy/api/login") < 2  # of three tries
