"""Names of statements, and the log of slow statements."""

import importlib
import pkgutil
import re
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

import sso
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.statement_name import function_name
from sso.db.transaction import Transaction
from sso.oauth.tokens.statements import ROTATE
from tests.kit.open_database import open_database

SLOW_MS = 50
SLEEP = Statement("SELECT CAST(:label AS text), pg_sleep(0.06)")
QUICK = Statement("SELECT 1")
FAIL = Statement("SELECT pg_sleep(0.06), 1 / (CAST(:number AS integer) - 7)")
BATCH = BatchStatement("SELECT n, pg_sleep(0.06) FROM {items}", columns={"label": "text"})
_LISTED = [Statement("SELECT 1")]
_BY_TABLE = {table: Statement(f"SELECT 1 FROM {table}") for table in ("users",)}


@pytest.fixture
async def monitored(dsn: str) -> AsyncIterator[Database]:
    async with open_database(dsn, 2, slow_ms=SLOW_MS) as database:
        yield database


async def sleep_in_transaction(tx: Transaction) -> None:
    await tx.value(SLEEP, label="private")


def test_statement_is_named_after_its_constant() -> None:
    module = __name__.removeprefix("sso.")
    assert SLEEP.name == f"{module}.SLEEP"
    assert _LISTED[0].name == f"{module}.LISTED"
    assert _BY_TABLE["users"].name == f"{module}.BY_TABLE"
    assert ROTATE.name == ROTATE.statement.name == "oauth.tokens.statements.ROTATE"


def test_statement_without_constant_is_named_after_its_function() -> None:
    statement = Statement("SELECT 1")
    assert statement.name.endswith(".test_statement_without_constant_is_named_after_its_function")
    assert Statement("SELECT 1", "explicit").name == "explicit"
    assert function_name(sleep_in_transaction).endswith("test_statement_monitor.sleep_in_transaction")


def test_every_statement_of_the_program_has_a_name() -> None:
    for module in pkgutil.walk_packages(sso.__path__, "sso."):
        if ".migrations." in module.name or module.name.endswith("__main__"):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if issubclass(type(value), Statement | BatchStatement):  # isinstance would open settings of Django
                assert re.fullmatch(r"[a-z_0-9.]+\.[A-Z][A-Z_0-9]*", value.name), value.name


async def test_slow_statement_is_logged_without_its_parameters(monitored: Database) -> None:
    with capture_logs() as logs:
        await monitored.value(SLEEP, label="private")
        await monitored.value(QUICK)
    [entry] = logs
    assert (entry["event"], entry["log_level"]) == ("database.statement_was_slow", "warning")
    assert (entry["statement"], entry["rows"]) == (SLEEP.name, 1)
    assert entry["ms"] >= SLOW_MS
    assert "private" not in str(entry)


async def test_slow_batch_is_logged_with_its_size(monitored: Database) -> None:
    with capture_logs() as logs:
        await Batch(monitored, BATCH)(label="private")
    [entry] = logs
    assert (entry["statement"], entry["items"], entry["rows"]) == (BATCH.name, 1, 1)


async def test_slow_statement_of_a_transaction_is_logged(monitored: Database) -> None:
    with capture_logs() as logs:
        await monitored.transaction(sleep_in_transaction)
    assert [entry["statement"] for entry in logs if entry["statement"] != "COMMIT"] == [SLEEP.name]


async def test_slow_statement_that_fails_is_logged_with_the_type_of_its_error(monitored: Database) -> None:
    with capture_logs() as logs, pytest.raises(Exception, match="division by zero"):
        await monitored.value(FAIL, number=7)
    [entry] = logs
    assert (entry["statement"], entry["error"]) == (FAIL.name, "DivisionByZeroError")


async def test_no_statement_is_logged_if_the_limit_is_0(database: Database) -> None:
    with capture_logs() as logs:
        await database.value(SLEEP, label="x")
    assert logs == []
