"""Point-in-time recovery of the embedded database: base backup and restore, with real servers."""

import datetime
import hashlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from sso.backup import BackupError
from sso.backup.base_backup_reader import BaseBackup
from sso.backup.manifest import Manifest
from sso.backup.point_in_time import restore_base
from sso.config import Settings
from sso.core.encryption import MasterKey
from sso.db.migrate import HEAD
from tests.faults import open_folder
from tests.kit.backups import CHEAP, PASSWORD, add_user, segments, sso, wait_until_stopped
from tests.kit.forked_program import ForkedProcess
from tests.kit.long_tests import takes_long
from tests.kit.server import QUICK, Server, clean_environment, running, until

pytestmark = pytest.mark.timeout(300)


def can_sign_in(server: Server, name: str) -> bool:
    body = {"login": f"{name}@example.com", "password": PASSWORD}
    return httpx.post(f"{server.base_url}/proxy/api/login", json=body, timeout=60).status_code == 200


@dataclass(frozen=True)
class Recorded:
    """A service that has written A, B and C, one after the other. It has stopped."""

    folder: Path
    archive: Path
    base: Path
    passphrase: Path
    after_a: str
    after_b: str

    def with_own_archive(self, name: str) -> "Recorded":
        """Returns it with a copy of the archive, which another service may continue."""
        archive = self.folder / f"archive of {name}"
        subprocess.run(["cp", "-a", str(self.archive), str(archive)], check=True)
        return replace(self, archive=archive)

    def restore(self, data_dir: Path, *options: str, base: Path | None = None) -> "tuple[int, str, str]":
        settings = {"SSO_DATA_DIR": str(data_dir), "SSO_WAL_ARCHIVE": str(self.archive)}
        keys = ("--passphrase-file", str(self.passphrase))
        done = sso(self.folder, "restore", "--base", str(base or self.base), *keys, *options, **settings)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def recorded() -> Iterator[Recorded]:
    with open_folder() as folder:
        archive, base, passphrase = folder / "wal", folder / "base", folder / "passphrase"
        archive.mkdir(0o755)
        passphrase.write_text("correct horse battery\n")
        with running(folder, **CHEAP, SSO_WAL_ARCHIVE=str(archive)) as server:
            made = server.sso("backup", "--base", str(base), "--passphrase-file", str(passphrase))
            assert "with keys" in made.stdout
            add_user(server, "a")
            after_a = moment_between_changes()
            add_user(server, "b")
            after_b = moment_between_changes()
            add_user(server, "c")
        wait_until_stopped(folder / "data")
        yield Recorded(folder, archive, base, passphrase, after_a, after_b)


def moment_between_changes() -> str:
    """Returns a time that differs clearly from those of the transactions before and after it."""
    time.sleep(1)
    moment = datetime.datetime.now(datetime.UTC).isoformat(sep=" ", timespec="milliseconds")
    time.sleep(1)
    return moment


def test_restore_until_a_moment_contains_earlier_changes_only(recorded: Recorded) -> None:
    recorded = recorded.with_own_archive("until")
    data_dir = recorded.folder / "until"
    code, output, errors = recorded.restore(data_dir, "--until", recorded.after_a)
    assert code == 0, errors
    assert f"restored to {recorded.after_a[:19]}" in output
    settings = {"SSO_DATA_DIR": str(data_dir), "SSO_WAL_ARCHIVE": str(recorded.archive)}
    with running(recorded.folder, **QUICK, **settings) as server:
        assert can_sign_in(server, "a")
        assert not can_sign_in(server, "b")
        # The archive goes on, on a new timeline whose history is archived as well.
        assert until(lambda: "00000002.history.gz" in segments(recorded.archive))
        add_user(server, "d")
        again = recorded.folder / "base of the restored"
        server.sso("backup", "--base", str(again), "--no-keys")
        assert "ok    WAL archive: last segment archived: 00000002" in server.sso("doctor", "--verbose").stdout
    wait_until_stopped(data_dir)
    _restore_later_moment(recorded)


def _restore_later_moment(recorded: Recorded) -> None:
    """The moment was too early. What the lost database has written after it is on the first timeline only."""
    data_dir = recorded.folder / "later"
    for options in (["--until", recorded.after_b], []):
        code, _, errors = recorded.restore(data_dir, *options)
        assert (code, "choose one with --timeline: 1 (of the base backup), 2 (left 1 before 2" in errors) == (1, True)
    code, _, errors = recorded.restore(data_dir, "--until", recorded.after_b, "--timeline", "3")
    assert (code, "--timeline: expected one that the archive has" in errors) == (1, True), errors
    assert not data_dir.exists()
    code, _, errors = recorded.restore(data_dir, "--until", recorded.after_b, "--timeline", "1")
    assert code == 0, errors
    with running(recorded.folder, **QUICK, SSO_DATA_DIR=str(data_dir), SSO_WAL_ARCHIVE=str(recorded.archive)) as server:
        assert [name for name in "abcd" if can_sign_in(server, name)] == ["a", "b"]
        assert until(lambda: "00000003.history.gz" in segments(recorded.archive))
    wait_until_stopped(data_dir)


@takes_long
def test_restore_without_a_moment_contains_everything(recorded: Recorded) -> None:
    data_dir = recorded.folder / "everything"
    code, output, errors = recorded.restore(data_dir)
    assert code == 0, errors
    assert "restored to the end of the archive" in output
    assert (data_dir / "secret.key").read_bytes() == (recorded.folder / "data/secret.key").read_bytes()
    with running(recorded.folder, **QUICK, SSO_DATA_DIR=str(data_dir)) as server:
        assert [name for name in "abc" if can_sign_in(server, name)] == ["a", "b", "c"]
    wait_until_stopped(data_dir)


def test_recovery_past_a_change_of_the_master_key_needs_the_new_key(recorded: Recorded) -> None:
    """A copy of the service changes its key after the base backup. The new key is only in the lost data directory."""
    with_change = recorded.with_own_archive("the lost")
    lost, archive = recorded.folder / "lost", with_change.archive
    subprocess.run(["cp", "-a", str(recorded.folder / "data"), str(lost)], check=True)
    (lost / "postgres/wal_archive").write_text(f"{archive}\n")
    changed = sso(recorded.folder, "key", "reseal", SSO_DATA_DIR=str(lost))
    assert (changed.returncode, "make a new base backup now" in changed.stderr) == (0, True), changed.stderr
    wait_until_stopped(lost)
    new, old = (lost / "secret.key").read_text().split()
    dropped = sso(recorded.folder, "key", "reseal", "--drop-old", SSO_DATA_DIR=str(lost))
    assert (dropped.returncode, "need the old master key: keep" in dropped.stderr) == (0, True), dropped.stderr
    wait_until_stopped(lost)

    data_dir = recorded.folder / "after the change"
    code, _, errors = with_change.restore(data_dir)
    assert (code, f"needs the master key {MasterKey.parse(new).id}" in errors) == (1, True), errors
    assert "--until before the change" in errors
    assert not list(data_dir.glob("postgres/data*"))
    assert not (data_dir / "secret.key").exists()

    shutil.copy2(lost / "secret.key", data_dir)  # the operator has saved it
    code, _, errors = with_change.restore(data_dir)
    assert code == 0, errors
    assert (data_dir / "secret.key").read_text().split() == [new, old]
    rotated = sso(recorded.folder, "key", "rotate", SSO_DATA_DIR=str(data_dir))  # decrypts the signing keys
    assert rotated.returncode == 0, rotated.stderr


@takes_long
def test_moment_outside_of_the_backup_and_the_archive_is_refused(recorded: Recorded) -> None:
    data_dir = recorded.folder / "refused"
    now = datetime.datetime.now(datetime.UTC).isoformat()
    code, _, errors = recorded.restore(data_dir, "--until", now)
    assert (code, "the archive ends before the moment of --until" in errors) == (1, True), errors
    code, _, errors = recorded.restore(data_dir, "--until", "2020-01-01 00:00:00+00")
    assert (code, "after --until: use an older one" in errors) == (1, True), errors
    assert not list((data_dir / "postgres").glob("data*"))
    for moment, message in [
        ("2020-01-01 00:00:00", "time zone"),
        ("2999-01-01 00:00:00Z", "in the past"),
        ("x", "such as"),
    ]:
        code, _, errors = recorded.restore(data_dir, "--until", moment)
        assert (code, message in errors) == (2, True), errors


@takes_long
def test_killed_restore_can_be_repeated(recorded: Recorded) -> None:
    data_dir = recorded.folder / "killed"
    settings = {"SSO_DATA_DIR": str(data_dir), "SSO_WAL_ARCHIVE": str(recorded.archive)}
    options = ["--base", str(recorded.base), "--passphrase-file", str(recorded.passphrase)]
    options += ["--until", recorded.after_a]
    process = ForkedProcess(["restore", *options], env=clean_environment(**CHEAP, **settings), cwd=recorded.folder)
    replaying = data_dir / "postgres/data.restored/postmaster.pid"
    assert until(lambda: replaying.exists() or process.poll() is not None, 60)
    process.kill()
    assert process.wait() == -9
    assert process.stdout is not None
    process.stdout.close()
    refused = sso(recorded.folder, "serve", SSO_DATA_DIR=str(data_dir), SSO_BIND="127.0.0.1:0")
    assert (refused.returncode, "was interrupted: run `sso restore --base` again" in refused.stderr) == (1, True)

    def restored() -> bool:  # the PostgreSQL of the killed command may take a moment to stop
        code, _, errors = recorded.restore(data_dir, "--until", recorded.after_a)
        assert code == 0 or "is running" in errors, errors
        return code == 0

    assert until(restored)


def test_restore_never_replaces_a_database(recorded: Recorded) -> None:
    code, _, errors = recorded.restore(recorded.folder / "data")
    assert (code, "restore into an empty data directory" in errors) == (1, True), errors


def test_missing_segment_is_reported(recorded: Recorded, tmp_path: Path) -> None:
    (folder,) = recorded.archive.iterdir()
    last = max(path.name for path in folder.glob("00000001" + "?" * 16 + ".gz"))
    number = int(last[16:24], 16) + 2
    stray = folder / f"{last[:16]}{number:08X}.gz"
    stray.write_bytes(b"")
    try:
        code, _, errors = recorded.restore(tmp_path / "data")
    finally:
        stray.unlink()
    assert (code, f"{last[:16]}{number - 1:08X}.gz is missing" in errors) == (1, True), errors
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("how", ["changed", *(pytest.param(how, marks=takes_long) for how in ("missing", "manifest"))])
def test_damaged_base_backup_is_refused(recorded: Recorded, how: str) -> None:
    base, data_dir = recorded.folder / f"base {how}", recorded.folder / f"damaged {how}"
    shutil.copytree(recorded.base, base)
    path = base / "data" / ("backup_manifest" if how == "manifest" else "global/1262")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(data)
    code, _, errors = recorded.restore(data_dir, base=base)
    assert (code, "damaged" in errors) == (1, True), errors
    assert not list(data_dir.glob("postgres/data*"))


def test_base_backup_is_authenticated_with_the_passphrase(recorded: Recorded) -> None:
    """Digests that fit are not enough: they, the WAL beside them and the list of files must be those of the backup."""
    base, data_dir = recorded.folder / "base forged", recorded.folder / "forged"
    shutil.copytree(recorded.base, base)

    def refusal() -> str:
        code, _, errors = recorded.restore(data_dir, "--unauthenticated", base=base)
        assert not list(data_dir.glob("postgres/data*"))
        assert code == 1, errors
        return errors

    segment = next((base / "data/pg_wal").glob("0*"))
    original = segment.read_bytes()
    segment.write_bytes(bytes(len(original)))
    assert f"digest of data/pg_wal/{segment.name} differs" in refusal()
    segment.write_bytes(original)
    added = base / "data/added"
    added.touch()
    assert "digest of data/added differs" in refusal()
    added.unlink()
    postgres_list = base / "data/backup_manifest"
    lines = postgres_list.read_bytes().splitlines(keepends=True)
    body = b"".join(lines[:-1]).replace(b'"Size": ', b'"Size":  ')
    postgres_list.write_bytes(body + f'"Manifest-Checksum": "{hashlib.sha256(body).hexdigest()}"}}\n'.encode())
    assert "digest of data/backup_manifest differs" in refusal()
    (base / "digests.json").unlink()
    assert "its digests are missing" in refusal()


def test_incomplete_base_backup_is_refused(recorded: Recorded, tmp_path: Path) -> None:
    code, _, errors = recorded.restore(tmp_path / "data", base=tmp_path)
    assert (code, "not a base backup, or it is incomplete" in errors) == (1, True), errors


def _refuse_bytes(_done: int, _all: int) -> None:
    pytest.fail("a file was copied")


def test_base_backup_of_another_major_version_is_refused_before_anything_is_copied() -> None:
    manifest = Manifest("0.1.0", HEAD, "16.4", "2026-11-15T12:00:00+00:00", has_keys=False)
    with open_folder() as folder:
        backup = BaseBackup(folder / "base", manifest, None, {})
        with pytest.raises(BackupError, match=r"^the base backup is of PostgreSQL 16\.4, and the installed one is "):
            restore_base(Settings(data_dir=folder / "data"), backup, None, None, _refuse_bytes, pytest.fail)
        assert not list((folder / "data").glob("postgres/data*"))


def test_base_backup_of_an_external_database_is_refused(tmp_path: Path) -> None:
    settings = {"SSO_DATABASE_URL": "postgresql://h/d", "SSO_DATA_DIR": str(tmp_path / "data")}
    done = sso(tmp_path, "backup", "--base", str(tmp_path / "base"), "--no-keys", **settings)
    assert (done.returncode, "use pg_basebackup" in done.stderr) == (1, True)
    assert sso(tmp_path, "backup", **settings).returncode == 2
    assert sso(tmp_path, "restore", **settings).returncode == 2
