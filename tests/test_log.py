"""Logging: one line per event, without secrets, and without failures."""

import io
import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog

from sso import log
from sso.core.background import current_task_name
from sso.telemetry.counters import TASK_FAILURES
from tests.kit import forked_program
from tests.kit.terminal import run_sso_on_terminal

Stderr = pytest.CaptureFixture[str]


def lines(capsys: Stderr) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_json_line_is_one_object_with_time_and_level(capsys: Stderr) -> None:
    log.configure_logging("json", "info")
    structlog.get_logger().info("something\nhappened", user_id="12", nick="Ünï\u2028")
    (line,) = lines(capsys)
    assert line["event"] == "something\nhappened"
    assert line["level"] == "info"
    assert line["user_id"] == "12"
    assert line["nick"] == "Ünï\u2028"
    assert line["timestamp"].endswith("Z")


SECRETS = [
    "password", "new_password", "current_password", "client_secret", "secret", "token", "stoken", "access_token",
    "id_token", "refresh_token", "jwt", "service_jwt", "authorization", "cookie", "otp", "code", "with_email",
    "location", "private_key", "hash", "signature",
]  # fmt: skip


@pytest.mark.parametrize("form", ["json", "console"])
def test_fields_with_names_of_secrets_are_blanked(capsys: Stderr, form: Any) -> None:
    log.configure_logging(form, "info")
    with structlog.contextvars.bound_contextvars(token="hunter2"):
        structlog.get_logger().bind(cookie="hunter2").info("event", **dict.fromkeys(SECRETS, "hunter2"))
    written = capsys.readouterr().err
    assert "hunter2" not in written
    assert all(name in written for name in SECRETS)


def test_lines_below_the_level_are_omitted(capsys: Stderr) -> None:
    log.configure_logging("json", "warning")
    structlog.get_logger().info("no")
    structlog.get_logger().warning("yes")
    assert [line["event"] for line in lines(capsys)] == ["yes"]


def test_failures_of_background_tasks_are_counted(capsys: Stderr) -> None:
    log.configure_logging("json", "info")
    before = TASK_FAILURES.counts.get(("cleanup",), 0)
    token = current_task_name.set("cleanup")
    try:
        for event in ("cleanup.failed", "cleanup.table_failed", "library.logged"):
            structlog.get_logger().warning(event)
    finally:
        current_task_name.reset(token)
    assert [line["task"] for line in lines(capsys)] == ["cleanup"] * 3
    assert TASK_FAILURES.counts["cleanup",] == before + 2


def test_exception_is_in_the_same_line(capsys: Stderr) -> None:
    log.configure_logging("json", "info")
    try:
        int("broken")
    except ValueError:
        structlog.get_logger().exception("failed")
    (line,) = lines(capsys)
    assert "ValueError: invalid literal" in line["exception"]


def test_exception_shows_no_local_variables(capsys: Stderr) -> None:
    for form in ("json", "console"):
        log.configure_logging(form, "info")
        password = "hunter" + str(2)
        try:
            int(password[:-1])
        except ValueError:
            structlog.get_logger().exception("failed")
    written = capsys.readouterr().err
    assert written.count("ValueError") >= 2
    assert "hunter2" not in written


INVISIBLE = (
    "\x00", "\x07", "\x08", "\n", "\r", "\x1b", "\x7f", "\x80", "\x85", "\x9b", "\x9f", "\u2028", "\u2029", "\u061c",
    "\u200b", "\u200e", "\u200f", "\u202a", "\u202e", "\u2066", "\u2069", "\ufeff", "\ud800", "\U000e0041",
)  # fmt: skip


@pytest.mark.parametrize("character", INVISIBLE, ids=ascii)
@pytest.mark.parametrize("form", ["json", "console"])
def test_control_and_invisible_characters_are_escaped(
    capsys: Stderr, monkeypatch: pytest.MonkeyPatch, form: Any, character: str
) -> None:
    log.configure_logging(form, "info")
    hostile = f"a{character}b"
    structlog.get_logger().info(hostile, nick=hostile, words=[hostile], **{hostile: "x"})
    try:
        raise ValueError(hostile)  # noqa: TRY301 - the text is what matters
    except ValueError:
        structlog.get_logger().exception("failed")
    written = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().err)  # the renderer's own colours
    if character == "\n":
        entries = [line for line in written.splitlines() if not line.startswith((" ", "Traceback"))]
        assert len(entries) == 2
    else:
        assert character not in written
    assert len(written.splitlines()) == len(written.removesuffix("\n").split("\n"))


def test_visible_characters_are_not_escaped(capsys: Stderr) -> None:
    log.configure_logging("console", "info")
    structlog.get_logger().info("Zoë", nick="Жанна 日本 🎮")
    assert "Zoë" in (written := capsys.readouterr().err)
    assert "Жанна 日本 🎮" in written


def test_library_messages_have_the_same_format_without_arguments(capsys: Stderr) -> None:
    log.configure_logging("json", "info")
    logging.getLogger("some.package").warning("bad value %s", "hunter2")
    logging.getLogger("some.package").info("chatter")
    (line,) = lines(capsys)
    assert (line["logger"], line["message"], line["level"]) == ("some.package", "bad value %s", "warning")


class Broken(io.StringIO):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def write(self, _: str) -> int:
        raise self.error

    def flush(self) -> None:
        raise self.error

    def isatty(self) -> bool:
        raise self.error


def broken() -> dict[str, Any]:
    closed = io.StringIO()
    closed.close()
    return {
        "pipe": Broken(BrokenPipeError(32, "Broken pipe")),
        "disk": Broken(OSError(28, "No space left on device")),
        "closed": closed,
        "none": None,
    }


@pytest.mark.parametrize("how", broken())
def test_broken_standard_error_raises_nothing(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(sys, "stderr", broken()[how])
    log.configure_logging("auto", "info")
    structlog.get_logger().error("event")
    logging.getLogger("some.package").error("event")


def test_process_without_standard_error_can_log() -> None:
    program = "from sso import log; import structlog; log.configure_logging('auto', 'info')"
    program += "; structlog.get_logger().error('x')"
    done = subprocess.run(
        ["/bin/sh", "-c", '"$0" -c "$1; print(1)" 2>&-', sys.executable, program],
        stdout=subprocess.PIPE,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "1\n")


def test_console_lines_have_colours_on_a_terminal_only(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import structlog\nfrom sso import log\nlog.configure_logging('console', 'info')\n"
        "structlog.get_logger().info('something.happened')\n"
    )
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm"}
    assert "\x1b[" in run_sso_on_terminal((), environment, script=str(program))[1]
    assert "\x1b[" not in run_sso_on_terminal((), environment | {"NO_COLOR": "1"}, script=str(program))[1]
    piped = forked_program.run((), script=str(program), env=environment, cwd=tmp_path)
    assert "something.happened" in piped.stderr
    assert "\x1b[" not in piped.stderr
