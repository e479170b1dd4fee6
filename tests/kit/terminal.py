"""Runs a program on a pseudo-terminal, as a person would."""

import os
import pty
import subprocess
from collections.abc import Mapping, Sequence


def run_on_terminal(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """Returns the exit code and everything that the program wrote to the terminal."""
    controller, terminal = pty.openpty()
    with subprocess.Popen(command, env=environment, stdin=terminal, stdout=terminal, stderr=terminal) as process:
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
