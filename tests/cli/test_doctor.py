"""`sso doctor`: every failed check has advice."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from sso.config import Settings, load
from sso.core.encryption import MasterKey
from sso.core.findings import Finding
from sso.core.setting_values import SecretText
from sso.db.standalone import fetch_value
from sso.doctor.addresses import addresses, proxies
from sso.doctor.checks import account, check, files, keys
from sso.doctor.database import database
from sso.doctor.test_players import test_players as find_test_players
from sso.services import open_services
from tests.cli.conftest import CommandResult, run_in_process
from tests.kit.ports import free_port
from tests.kit.postgres import Postgres
from tests.kit.server import DEFAULT_SETTINGS, SINGLE_NODE

pytestmark = pytest.mark.usefixtures("durable_postgres")

UNREACHABLE = "postgresql://sso:hunter2@127.0.0.1:1/none"


@pytest.fixture
def installed(settings: Settings, dsn: str) -> Settings:
    """The settings of an installation after its first start."""

    async def start() -> None:
        async with open_services(settings, dsn) as services:
            await services.key_rotation.ensure_signing_keys("ES256")

    trio.run(start)
    return settings


def findings(settings: Settings, dsn: str) -> dict[str, Finding]:
    return {finding.name: finding for finding in check(settings, dsn)}


def failures(found: Iterable[Finding]) -> dict[str, Finding]:
    failed = [finding for finding in found if not finding.good]
    assert all(finding.advice for finding in failed)
    return {finding.name: finding for finding in failed if not finding.warning}


def doctor(settings: Settings, dsn: str, *options: str) -> CommandResult:
    own = {"SSO_DATA_DIR": str(settings.data_dir), "SSO_DATABASE_URL": dsn}
    return run_in_process("doctor", *options, **(SINGLE_NODE | DEFAULT_SETTINGS | own))


def test_each_of_several_database_hosts_is_checked(dsn: str) -> None:
    port = free_port()
    several = dsn.replace("?host=", "?host=127.0.0.1,").replace("&port=", f"&port={port},")
    (finding,) = (finding for finding in database(several) if finding.name == "database hosts")
    assert (finding.good, finding.warning) == (False, True)
    assert finding.detail.startswith(f"127.0.0.1:{port}: refuses connections; /")
    assert finding.detail.endswith(": primary")


def test_healthy_installation_passes(installed: Settings, dsn: str) -> None:
    results = findings(installed, dsn)
    names = ("database", "writes", "durability", "migrations", "clock", "master key", "signing key", "data directory")
    expected = {*names, "file mode", "base URL", "test players"}
    assert expected <= {name for name, finding in results.items() if finding.good}
    assert failures(results.values()) == {}
    assert "database hosts" not in results
    finding = results["administration by games"]
    assert (finding.good, finding.warning) == (False, True)
    assert finding.advice.startswith("set SSO_GSID_ADMIN=deny")
    result = doctor(installed, dsn)
    assert (result.code, result.err) == (0, "")
    *lines, passed, conclusion = result.lines
    notes = [line for line in lines if line.startswith("note  ")]
    assert all(line[:6] in ("note  ", "      ") for line in lines)
    assert passed.startswith("ok    database, writes, durability, migrations, ")
    assert conclusion == f"{len(notes)} notes, nothing wrong."
    verbose = doctor(installed, dsn, "--verbose").out
    assert verbose.index("note  ") < verbose.index("\nok    writes: accepted\n")
    assert verbose.endswith(f"\n{conclusion}\n")
    printed = [json.loads(line) for line in doctor(installed, dsn, "--json").lines]
    assert {"name", "good", "detail", "advice", "warning"} == printed[0].keys()


def test_workers_that_open_more_connections_than_the_database_accepts_are_reported(
    installed: Settings, dsn: str
) -> None:
    finding = findings(replace(installed, workers=40), dsn)["connections"]
    assert (finding.good, finding.warning) == (False, True)
    assert finding.detail.startswith("the workers open 360, and the database accepts ")
    assert finding.advice == "lower SSO_WORKERS or SSO_DATABASE_POOL"
    assert findings(installed, dsn)["connections"].good


def test_settings_and_the_account_of_the_service_are_checked(installed: Settings, dsn: str) -> None:
    settings = replace(installed, gsid_admin="deny", base_url="https://sso.example.com")
    results = {finding.name: finding for finding in check(settings, dsn, "The service")}
    assert results["administration by games"].good
    assert (results["proxies"].good, results["proxies"].warning) == (False, True)
    assert results["account"].detail.startswith("The service runs as ")


def test_new_installation_passes_and_nothing_is_created(tmp_path: Path, dsn: str) -> None:
    settings = Settings(data_dir=tmp_path / "data")
    results = findings(settings, dsn)
    assert failures(results.values()) == {}
    assert "created at the first start" in results["master key"].detail
    assert not settings.data_dir.exists()
    assert fetch_value(dsn, "SELECT count(*) FROM signing_keys") == 0


def test_readable_key_file_fails_with_chmod_as_advice(installed: Settings, dsn: str) -> None:
    installed.key_file.chmod(0o644)
    failed = failures([*files(installed), *keys(installed, dsn)])
    assert failed["file mode"].advice == f"chmod 600 {installed.key_file}"
    assert "0644" in failed["file mode"].detail
    assert "chmod 600" in failed["master key"].detail
    result = doctor(installed, dsn)
    assert result.code == 1
    assert f"      chmod 600 {installed.key_file}" in result.out.splitlines()
    assert result.out.startswith("FAIL  ")
    assert result.err.startswith("sso: 2 checks failed, ")


def test_database_without_schema_fails_with_migrate_as_advice(postgres_server: Postgres, settings: Settings) -> None:
    empty = postgres_server.empty()
    failed = failures(check(settings, empty))
    assert set(failed) == {"migrations"}
    assert failed["migrations"].advice == "run `sso migrate`"
    result = doctor(settings, empty)
    assert (result.code, result.err[:20]) == (1, "sso: 1 check failed,")
    postgres_server.drop(empty)


def test_unreachable_database_fails_without_its_password(settings: Settings) -> None:
    failed = failures(check(settings, UNREACHABLE))
    assert set(failed) == {"database"}
    assert failed["database"].advice == "start it, or correct SSO_DATABASE_URL"
    result = doctor(settings, UNREACHABLE)
    assert (result.code, result.err[:20]) == (1, "sso: 1 check failed,")
    assert "hunter2" not in result.out


def test_newer_database_schema_fails(dsn: str) -> None:
    fetch_value(dsn, "UPDATE alembic_version SET version_num = '9999'")
    assert "9999" in failures(database(dsn))["migrations"].detail


def test_missing_or_damaged_master_key_fails(installed: Settings, dsn: str) -> None:
    was = installed.key_file.read_text()
    installed.key_file.unlink()
    assert "missing" in failures(keys(installed, dsn))["master key"].detail
    assert not installed.key_file.exists()
    installed.key_file.write_text("garbage")
    installed.key_file.chmod(0o600)
    assert "damaged" in failures(keys(installed, dsn))["master key"].detail
    installed.key_file.write_text(MasterKey.generate().text())
    failed = failures(keys(installed, dsn))["signing key"]
    assert "is missing" in failed.detail
    assert "restore the master key" in failed.advice
    installed.key_file.write_text(was)
    assert failures(keys(installed, dsn)) == {}


def test_database_without_fsync_or_writes_fails(dsn: str) -> None:
    name = fetch_value(dsn, "SELECT current_database()")
    fetch_value(dsn, f"ALTER DATABASE {name} SET synchronous_commit = off")
    assert set(failures(database(dsn))) == {"durability"}
    fetch_value(dsn, f"ALTER DATABASE {name} SET synchronous_commit = on")
    fetch_value(dsn, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    assert "primary" in failures(database(dsn))["writes"].advice


def test_readable_mail_directory_or_writable_key_file_fails(settings: Settings) -> None:
    (settings.data_dir / "mail").mkdir(mode=0o755)
    assert failures(files(settings))["file mode"].advice == f"chmod 700 {settings.data_dir / 'mail'}"
    (settings.data_dir / "mail").chmod(0o700)
    (settings.data_dir / "keys").mkdir()
    pem = settings.data_dir / "keys" / "10.pem"
    pem.touch(mode=0o644)
    assert failures(files(settings)) == {}
    pem.chmod(0o666)
    assert failures(files(settings))["file mode"].advice == f"chmod 644 {pem}"


def test_base_url_proxies_and_mail_are_noted() -> None:
    def notes(**given: str) -> set[str]:
        settings = load(None, given)
        found = [*addresses(settings), *proxies(settings, None)]
        return {finding.name for finding in found if finding.warning and not finding.good}

    assert "base URL" not in notes()
    assert "base URL" in notes(SSO_BASE_URL="http://sso.example.com")
    assert "proxies" in notes(SSO_BASE_URL="https://sso.example.com")
    assert "proxies" not in notes(SSO_BASE_URL="https://sso.example.com", SSO_TRUSTED_PROXIES="10.0.0.1")
    assert "mail" in notes()
    assert "mail" not in notes(SSO_SMTP_URL="smtp://localhost")
    assert "registration" not in notes()
    assert "registration" in notes(SSO_REGISTRATION="open")
    assert "registration" not in notes(SSO_REGISTRATION="open", SSO_SMTP_URL="smtp://localhost")


@pytest.mark.parametrize(("uid", "good"), [(0, False), (1000, True)])
def test_service_account_other_than_root_is_recommended(monkeypatch: pytest.MonkeyPatch, uid: int, good: bool) -> None:
    monkeypatch.setattr("os.geteuid", lambda: uid)
    finding = account("The service")
    assert (finding.good, finding.warning) == (good, True)
    assert "SSO_USER" in finding.advice
    assert finding.detail == ("The service runs as uid 1000" if good else "The service runs as root")


def test_test_players_are_reported_while_they_can_sign_in(settings: Settings, dsn: str) -> None:
    def found(settings: Settings) -> list[tuple[bool, str]]:
        return [(item.good, item.detail) for item in find_test_players(settings, dsn)]

    async def run(operation: str, *password: str) -> None:
        async with open_services(settings, dsn) as services:
            await getattr(services.test_players, operation)(*password)

    assert found(settings) == [(True, "there are none")]
    with_players = replace(settings, test_player_password=SecretText("known to developers"))
    assert found(with_players) == [(False, "accounts with a shared password can sign in")]
    trio.run(run, "create", "known to developers")
    assert found(settings) == [(False, "6 can sign in, although SSO_TEST_PLAYER_PASSWORD is not set")]
    trio.run(run, "disable")
    assert found(settings) == [(True, "there are none")]
    fetch_value(dsn, "UPDATE users SET login_key = 'ann@example.com' WHERE login_key = 'slow@player.test'")
    reported = found(with_players)
    assert [good for good, _ in reported] == [False, False]
    assert reported[1][1].endswith("which is therefore missing: 7357000000006")
