"""Temporary files in memory: PostgreSQL waits for the disk in many tests, and a slow one doubles the time of a run."""

import os
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
NEEDED = 8 * 2**30  # bytes; a run with five processes uses less


def use_memory_for_temporary_files() -> None:
    """Sets the folder for temporary files of this process and those that it starts, unless TMPDIR is set.

    Does nothing if the machine has too little memory, or if programs cannot be executed there, as in some containers.
    """
    if "TMPDIR" not in os.environ and _is_large_enough():
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None  # it is read again


def _is_large_enough() -> bool:
    try:
        folder = os.statvfs(MEMORY)
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return False
    if folder.f_flag & (os.ST_NOEXEC | os.ST_RDONLY) or not os.access(MEMORY, os.W_OK):
        return False
    available = {name: int(value.split()[0]) * 1024 for name, _, value in (line.partition(":") for line in lines)}
    return min(folder.f_bavail * folder.f_frsize, available.get("MemAvailable", 0)) >= NEEDED
