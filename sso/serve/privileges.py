"""Drops the privileges of root: after its sockets are open, the service runs under the account of SSO_USER."""

import os
import pwd
import sys
from pathlib import Path

import sso
from sso.config import ConfigError
from sso.core.bind_address import Bind
from sso.db.embedded.files import Account, reachable


def drop_privileges(name: str | None, data_dir: Path, binds: tuple[Bind, ...] = (), *, may_create: bool = True) -> None:
    """Switches to the account permanently. Does nothing if ``name`` is None or the current account.

    Raises ConfigError if the account could not run the service. With ``may_create``, a missing data directory is
    created for the account. The files of Unix sockets are given to it. Symbolic links are not followed: the account may
    own the directory, and could put a link in place of a socket.
    """
    if name is None:
        return
    entry = pwd.getpwnam(name)
    if os.geteuid() == entry.pw_uid:
        return
    if os.geteuid() != 0:
        raise ConfigError(f"SSO_USER: only root can switch to another account: start as root or as {name}")
    _check_program_readable(entry)
    exists = data_dir.exists()
    if may_create and not exists:
        _create_data_directory(entry, data_dir)
    _check_data_directory(entry, data_dir)
    for bind in binds:
        if bind.path:
            os.chown(bind.path, entry.pw_uid, entry.pw_gid, follow_symlinks=False)
    _switch_user(entry)
    if (exists or may_create) and not os.access(data_dir, os.R_OK | os.W_OK | os.X_OK):
        raise ConfigError(f"SSO_DATA_DIR: the account {name} cannot reach {data_dir.resolve()}: keep it elsewhere")


def _check_program_readable(entry: pwd.struct_passwd) -> None:
    """Modules are still imported, and the embedded PostgreSQL is started, under the new account."""
    account = Account(entry.pw_uid, entry.pw_gid)
    for path in (Path(sys.executable), Path(os.__file__).parent, Path(sso.__file__).parent):
        if not reachable(path, account):
            raise ConfigError(f"SSO_USER: the account {entry.pw_name} cannot read the program at {path}")


def _create_data_directory(entry: pwd.struct_passwd, data_dir: Path) -> None:
    data_dir.parent.mkdir(parents=True, exist_ok=True)
    data_dir.mkdir(0o700)
    os.chown(data_dir, entry.pw_uid, entry.pw_gid, follow_symlinks=False)


def _check_data_directory(entry: pwd.struct_passwd, data_dir: Path) -> None:
    """Existing files are not given to the account: they may be links."""
    pointer = data_dir / "postgres.location"
    outside = [Path(pointer.read_text().strip())] if pointer.exists() else []
    inside = [data_dir / part for part in ("secret.key", "mail", "keys", "postgres", "postgres/data")]
    for path in (data_dir, *inside, *outside):
        if path.exists() and path.stat().st_uid != entry.pw_uid:
            folders = " ".join(str(folder) for folder in (data_dir.resolve(), *outside))
            raise ConfigError(
                f"SSO_USER: {path} does not belong to {entry.pw_name}: stop the service, then run "
                f"`chown -R {entry.pw_name}: {folders}`"
            )


def _switch_user(entry: pwd.struct_passwd) -> None:
    os.initgroups(entry.pw_name, entry.pw_gid)
    os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
    os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)
    # Libraries read files in the home directory.
    os.environ |= {"HOME": entry.pw_dir, "USER": entry.pw_name, "LOGNAME": entry.pw_name}
