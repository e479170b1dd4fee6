"""Giving up root's privileges: the service runs under the account of SSO_USER once its sockets are open."""

import os
import pwd
import sys
from pathlib import Path

import sso
from sso.config import ConfigError
from sso.core.bind_address import Bind
from sso.db.embedded.files import Account, reachable


def drop_privileges(name: str | None, data_dir: Path, binds: tuple[Bind, ...] = ()) -> None:
    """Becomes the account for good. Does nothing if none is set, or if it is the present one.

    Raises ConfigError if the account could not run the service. Files of Unix sockets become the account's; the account
    may own their folder, so a link that it puts in their place is never followed.
    """
    if name is None:
        return
    entry = pwd.getpwnam(name)
    if os.geteuid() == entry.pw_uid:
        return
    if os.geteuid() != 0:
        raise ConfigError(f"SSO_USER: only root can switch to another account: start as root or as {name}")
    _check_program(entry)
    _give_data_directory(entry, data_dir)
    for bind in binds:
        if bind.path:
            os.chown(bind.path, entry.pw_uid, entry.pw_gid, follow_symlinks=False)
    _become(entry)
    if not os.access(data_dir, os.R_OK | os.W_OK | os.X_OK):
        raise ConfigError(f"SSO_DATA_DIR: the account {name} cannot reach {data_dir.resolve()}: keep it elsewhere")


def _check_program(entry: pwd.struct_passwd) -> None:
    """After the switch, modules are still imported and the embedded PostgreSQL is started."""
    account = Account(entry.pw_uid, entry.pw_gid)
    for path in (Path(sys.executable), Path(os.__file__).parent, Path(sso.__file__).parent):
        if not reachable(path, account):
            raise ConfigError(f"SSO_USER: the account {entry.pw_name} cannot read the program at {path}")


def _give_data_directory(entry: pwd.struct_passwd, data_dir: Path) -> None:
    """A new directory is made for the account. What is there is never given away: links in it could lead anywhere."""
    if not data_dir.exists():
        data_dir.parent.mkdir(parents=True, exist_ok=True)
        data_dir.mkdir(0o700)
        os.chown(data_dir, entry.pw_uid, entry.pw_gid, follow_symlinks=False)
    pointer = data_dir / "postgres.location"
    elsewhere = [Path(pointer.read_text().strip())] if pointer.exists() else []
    inside = [data_dir / part for part in ("secret.key", "mail", "keys", "postgres", "postgres/data")]
    for path in (data_dir, *inside, *elsewhere):
        if path.exists() and path.stat().st_uid != entry.pw_uid:
            folders = " ".join(str(folder) for folder in (data_dir.resolve(), *elsewhere))
            raise ConfigError(
                f"SSO_USER: {path} does not belong to {entry.pw_name}: stop all that uses it, then run "
                f"`chown -R {entry.pw_name}: {folders}`"
            )


def _become(entry: pwd.struct_passwd) -> None:
    os.initgroups(entry.pw_name, entry.pw_gid)
    os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
    os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)
    # Libraries look for files in the home directory.
    os.environ |= {"HOME": entry.pw_dir, "USER": entry.pw_name, "LOGNAME": entry.pw_name}
