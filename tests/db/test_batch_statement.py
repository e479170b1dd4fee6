"""The columns of a BatchStatement, and the keyword arguments that fill them."""

import pytest

from sso.db.batch.skip_locked import SkipLockedBatch
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database

JOIN = BatchStatement(
    "SELECT item.n, item.word || item.number AS joined FROM {items}", columns={"word": "text", "number": "int"}
)
ECHO = BatchStatement("SELECT item.n, item.word, '{}' AS braces FROM {items}", columns={"word": "text"})


def test_items_become_typed_arrays_with_ordinality() -> None:
    assert JOIN.sql == (
        "SELECT item.n, item.word || item.number AS joined "
        "FROM unnest(CAST($1 AS text[]), CAST($2 AS int[])) WITH ORDINALITY AS item (word, number, n)"
    )


async def test_keyword_arguments_in_any_order_fill_their_columns(database: Database) -> None:
    row = await Batch(database, JOIN)(number=7, word="seven")
    assert row is not None
    assert row["joined"] == "seven7"


async def test_single_column_and_other_braces_in_the_sql_are_supported(database: Database) -> None:
    row = await Batch(database, ECHO)(word="one")
    assert row is not None
    assert (row["word"], row["braces"]) == ("one", "{}")


async def test_parameters_follow_their_first_use_in_the_sql(database: Database) -> None:
    statement = BatchStatement(
        "SELECT n, word, cardinality(CAST(:number AS int[])) AS count FROM {items} WHERE number = 2",
        columns={"word": "text", "number": "int"},
    )
    row = await Batch(database, statement)(word="two", number=2)
    assert row is not None
    assert (row["word"], row["count"]) == ("two", 1)


@pytest.mark.parametrize("arguments", [{}, {"word": "a"}, {"word": "a", "number": 1, "extra": 2}, {"word": 1, "x": 2}])
async def test_missing_and_unknown_names_raise_type_error_at_the_call(
    database: Database, arguments: dict[str, object]
) -> None:
    with pytest.raises(TypeError, match="arguments of the batch"):
        await Batch(database, JOIN)(**arguments)


def test_sql_without_items_is_rejected() -> None:
    with pytest.raises(ValueError, match="items"):
        BatchStatement("SELECT 1", columns={"word": "text"})


def test_parameter_that_is_no_column_is_rejected() -> None:
    with pytest.raises(ValueError, match="not columns"):
        _ = BatchStatement("SELECT n, :other FROM {items}", columns={"word": "text"}).sql


def test_substitute_rejects_a_field_that_the_sql_does_not_have() -> None:
    with pytest.raises(ValueError, match="limit"):
        ECHO.substitute(limit=3)


async def test_skip_locked_batch_substitutes_if_locked(database: Database) -> None:
    statement = BatchStatement(
        """WITH item AS (SELECT * FROM {items}), locked AS (
            SELECT key FROM throttle WHERE key = ANY (ARRAY(SELECT key FROM item)) FOR SHARE {if_locked}
        ) SELECT n FROM item WHERE key NOT IN (SELECT key FROM locked)""",
        columns={"key": "bytea"},
    )
    assert await SkipLockedBatch(database, statement)(key=b"free") is not None
