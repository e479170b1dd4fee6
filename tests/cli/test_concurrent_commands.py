"""Commands that run at the same time do not overwrite each other's changes."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.cli.conftest import Sso
from tests.kit.server import run_sso
from tests.state.studio import ANN, BOB


def test_concurrent_commands_lose_no_change(applied: Sso, environment: dict[str, str], tmp_path: Path) -> None:
    app = ("--app", "40")
    commands = [
        ("project", "member", "add", "rd", ANN, "developer"),
        ("project", "member", "add", "rd", BOB, "manager"),
        ("group", "member", "add", "testers", BOB),
        ("group", "condition", "add", "testers", "staff", "domain=studio.example"),
        ("role", "change", "moderator", *app, "--rule", "chat.kick"),
        ("role", "change", "moderator", *app, "--rule", "chat.ban"),
    ]
    with ThreadPoolExecutor(len(commands)) as threads:
        results = list(threads.map(lambda command: run_sso(tmp_path, *command, **environment), commands))
    assert [(result.returncode, result.stderr) for result in results] == [(0, "")] * len(commands), results
    members = applied("project", "member", "list", "rd").out
    assert "admin, developer" in members
    assert "viewer, manager" in members
    assert {line.split("\t")[0] for line in applied("group", "member", "list", "testers").lines} == {ANN, BOB}
    assert '"staff"' in applied("group", "show", "testers").out
    assert json.loads(applied("role", "show", "moderator", *app).out)["rules"] == ["chat.ban", "chat.kick", "chat.mute"]
