"""Checks of the files, the account and the limits on this machine."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from sso.config import Settings
from sso.doctor.finding import Finding


def files(settings: Settings) -> Iterator[Finding]:
    folder = settings.data_dir
    if folder.exists():
        yield Finding(
            "data directory", folder.is_dir(), str(folder.resolve()), "this path is not a directory: move the file away"
        )
    else:
        yield Finding("data directory", True, f"{folder.resolve()} is created at the first start")
    for path in (settings.key_file, settings.data_dir / "mail", *settings.data_dir.glob("keys/*.pem")):
        if path.exists() and (path != settings.key_file or settings.secret_key is None):
            yield _mode(path)


def _mode(path: Path) -> Finding:
    mode = stat.S_IMODE(path.stat().st_mode)
    allowed = 0o700 if path.is_dir() else 0o644 if path.suffix == ".pem" else 0o600
    return Finding("file mode", mode & ~allowed == 0, f"{path} is {mode:04o}", f"chmod {allowed:o} {path}")


def account() -> Finding:
    is_root = os.geteuid() == 0
    return Finding(
        "account",
        not is_root,
        "this command runs as root" if is_root else f"this command runs as uid {os.geteuid()}",
        "set SSO_USER to a dedicated account: root is needed only to listen on ports below 1024",
        warning=True,
    )
