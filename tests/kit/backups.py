"""Commands of backups, and archives of WAL segments."""

import subprocess
from pathlib import Path

from tests.faults import apply
from tests.kit.constants import changed
from tests.kit.server import QUICK, Server, run_sso, until

# A passphrase costs little. Backups can be restored with the same settings only.
CHEAP = QUICK | changed({"sso.backup.secrets.SCRYPT": {"length": 32, "n": 2**4, "r": 8, "p": 1}})


def sso(folder: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return run_sso(folder, *arguments, **CHEAP, **settings)


PASSWORD = "a long password"


def add_user(server: Server, name: str) -> None:
    apply(server, {"users": [{"login": f"{name}@example.com", "password": PASSWORD}]})


def wait_until_stopped(data_dir: Path) -> None:
    """PostgreSQL archives its last segment while it stops."""
    assert until(lambda: not (data_dir / "postgres/data/postmaster.pid").exists())


def segments(archive: Path) -> set[str]:
    return {path.name for path in archive.glob("*/*.gz")}
