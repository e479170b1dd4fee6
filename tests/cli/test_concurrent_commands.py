"""Commands that run at the same time do not overwrite each other's changes."""

import json
import subprocess
import sys

from tests.cli.conftest import Sso
from tests.kit.server import clean_environment
from tests.state.studio import ANN, BOB


def test_concurrent_commands_lose_no_change(applied: Sso, environment: dict[str, str]) -> None:
    app = ("--app", "40")
    commands = [
        ("project", "member", "add", "rd", ANN, "developer"),
        ("project", "member", "add", "rd", BOB, "manager"),
        ("group", "member", "add", "testers", BOB),
        ("group", "condition", "add", "testers", "staff", "domain=studio.example"),
        ("role", "change", "moderator", *app, "--rule", "chat.kick"),
        ("role", "change", "moderator", *app, "--rule", "chat.ban"),
    ]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "sso", *command],
            env=clean_environment(**environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command in commands
    ]
    results = [(*process.communicate(timeout=60), process.returncode) for process in processes]
    assert [(code, err) for _, err, code in results] == [(0, "")] * len(commands), results
    members = applied("project", "member", "list", "rd").out
    assert "admin, developer" in members
    assert "viewer, manager" in members
    assert {line.split("\t")[0] for line in applied("group", "member", "list", "testers").lines} == {ANN, BOB}
    assert '"staff"' in applied("group", "show", "testers").out
    assert json.loads(applied("role", "show", "moderator", *app).out)["rules"] == ["chat.ban", "chat.kick", "chat.mute"]
