"""The master key is changed during logins, and the change is interrupted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sso.accounts.second_factor.codes import totp_purpose
from sso.core.encryption import Keyring
from tests.faults import open_folder, serving
from tests.kit.browser import AuthenticatorApp, query
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.forked_program import ForkedProcess
from tests.kit.postgres import Postgres
from tests.kit.row_locks import changed_by_another_transaction, locked_by_another_transaction
from tests.kit.server import Server, clean_environment, until

LOGIN = "/proxy/api/login"
USERS = 8
# The command asks again and again which older transactions are open.
COMMAND_WAITS = "SELECT FROM pg_stat_activity WHERE query LIKE 'SELECT l.virtualtransaction%ANY (CAST($1%'"
OLD = "SELECT count(*) FROM users WHERE split_part(totp_sealed, '.', 2) <> $1"


@pytest.fixture
def server(postgres_server: Postgres) -> Iterator[Server]:
    dsn = postgres_server.fresh()
    with open_folder() as folder, serving(folder, SSO_DATABASE_URL=dsn) as server:
        users = [
            {"user_id": str(n), "login": f"u{n}@example.com", "password": PASSWORD, "totp_secret": TOTP_SECRET}
            for n in range(1, USERS + 1)
        ]
        server.apply({"users": users})
        yield server
    postgres_server.drop(dsn)


def start_reseal(server: Server, *options: str) -> ForkedProcess:
    return ForkedProcess(["key", "reseal", *options], env=clean_environment(**server.settings), cwd=server.folder)


def key_ids(path: Path) -> list[str]:
    return [key.id for key in Keyring.from_file(path).keys]


def sealed_with_other_than(server: Server, key_id: str) -> int:
    ((count,),) = query(server, OLD, key_id)
    return int(count)


def test_logins_work_during_a_master_key_change_and_an_interrupted_change_resumes(
    server: Server,
) -> None:
    path = server.folder / "data" / "secret.key"
    (old,) = key_ids(path)
    held = f"SELECT 1 FROM users WHERE user_id = '{USERS}' FOR UPDATE"
    with locked_by_another_transaction(server.settings["SSO_DATABASE_URL"], held):  # so that the change cannot finish
        reseal = start_reseal(server)
        assert until(lambda: len(key_ids(path)) == 2)
        new = key_ids(path)[0]
        assert until(lambda: sealed_with_other_than(server, new) == 1)
        code = AuthenticatorApp(TOTP_SECRET).code()
        with server.client() as client:
            for number in range(1, 6):
                fields = {"login": f"u{number}@example.com", "password": PASSWORD, "otp": code}
                assert client.post(LOGIN, json=fields).json()["auth"] == "otp"
        assert reseal.poll() is None, "the change is not finished"
        reseal.kill()
        reseal.wait(60)
        assert reseal.stdout is not None
        reseal.stdout.close()
    assert sealed_with_other_than(server, new) == 1
    output = server.sso("key", "reseal").stdout
    assert output.endswith(f"values are sealed with the master key {new}\n")
    assert key_ids(path) == [new, old]
    assert sealed_with_other_than(server, new) == 0
    server.sso("key", "reseal", "--drop-old")
    assert key_ids(path) == [new]
    fields = {"login": f"u{USERS}@example.com", "password": PASSWORD, "otp": AuthenticatorApp(TOTP_SECRET).code()}
    with server.client() as client:
        assert client.post(LOGIN, json=fields).json()["auth"] == "otp"


def test_old_key_is_kept_if_a_transaction_that_is_open_uses_it(server: Server) -> None:
    path, dsn = server.folder / "data" / "secret.key", server.settings["SSO_DATABASE_URL"]
    sealed = Keyring.from_file(path).encrypt(totp_purpose("1"), TOTP_SECRET)
    server.sso("key", "reseal")
    both = key_ids(path)
    with changed_by_another_transaction(dsn, f"UPDATE users SET totp_sealed = '{sealed}' WHERE user_id = '1'"):
        dropping = start_reseal(server, "--drop-old")
        assert until(lambda: query(server, COMMAND_WAITS))
        assert dropping.poll() is None
    assert dropping.wait(60) == 1
    assert dropping.stdout is not None
    dropping.stdout.close()
    assert key_ids(path) == both
    assert server.sso("key", "reseal").stdout.startswith("1 values are sealed")
    server.sso("key", "reseal", "--drop-old")
    fields = {"login": "u1@example.com", "password": PASSWORD, "otp": AuthenticatorApp(TOTP_SECRET).code()}
    with server.client() as client:
        assert client.post(LOGIN, json=fields).json()["auth"] == "otp"
