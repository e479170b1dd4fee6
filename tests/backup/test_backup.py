"""``sso backup`` and ``sso restore`` with real servers and databases."""

import os
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from sso.backup import BackupError, create, postgres_tools
from sso.backup import secrets as backup_secrets
from sso.backup.base_backup import create_base_backup
from sso.backup.postgres_tools import _for_libpq, find_program
from sso.backup.restore import check_empty, keys_of_recovered
from sso.backup.secrets import Secrets
from sso.backup.upgrade import Upgrade
from sso.cli.upgrade_db import _from_backup
from sso.config import Settings
from sso.core.encryption import Keyring, MasterKey
from sso.core.setting_values import SecretText
from sso.db.migrate import HEAD
from tests.backup.archives import rewritten
from tests.faults import open_folder
from tests.kit.backups import CHEAP, sso
from tests.kit.browser import AuthenticatorApp, Browser, new_user, query
from tests.kit.builders import PASSWORD
from tests.kit.postgres import Postgres, execute
from tests.kit.prepared_data import join_prepared
from tests.kit.server import QUICK, Server, run_sso, running, until

PASSPHRASE = "correct horse battery"
TOTP = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"


@pytest.fixture(scope="module")
def server(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = CHEAP | {"SSO_DATABASE_URL": postgres_server.fresh()}
    with running(tmp_path_factory.mktemp("backup"), **settings) as server:
        yield server


@pytest.fixture(scope="module")
def passphrase(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("passphrase") / "file"
    path.write_text(f"{PASSPHRASE}\n")
    return str(path)


@pytest.fixture(scope="module")
def backup(server: Server, passphrase: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup that was made while a user signed in again and again."""
    path = tmp_path_factory.mktemp("backups") / "one.backup"
    new_user(server, login="ann@example.com", totp_secret=TOTP)
    with signing_in(server, new_user(server)):
        server.sso("backup", str(path), "--passphrase-file", passphrase)
    return path


@contextmanager
def signing_in(server: Server, login: str) -> Iterator[None]:
    stopping = threading.Event()
    statuses: list[int] = []

    def sign_in() -> None:
        with server.client() as client:
            while not stopping.is_set():
                factor = f"device-{threading.get_ident()}-{len(statuses)}"
                answer = client.post("/proxy/api/login", json={"login": login, "password": PASSWORD, "factor": factor})
                statuses.append(answer.status_code)

    threads = [threading.Thread(target=sign_in) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        assert until(lambda: statuses)
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
    assert set(statuses) == {200}


@pytest.fixture
def open_directory() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


def test_user_with_a_second_factor_signs_in_after_restore_into_an_empty_database(
    backup: Path, passphrase: str, postgres_server: Postgres, tmp_path: Path
) -> None:
    """The second factor shows that the master key was restored: its secret is encrypted.

    A backup is one consistent snapshot: it has no token without its user.
    """
    dsn = postgres_server.empty()
    settings = {"SSO_DATABASE_URL": dsn, "SSO_DATA_DIR": str(tmp_path / "data")}
    restored = sso(tmp_path, "restore", str(backup), "--passphrase-file", passphrase, **settings)
    assert restored.returncode == 0, restored.stderr
    assert f"at schema {HEAD}" in restored.stdout
    with running(tmp_path, **QUICK, **settings) as server, Browser(server) as browser:
        browser.get("/login")
        browser.follow(browser.sign_in("ann@example.com"))
        assert not browser.is_signed_in
        browser.submit("/login/code", otp=AuthenticatorApp(TOTP).code())
        assert browser.is_signed_in
        assert query(server, "SELECT FROM session_tokens")
        orphans = "SELECT FROM session_tokens t WHERE NOT EXISTS (SELECT FROM users u WHERE u.user_id = t.user_id)"
        assert not query(server, orphans)


def test_backup_of_the_embedded_database_is_restored_by_an_embedded_database(
    passphrase: str, open_directory: Path
) -> None:
    """Other tests use a passphrase that costs less."""
    first, second = {"SSO_DATA_DIR": str(open_directory / "first")}, {"SSO_DATA_DIR": str(open_directory / "second")}
    document = open_directory / "document.json"
    document.write_text('{"users": [{"login": "bob@example.com", "password": "secret-of-bob"}]}')
    join_prepared(open_directory / "first").close()  # saves the migration
    assert run_sso(open_directory, "apply", str(document), **QUICK, **first).returncode == 0
    (open_directory / "first" / "keys").mkdir()
    (open_directory / "first" / "keys" / "7.pem").write_text("a public key\n")
    path = str(open_directory / "embedded.backup")
    with_passphrase = (path, "--passphrase-file", passphrase)
    assert run_sso(open_directory, "backup", *with_passphrase, **QUICK, **first).returncode == 0
    restored = run_sso(open_directory, "restore", *with_passphrase, **QUICK, **second)
    assert restored.returncode == 0, restored.stderr
    for name in ("secret.key", "keys/7.pem"):
        assert (open_directory / "second" / name).read_bytes() == (open_directory / "first" / name).read_bytes()
    assert (open_directory / "second" / "secret.key").stat().st_mode & 0o777 == 0o600
    with running(open_directory, **QUICK, **second) as server:
        answer = httpx.post(
            f"{server.base_url}/proxy/api/login",
            json={"login": "bob@example.com", "password": "secret-of-bob"},
            timeout=60,
        )
        assert answer.status_code == 200


def test_encrypted_backup_of_a_database_is_restored(
    server: Server, passphrase: str, postgres_server: Postgres, tmp_path: Path
) -> None:
    new_user(server, login="eve@example.com")
    path = tmp_path / "encrypted.backup"
    made = server.sso("backup", str(path), "--encrypt", "--no-keys", "--passphrase-file", passphrase)
    assert "encrypted, schema" in made.stdout
    assert b"PGDMP" not in path.read_bytes()
    settings = {"SSO_DATABASE_URL": postgres_server.empty(), "SSO_DATA_DIR": str(tmp_path / "data")}
    done = sso(tmp_path, "restore", str(path), "--passphrase-file", passphrase, **settings)
    assert done.returncode == 0, done.stderr
    assert query(Server(tmp_path, settings), "SELECT 1 FROM users WHERE login = 'eve@example.com'")


def test_backup_file_belongs_to_its_owner_and_contains_no_readable_key(backup: Path, server: Server) -> None:
    assert backup.stat().st_mode & 0o777 == 0o600
    key = (Path(server.settings["SSO_DATA_DIR"]) / "secret.key").read_text().strip()
    assert key.encode() not in backup.read_bytes()
    with tarfile.open(backup) as tar:
        assert tar.getnames() == ["manifest.json", "secrets.enc", "database.dump", "digests.json", "digests.mac"]


def test_backup_never_replaces_a_file(backup: Path, server: Server, passphrase: str) -> None:
    before = backup.read_bytes()
    again = server.sso("backup", str(backup), "--passphrase-file", passphrase, check=False)
    assert again.returncode == 1
    assert "exists: choose another name" in again.stderr
    assert backup.read_bytes() == before


def test_failed_backup_leaves_no_file(server: Server, passphrase: str, tmp_path: Path) -> None:
    for folder in (tmp_path / "missing", Path(passphrase)):  # the second one is a file
        path = folder / "x.backup"
        answer = server.sso("backup", str(path), "--passphrase-file", passphrase, check=False)
        assert answer.returncode == 1
        assert answer.stderr.startswith(f"sso: cannot write {path}: ")
    assert list(tmp_path.iterdir()) == []


def test_backup_fails_if_the_master_key_changes_meanwhile(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dump may contain values of the new key, which the backup lacks."""
    monkeypatch.setitem(backup_secrets.SCRYPT, "n", 2**4)  # as in CHEAP
    settings = Settings(data_dir=tmp_path / "data")
    keyring = Keyring.open_or_create(settings.key_file)

    def dump_and_change_key(_: str) -> Iterator[bytes]:
        yield b"values of the old key"
        keyring.add_first(MasterKey.generate())
        yield b"values of the new key"

    monkeypatch.setattr(create, "dump", dump_and_change_key)
    path = tmp_path / "x.backup"
    make = partial(create.create_backup, settings, dsn, path, PASSPHRASE, lambda _: None, with_keys=True)
    with pytest.raises(BackupError, match="the master key was changed while the backup was made"):
        make(encrypted=False)
    assert [entry.name for entry in tmp_path.iterdir()] == ["data"]
    monkeypatch.setattr(create, "dump", lambda _: iter([b"values of both keys"]))
    make(encrypted=False)
    assert path.exists()


def seal_signing_key(dsn: str, key: MasterKey) -> None:
    execute(
        dsn,
        "INSERT INTO signing_keys (kid, algorithm, public_pem, private_sealed, signs_from) "
        f"VALUES ('of {key.id}', 'ES256', '', 'v1.{key.id}.x', now())",
    )


@pytest.mark.parametrize("is_base", [False, True])
def test_backup_with_keys_that_do_not_open_the_database_is_refused(dsn: str, tmp_path: Path, is_base: bool) -> None:
    settings, path = Settings(data_dir=tmp_path / "data"), tmp_path / "backup"
    Keyring.open_or_create(settings.key_file)
    seal_signing_key(dsn, MasterKey.generate())
    make = create_base_backup if is_base else partial(create.create_backup, encrypted=False)
    with pytest.raises(BackupError, match="the master key of these settings is not that of the database"):
        make(settings, dsn, path, PASSPHRASE, lambda *_: None, with_keys=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["data"]


def test_backup_with_keys_needs_the_master_key_of_all_nodes(tmp_path: Path) -> None:
    settings = {"SSO_DATABASE_URL": "postgresql://h/d", "SSO_DATA_DIR": str(tmp_path / "data"), "SSO_SINGLE_NODE": "0"}
    done = sso(tmp_path, "backup", str(tmp_path / "x.backup"), **settings)
    assert (done.returncode, "so set SSO_SECRET_KEY" in done.stderr) == (1, True), done.stderr


def test_recovery_needs_the_keys_of_the_recovered_database(dsn: str, tmp_path: Path) -> None:
    old, new = MasterKey.generate(), MasterKey.generate()
    of_backup = Secrets([old.text()], {})
    empty = Settings(data_dir=tmp_path)
    with_new, with_old = (Settings(data_dir=tmp_path, secret_key=SecretText(key.text())) for key in (new, old))
    seal_signing_key(dsn, old)
    assert keys_of_recovered(empty, of_backup, dsn).key_texts == [old.text()]
    assert keys_of_recovered(empty, None, dsn).key_texts == []  # the operator brings the key back later
    with pytest.raises(BackupError, match=f"SSO_SECRET_KEY does not have the master key {old.id}"):
        keys_of_recovered(with_new, of_backup, dsn)
    execute(dsn, f"UPDATE signing_keys SET private_sealed = 'v1.{new.id}.x'")
    assert keys_of_recovered(with_new, of_backup, dsn).key_texts == [new.text(), old.text()]
    for settings, secrets in ((empty, of_backup), (with_old, of_backup), (with_old, None)):
        with pytest.raises(BackupError, match=f"needs the master key {new.id}, which neither"):
            keys_of_recovered(settings, secrets, dsn)
    assert keys_of_recovered(empty, Secrets([old.text(), new.text()], {}), dsn).key_texts == [new.text(), old.text()]


def test_recovery_into_the_time_of_a_key_change_names_the_key_that_is_missing(dsn: str, tmp_path: Path) -> None:
    """The signing keys are still sealed with the old key, and a newer secret with the new one."""
    old, new = MasterKey.generate(), MasterKey.generate()
    of_backup, both = Secrets([old.text()], {}), SecretText(f"{new.text()},{old.text()}")
    seal_signing_key(dsn, old)
    columns = "webhook_id, url, secret_sealed, position"
    execute(dsn, f"INSERT INTO webhooks ({columns}) VALUES ('w', '', 'v1.{new.id}.x', 0)")
    without_key, with_both = Settings(data_dir=tmp_path), Settings(data_dir=tmp_path, secret_key=both)
    with_old = Settings(data_dir=tmp_path, secret_key=SecretText(old.text()))
    for settings, secrets in ((without_key, of_backup), (with_old, None), (with_old, Secrets([new.text()], {}))):
        assert keys_of_recovered(settings, secrets, dsn).missing == [new.id]
    assert keys_of_recovered(without_key, Secrets([old.text(), new.text()], {}), dsn).missing == []
    assert keys_of_recovered(with_both, of_backup, dsn).missing == []
    assert keys_of_recovered(with_both, of_backup, dsn).key_texts == [new.text(), old.text()]
    for damaged in ("", "nonsense", "v1..x"):
        execute(dsn, f"UPDATE webhooks SET secret_sealed = '{damaged}'")
        assert keys_of_recovered(without_key, of_backup, dsn).missing == []
    execute(dsn, "DROP TABLE webhooks CASCADE")  # a table that an earlier version did not have
    assert keys_of_recovered(without_key, of_backup, dsn).missing == []


def test_passphrase_must_come_from_a_terminal_or_a_file(server: Server, tmp_path: Path) -> None:
    answer = server.sso("backup", str(tmp_path / "x.backup"), check=False)
    assert answer.returncode == 1
    assert "--passphrase-file" in answer.stderr


def test_short_passphrase_is_refused(server: Server, tmp_path: Path) -> None:
    (tmp_path / "short").write_text("1234567\n")
    answer = server.sso("backup", str(tmp_path / "x.backup"), "--passphrase-file", str(tmp_path / "short"), check=False)
    assert answer.returncode == 1
    assert "at least 8 characters" in answer.stderr


def damaged(backup: Path, folder: Path, how: str) -> Path:
    data = bytearray(backup.read_bytes())
    path = folder / how
    match how:
        case "cut":
            data = data[: len(data) // 2]
        case "changed":
            data[len(data) // 2] ^= 1
        case "other":
            data = bytearray(b"not a backup at all")
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("how", "message"), [("cut", "incomplete"), ("changed", "damaged"), ("other", "is not a backup")]
)
def test_damaged_backup_is_refused_before_anything_is_created(
    backup: Path, passphrase: str, tmp_path: Path, how: str, message: str
) -> None:
    path = damaged(backup, tmp_path, how)
    data = tmp_path / "data"
    answer = sso(tmp_path, "restore", str(path), "--passphrase-file", passphrase, SSO_DATA_DIR=str(data))
    assert answer.returncode == 1
    assert message in answer.stderr
    assert not data.exists()


def test_spliced_dump_is_refused_before_anything_is_created(backup: Path, passphrase: str, tmp_path: Path) -> None:
    """The dump of another backup, with fitting digests, beside the keys of this one."""
    path = rewritten(backup, tmp_path / "spliced", {"database.dump": b"PGDMP of somebody else"})
    data = tmp_path / "data"
    answer = sso(tmp_path, "restore", str(path), "--passphrase-file", passphrase, SSO_DATA_DIR=str(data))
    assert (answer.returncode, "was changed" in answer.stderr) == (1, True), answer.stderr
    assert not data.exists()


def test_wrong_passphrase_is_refused_before_anything_is_created(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text("another passphrase\n")
    data = tmp_path / "data"
    answer = sso(tmp_path, "restore", str(backup), "--passphrase-file", str(tmp_path / "wrong"), SSO_DATA_DIR=str(data))
    assert (answer.returncode, answer.stderr) == (1, "sso: the passphrase is wrong\n")
    assert not data.exists()


def test_restore_refuses_a_database_with_tables(
    backup: Path, passphrase: str, postgres_server: Postgres, tmp_path: Path
) -> None:
    dsn = postgres_server.empty()
    execute(dsn, "CREATE TABLE precious (id int)")
    settings = {"SSO_DATABASE_URL": dsn, "SSO_DATA_DIR": str(tmp_path / "data")}
    answer = sso(tmp_path, "restore", str(backup), "--passphrase-file", passphrase, **settings)
    assert answer.returncode == 1
    assert "the database is not empty" in answer.stderr
    assert not (tmp_path / "data" / "secret.key").exists()


def test_restore_refuses_a_data_directory_with_another_master_key(
    backup: Path, passphrase: str, postgres_server: Postgres, tmp_path: Path
) -> None:
    other = sso(tmp_path, "key", "master").stdout.strip()
    settings = {"SSO_DATABASE_URL": postgres_server.empty(), "SSO_SECRET_KEY": other, "SSO_DATA_DIR": str(tmp_path)}
    answer = sso(tmp_path, "restore", str(backup), "--passphrase-file", passphrase, **settings)
    assert answer.returncode == 1
    assert "SSO_SECRET_KEY has another master key than the backup" in answer.stderr
    assert "or unset SSO_SECRET_KEY to use the keys of the backup" in answer.stderr, "the directory is empty already"


def test_upgrade_from_a_backup_checks_and_restores_its_keys(
    backup: Path, server: Server, postgres_server: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new server of the upgrade is a database of the tests."""
    monkeypatch.setitem(backup_secrets.SCRYPT, "n", 2**4)  # as in CHEAP
    dsn, unused = postgres_server.empty(), cast(Any, None)
    monkeypatch.setattr(Upgrade, "new_server", lambda _: nullcontext(dsn))
    upgrade, settings = Upgrade(tmp_path, unused, unused, unused, "15"), Settings(data_dir=tmp_path / "data")
    other = Settings(data_dir=tmp_path / "data", secret_key=SecretText(MasterKey.generate().text()))
    with pytest.raises(BackupError, match="SSO_SECRET_KEY has another master key than the backup"):
        _from_backup(other, upgrade, backup, lambda: PASSPHRASE, False)
    check_empty(dsn)
    _from_backup(settings, upgrade, backup, lambda: PASSPHRASE, False)
    assert settings.key_file.read_bytes() == (Path(server.settings["SSO_DATA_DIR"]) / "secret.key").read_bytes()


def test_backup_without_keys_needs_no_passphrase_and_says_so(
    server: Server, postgres_server: Postgres, tmp_path: Path
) -> None:
    path = tmp_path / "bare.backup"
    assert "WITHOUT keys" in server.sso("backup", str(path), "--no-keys").stdout
    settings = {"SSO_DATABASE_URL": postgres_server.empty(), "SSO_DATA_DIR": str(tmp_path / "data")}
    refused = sso(tmp_path, "restore", str(path), **settings)
    assert (refused.returncode, "repeat the command with --unauthenticated" in refused.stderr) == (1, True)
    assert not (tmp_path / "data").exists()
    answer = sso(tmp_path, "restore", str(path), "--unauthenticated", **settings)
    assert answer.returncode == 0
    assert "bring back the master key" in answer.stderr
    assert "it may have been changed" in answer.stderr


@pytest.mark.parametrize(
    ("dsn", "url"),
    [
        ("postgresql://ann:p%40ss@db/sso?sslmode=require", "postgresql://ann@db/sso?sslmode=require"),
        ("postgresql://ann@a:1,b:2/sso?password=p%40ss", "postgresql://ann@a:1,b:2/sso"),
        ("postgresql://sso@/sso?host=%2Frun%2Fx&port=5432&password=p%40ss", "postgresql://sso@/sso?host=%2Frun%2Fx&port=5432"),
    ],
)  # fmt: skip
def test_password_of_the_database_is_not_among_the_arguments(dsn: str, url: str) -> None:
    shown, environment = _for_libpq(dsn)
    assert shown == url
    assert environment["PGPASSWORD"] == "p@ss"
    assert not {name for name in environment if name.startswith("SSO_")}
    assert os.environ.get("PGPASSWORD") is None


def test_url_that_requires_tls_uses_the_newest_programs_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_tools, "DEBIAN_PROGRAMS", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BackupError, match=r"requires TLS, which the pg_dump .* does not have: install"):
        find_program("pg_dump", "postgresql://ann@db/sso?sslmode=verify-full")
    for version in ("9", "17"):
        (tmp_path / version / "bin").mkdir(parents=True)
        (tmp_path / version / "bin/pg_dump").touch()
    assert find_program("pg_dump", "postgresql://ann@db/sso?sslmode=require") == f"{tmp_path}/17/bin/pg_dump"
    assert str(tmp_path) not in find_program("pg_dump", "postgresql://ann@db/sso?sslmode=prefer")
