"""The WAL archive of the embedded database, with real servers."""

import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from sso.db.embedded.files import Account, EmbeddedError
from sso.db.embedded.wal_archive import archive_settings, check_writable, store_archive
from tests.faults import open_folder
from tests.kit.backups import add_user, segments, sso, wait_until_stopped
from tests.kit.long_tests import takes_long
from tests.kit.postgres import execute
from tests.kit.server import QUICK, running, until

pytestmark = pytest.mark.timeout(300)


def dsn_of(data_dir: Path) -> str:
    return f"postgresql://sso@/sso?host={data_dir}/postgres/socket&port=5432"


@takes_long
def test_failing_archiver_is_reported_and_no_segment_is_replaced() -> None:
    with open_folder() as folder:
        archive = folder / "wal"
        archive.mkdir(0o755)
        with running(folder, **QUICK, SSO_WAL_ARCHIVE=str(archive)) as server:
            (own,) = archive.iterdir()
            execute(dsn_of(folder / "data"), "SELECT pg_switch_wal()")
            assert until(lambda: segments(archive))
            first = max(segments(archive))
            other = own / f"{first[:16]}{int(first[16:24], 16) + 1:08X}.gz"
            other.write_bytes(b"the segment of another database")
            execute(dsn_of(folder / "data"), "CREATE TABLE more (n int)")
            execute(dsn_of(folder / "data"), "SELECT pg_switch_wal()")

            def report() -> str:
                output = server.sso("doctor", check=False).stdout
                return output if "FAIL  WAL archive" in output else ""

            assert f"archiving of {other.name[:24]} fails" in until(report, 60)
            assert f"last segment archived: {first[:24]}" in report()
            assert other.read_bytes() == b"the segment of another database"
            other.unlink()
            execute(dsn_of(folder / "data"), "CREATE TABLE still_more (n int)")
            execute(dsn_of(folder / "data"), "SELECT pg_switch_wal()")  # wakes the archiver
            assert until(other.exists, 90)
            assert until(lambda: not report())
            assert not list(own.glob(".*"))


def test_segments_do_not_go_to_the_mount_point_of_an_archive_that_is_away(tmp_path: Path) -> None:
    home, archive = tmp_path / "postgres", tmp_path / "wal"
    for folder in (home / "data/global", home / "data/pg_wal/archive_status", archive):
        folder.mkdir(parents=True)
    control, segment = home / "data/global/pg_control", home / "data/pg_wal/0"
    control.write_bytes(bytes(8))
    segment.write_bytes(b"changes")
    store_archive(home, archive)

    def archives() -> bool:
        """Starts PostgreSQL as far as the archive is concerned, and archives a segment."""
        settings = archive_settings(home, Account(os.geteuid(), os.getegid()))
        command = settings["archive_command"].replace("%f", "0").replace("%p", str(segment))
        return subprocess.run(["sh", "-c", command], capture_output=True, check=False).returncode == 0

    assert archives()
    archive.rename(tmp_path / "away")
    archive.mkdir()  # the mount point
    assert not archives()
    assert not list(archive.iterdir())
    control.write_bytes(bytes([1, *bytes(7)]))  # a new database: nothing says that it had a folder
    assert archives()
    store_archive(home, None)
    shutil.rmtree(archive)
    archive.mkdir()
    store_archive(home, archive)  # switched off and on: the archive begins anew
    assert archives()
    segment.write_bytes(b"others")
    assert not archives()


@takes_long
def test_archive_stays_switched_on_for_commands_without_the_setting() -> None:
    with open_folder() as folder:
        archive = folder / "wal"
        archive.mkdir(0o755)
        with running(folder, **QUICK, SSO_WAL_ARCHIVE=str(archive)) as server:
            refusal = sso(folder, "serve", SSO_DATA_DIR=str(folder / "data"), SSO_BIND="127.0.0.1:0")
            assert refusal.returncode == 1
            assert "SSO_WAL_ARCHIVE: PostgreSQL" in refusal.stderr
            assert f"already runs with {archive}" in refusal.stderr
        wait_until_stopped(folder / "data")
        before = segments(archive)
        del server.settings["SSO_WAL_ARCHIVE"]
        add_user(server, "x")
        wait_until_stopped(folder / "data")
        assert segments(archive) > before
        with running(folder, **QUICK, SSO_LOG_FORMAT="json") as server:
            assert server.log_events("embedded_postgres.archiving_disabled")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"SSO_WAL_ARCHIVE": "/x", "SSO_DATABASE_URL": "postgresql://h/d"}, "is for the embedded PostgreSQL"),
        ({"SSO_WAL_ARCHIVE": "wal"}, "must be an absolute path"),
        ({"SSO_WAL_ARCHIVE": "/nonexistent/wal"}, "/nonexistent/wal is not a directory: create it"),
    ],
)
def test_unusable_archive_is_refused(settings: dict[str, str], message: str, tmp_path: Path) -> None:
    done = sso(tmp_path, "serve", **settings, SSO_DATA_DIR=str(tmp_path / "data"), SSO_BIND="127.0.0.1:0")
    assert done.returncode == 1
    assert "sso: SSO_WAL_ARCHIVE: " in done.stderr
    assert message in done.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only for root, whose PostgreSQL runs under another account")
def test_archive_that_postgres_cannot_reach_is_refused() -> None:
    with open_folder() as folder:
        (folder / "closed/wal").mkdir(parents=True)
        (folder / "closed").chmod(0o700)
        settings = {"SSO_WAL_ARCHIVE": str(folder / "closed/wal"), "SSO_DATA_DIR": str(folder / "data")}
        done = sso(folder, "serve", **settings, SSO_BIND="127.0.0.1:0")
        assert (done.returncode, "cannot reach" in done.stderr) == (1, True), done.stderr


def test_archive_that_a_systemd_unit_makes_read_only_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """ProtectSystem=strict does so. The mode of the folder allows to write."""
    with open_folder() as archive:
        account = Account(os.geteuid(), os.getegid())
        check_writable(archive, account)
        monkeypatch.setattr(os, "statvfs", lambda _path: SimpleNamespace(f_flag=os.ST_RDONLY))
        with pytest.raises(EmbeddedError, match=f"is read-only .* add ReadWritePaths={archive} to its unit"):
            check_writable(archive, account)
