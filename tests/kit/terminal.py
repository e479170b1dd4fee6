"""Runs a program on a pseudo-terminal, as a person would."""

import fcntl
import os
import pty
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tests.kit.forked_program import ForkedProcess

COMMAND_S = 110
Answers = Sequence[tuple[str, str]]


def run_on_terminal(
    command: Sequence[str], environment: Mapping[str, str], *, stdin: int | None = None
) -> tuple[int, str]:
    """Returns the exit code and everything that the program wrote to the terminal, from which it also reads.

    ``stdin`` is another file descriptor to read from, or subprocess.DEVNULL.
    """
    controller, terminal = pty.openpty()
    with subprocess.Popen(
        command,
        env=environment,
        stdin=terminal if stdin is None else stdin,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(1, termios.TIOCSCTTY, 0),  # passwords are read from the controlling terminal
    ) as process:
        os.close(terminal)
        output = _answer(controller, ())
    return process.returncode, output


def run_sso_on_terminal(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    stdin: IO[bytes] | None = None,
    answers: Answers = (),
    script: str = "",
) -> tuple[int, str]:
    """Runs a command of the program `sso`, or a script in Python, in a forked process (kit/forked_program.py).

    ``answers`` are prompts in their order, each with the line that is typed once the prompt is shown.
    """
    controller, terminal = pty.openpty()
    with os.fdopen(terminal, "r+b", buffering=0) as file:
        process = ForkedProcess(
            arguments, env=environment, cwd=Path.cwd(), stdin=stdin or file, stdout=file, stderr=file, script=script
        )
    output = _answer(controller, answers)
    return process.wait(COMMAND_S), output


def _answer(controller: int, answers: Answers) -> str:
    """Types the answers, and returns the output at the end of the program."""
    output = b""
    left = list(answers)
    try:
        while part := os.read(controller, 65536):
            output += part
            if left and output.endswith(left[0][0].encode()):
                os.write(controller, f"{left.pop(0)[1]}\n".encode())
    except OSError:  # Linux reports EIO when the last process has closed the terminal
        pass
    finally:
        os.close(controller)
    return output.decode().replace("\r\n", "\n")
