"""Starts programs on a machine and ends them."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from scripts.local_cluster import network
from scripts.local_cluster.layout import Machine

_started: list[subprocess.Popen[bytes]] = []  # kept: Python warns of a running process that nothing refers to
# PostgreSQL refuses to run as root. In a user namespace the process has another user id, and still reads this checkout.
UNPRIVILEGED = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--")


def command(machine: Machine, *program: str) -> list[str]:
    """Returns the command that runs a program on a machine."""
    return ["ip", "netns", "exec", machine.namespace, *UNPRIVILEGED, *program]


def start(machine: Machine, service: str, program: Sequence[str], environment: Mapping[str, str]) -> None:
    """Starts a service. Its output goes to a log file in the folder of the machine."""
    with (machine.folder / f"{service}.log").open("ab") as log:
        process = subprocess.Popen(
            command(machine, *program),
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=machine.folder,
            start_new_session=True,
        )
    _started.append(process)
    _pid_file(machine, service).write_text(f"{process.pid} {_start_time(process.pid)}")


def is_running(machine: Machine, service: str) -> bool:
    return _pid(machine, service) is not None


def kill(machine: Machine, service: str) -> bool:
    """Kills all processes of a service at once, so that none can end in order. Returns False if it does not run."""
    service_pid = _pid(machine, service)
    if service_pid is None:
        return False
    for pid in network.pids(machine.namespace):
        with suppress(ProcessLookupError):
            if os.getsid(pid) == service_pid:
                os.kill(pid, signal.SIGKILL)
    return True


def kill_all(namespaces: Sequence[str]) -> None:
    """Kills every process in the namespaces and waits until they have ended."""
    end = time.monotonic() + 30
    while found := [pid for namespace in namespaces for pid in network.pids(namespace)]:
        if time.monotonic() > end:
            raise TimeoutError(f"processes do not end: {found}")
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def _pid_file(machine: Machine, service: str) -> Path:
    return machine.folder / f"{service}.pid"


def _pid(machine: Machine, service: str) -> int | None:
    """Returns the pid of a service, None if it has ended, even if another process has the number now."""
    try:
        pid, started = _pid_file(machine, service).read_text().split()
    except (FileNotFoundError, ValueError):
        return None
    return int(pid) if _start_time(int(pid)) == started else None


def _start_time(pid: int) -> str:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if fields[0] in "ZX" else fields[19]
