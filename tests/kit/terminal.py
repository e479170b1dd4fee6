"""Runs a program on a pseudo-terminal, as a person would."""

import os
import pty
import subprocess
from collections.abc import Mapping, Sequence


def run_on_terminal(
    command: Sequence[str], environment: Mapping[str, str], *, stdin: int | None = None
) -> tuple[int, str]:
    """Returns the exit code and everything that the program wrote to the terminal, from which it also reads.

    ``stdin`` is another file descriptor to read from, or subprocess.DEVNULL.
    """
    controller, terminal = pty.openpty()
    reads_from = terminal if stdin is None else stdin
    with subprocess.Popen(command, env=environment, stdin=reads_from, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        output = b""
        try:
            while part := os.read(controller, 65536):
                output += part
        except OSError:  # Linux reports EIO when the last process has closed the terminal
            pass
        finally:
            os.close(controller)
    return process.returncode, output.decode().replace("\r\n", "\n")
