"""Measures how long commands take to start: CPU time (user and system) of each, and its ratio to `python -c pass`.

CPU time hardly depends on other load, unlike the time that passes. The commands alternate, so that a slow minute of the
machine does not count for one of them only.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from scripts.benchmarks.report import arguments, progress, show
from tests.kit.server import running

SSO = (sys.executable, "-m", "sso")
COMMANDS: dict[str, tuple[str, ...]] = {
    "python -c pass": (sys.executable, "-c", "pass"),
    "sso --version": (*SSO, "--version"),
    "sso --help": (*SSO, "--help"),
    "sso user --help": (*SSO, "user", "--help"),
    "completion of sso cl": SSO,
    "sso user list": (*SSO, "user", "list"),
    "sso client list": (*SSO, "client", "list"),
    "sso key list": (*SSO, "key", "list"),
    "sso app list": (*SSO, "app", "list"),
    "sso project list": (*SSO, "project", "list"),
    "sso audit": (*SSO, "audit"),
}
COMPLETION = {"COMP_WORDS": "sso cl", "COMP_CWORD": "1", "_SSO_COMPLETE": "bash_complete"}


def cpu_time(command: tuple[str, ...], environment: Mapping[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=10, help="runs of each command")
    options = parser.parse_args()
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as server:
        environment = {**os.environ, **server.settings}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled files are part of an installation
        for number in range(options.rounds + 1):
            progress(f"round {number} of {options.rounds}")
            for name, command in COMMANDS.items():
                more = COMPLETION if command is SSO else {}
                taken = cpu_time(command, environment | more)
                if number:  # the first round compiles modules and fills the file cache
                    times[name].append(taken)
    medians = {name: statistics.median(values) for name, values in times.items()}
    reference = medians["python -c pass"]
    rows = [
        {
            "command": name,
            "CPU ms": round(median * 1000),
            "least": round(min(times[name]) * 1000),
            "ratio": round(median / reference, 1),
        }
        for name, median in medians.items()
    ]
    show(rows, options.out)


if __name__ == "__main__":
    main()
