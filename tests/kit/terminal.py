"""Runs a program on a pseudo-terminal, as a person would."""

import fcntl
import os
import pty
import subprocess
import termios
from collections.abc import Mapping, Sequence


def run_on_terminal(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    stdin: int | None = None,
    answers: Sequence[tuple[str, str]] = (),
) -> tuple[int, str]:
    """Returns the exit code and everything that the program wrote to the terminal, from which it also reads.

    ``stdin`` is another file descriptor to read from, or subprocess.DEVNULL. ``answers`` are prompts in their order,
    each with the line that is typed once the prompt is shown.
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
    return process.returncode, output.decode().replace("\r\n", "\n")
