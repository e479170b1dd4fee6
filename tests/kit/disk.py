"""A small disk that a test may fill. It needs root."""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SIZE_MB = 400
PIECE = bytes(2**20)


class SmallDisk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, seconds: float) -> None:
        """Fills the disk and keeps it full for a while: what others free is taken."""
        filler = self.folder / "filler"
        end = time.monotonic() + seconds
        with filler.open("ab", buffering=0) as file:
            while time.monotonic() < end:
                try:
                    file.write(PIECE)
                except OSError:
                    time.sleep(0.05)
        filler.unlink()


@contextmanager
def small_disk() -> Iterator[SmallDisk | None]:
    """Yields None if this account may not mount one."""
    folder = Path(tempfile.mkdtemp(prefix="sso-disk-"))
    folder.chmod(0o711)
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m,mode=711", "none", str(folder)]
    is_mounted = os.geteuid() == 0 and subprocess.run(command, check=False, capture_output=True).returncode == 0
    try:
        yield SmallDisk(folder) if is_mounted else None
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()
