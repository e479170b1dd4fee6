"""``sso upgrade-db``: moves the embedded database to a new major version of PostgreSQL.

The new version cannot read the old data directory. The database is copied from the old server to a new data directory,
and the old one is kept as ``data.old-15`` (the old major version). A backup file can replace the old server.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from sso.backup import BackupError, postgres_tools
from sso.db.embedded.access import claim_files
from sso.db.embedded.binaries import Binaries, data_version, environment, find_binaries, installs
from sso.db.embedded.files import Account, Lock, reachable, sync
from sso.db.embedded.paths import postgres_directory
from sso.db.embedded.start import SETTINGS, create_cluster
from sso.db.embedded.temporary_server import temporary_server, unused
from sso.db.standalone import fetch_value

OLD_PORT, NEW_PORT = 5433, 5434


class Upgrade(Struct, frozen=True):
    """An upgrade for which PostgreSQL is stopped and stays stopped."""

    home: Path
    account: Account
    running: Lock
    binaries: Binaries
    old_major: str

    @property
    def kept(self) -> Path:
        return self.home / f"data.old-{self.old_major}"

    @contextmanager
    def old_server(self, bin_directory: Path) -> Iterator[str]:
        """Yields the DSN of the old database."""
        data = self.home / "data"
        with temporary_server(bin_directory, self.home, data, self.account, self.running, OLD_PORT, {}) as server:
            server.wait_until_ready()
            yield server.dsn

    @contextmanager
    def new_server(self) -> Iterator[str]:
        """Yields the DSN of a new, empty database. It replaces the old one at the end, unless an error occurs."""
        new = self.home / "data.upgraded"
        create_cluster(new, self.account, self.binaries, self.running)
        try:
            with temporary_server(
                self.binaries.bin, self.home, new, self.account, self.running, NEW_PORT, SETTINGS
            ) as server:
                server.wait_until_ready()
                yield server.dsn
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        os.sync()
        (self.home / "data").rename(self.kept)
        finish_swap(self.home)


@contextmanager
def begin_upgrade(data_dir: Path) -> Iterator[Upgrade | None]:
    """Yields None if the data directory already fits the installed PostgreSQL."""
    home = postgres_directory(data_dir)
    with unused(home) as running:
        account = claim_files(home)
        binaries = find_binaries(account)
        finish_swap(home)
        if not (home / "data").exists():
            raise BackupError(f"{home} has no database: there is nothing to upgrade")
        version = data_version(home / "data")
        if version == binaries.major:
            yield None
            return
        if int(version) > int(binaries.major):
            raise BackupError(f"the database is of PostgreSQL {version}, newer than the installed {binaries.version}")
        upgrade = Upgrade(home, account, running, binaries, version)
        if upgrade.kept.exists():
            raise BackupError(f"{upgrade.kept} exists: move it away, or remove it")
        yield upgrade


def finish_swap(home: Path) -> None:
    """Gives the new data directory its name, also after an interruption between the two renames."""
    data, new = home / "data", home / "data.upgraded"
    if new.exists() and not data.exists():
        new.rename(data)
        sync(home)


def find_old_binaries(upgrade: Upgrade, given: Path | None) -> Path:
    """Returns the ``bin`` directory of the old major version: the given one, or the wheel's."""
    candidates = [given] if given else [install / "bin" for install in installs()]
    found = [path for path in candidates if _major(path) == upgrade.old_major]
    if not found:
        raise BackupError(
            f"--old-bin: {given} has no PostgreSQL {upgrade.old_major}, which wrote the database"
            if given
            else f"the database is of PostgreSQL {upgrade.old_major}, and its programs are not installed: name their "
            f"directory with --old-bin (Debian: /usr/lib/postgresql/{upgrade.old_major}/bin), or a backup with --from"
        )
    if os.geteuid() == 0 and not reachable(found[0] / "postgres", upgrade.account):
        raise BackupError(f"the account of PostgreSQL (uid {upgrade.account.uid}) cannot reach {found[0]}")
    return found[0]


def _major(bin_directory: Path) -> str:
    try:
        output = subprocess.run(  # noqa: S603 - a program that the operator names
            [str(bin_directory / "postgres"), "--version"],
            capture_output=True,
            text=True,
            env=environment(),
            check=False,
        ).stdout
    except OSError:
        return ""
    version = re.search(r"(\d+)(\.\d+|devel|beta\d|rc\d)", output)
    return version[1] if version else ""


def copy_database(old_dsn: str, new_dsn: str, progress: Callable[[int], None]) -> None:
    """Copies the database in one transaction, and checks that all tables have arrived."""

    def counted() -> Iterator[bytes]:
        done = 0
        for chunk in postgres_tools.dump(old_dsn):
            yield chunk
            done += len(chunk)
            progress(done)

    postgres_tools.restore(new_dsn, counted())
    tables = "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    if fetch_value(old_dsn, tables) != fetch_value(new_dsn, tables):
        raise BackupError("the new database does not have all tables of the old one")
