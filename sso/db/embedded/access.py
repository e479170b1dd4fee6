"""Which accounts may use an embedded PostgreSQL: the one it runs as, and root.

If root starts it, it runs under a uid of its own. The account ``nobody``, which earlier versions used, is shared with
programs that are not trusted: they could connect, and change the files.
"""

import contextlib
import os
import pwd
from pathlib import Path

from sso.db.embedded.files import Account, give, nobody, postgres_account
from sso.db.embedded.paths import socket_path
from sso.db.embedded.wal_archive import archive_folder, stored_archive

MAP = "sso"


def claim_files(home: Path) -> Account:
    """Returns the account of PostgreSQL. Files of an earlier version, which belong to nobody, are given to it.

    No process of PostgreSQL may exist. If nobody owns the directory itself, that account has started it, and keeps it.
    """
    account, data = postgres_account(home), home / "data"
    if os.geteuid() or account != nobody() or home.stat().st_uid != 0:
        return account
    new = postgres_account(home / "none")
    _remove_socket(socket_path(home), account)
    if archive := stored_archive(home):
        with contextlib.suppress(OSError):  # the archive may be away for a while
            give(archive_folder(archive, data), account, new)
    give(data, account, new)
    return new


def _remove_socket(directory: Path, owner: Account) -> None:
    """It is created again by its new owner."""
    if directory.exists() and directory.lstat().st_uid == owner.uid:
        for path in directory.glob(".s.PGSQL.*"):
            path.unlink()
        directory.rmdir()


def write_access_rules(data: Path, account: Account) -> None:
    """Lets only the account of PostgreSQL and root connect, whatever rules the data directory has had."""
    names = [_name(uid) for uid in {0, account.uid}]
    known = sorted(name for name in names if name)
    # Without a name, PostgreSQL cannot tell who connects. Then the mode of the socket's directory is the protection.
    method = f"peer map={MAP}" if _name(os.geteuid()) else "trust"
    rules = "".join(f"local {databases} sso {method}\n" for databases in ("all", "replication"))
    _write(data / "pg_hba.conf", f"# Written at each start.\n{rules}", account)
    _write(data / "pg_ident.conf", "".join(f'{MAP} "{name}" sso\n' for name in known), account)


def _name(uid: int) -> str | None:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None


def _write(path: Path, text: str, account: Account) -> None:
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        if os.geteuid() == 0:
            os.fchown(file.fileno(), *account)
    draft.rename(path)
