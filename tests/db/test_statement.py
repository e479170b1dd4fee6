"""The compiler of SQL text agrees with SQLAlchemy on every statement of the program."""

import gc
import importlib
import pkgutil
import re

import pytest
from sqlalchemy import text
from sqlalchemy.dialects.postgresql.asyncpg import dialect
from sqlalchemy.sql.compiler import SQLCompiler

import sso
from sso.db.batch.statement import BatchStatement
from sso.db.connection import ARRAY_TYPES
from sso.db.statement import Statement, compile_text


def with_sqlalchemy(sql: str) -> tuple[str, tuple[str, ...]]:
    compiled = text(sql).compile(dialect=dialect())  # type: ignore[no-untyped-call]
    assert isinstance(compiled, SQLCompiler)
    return compiled.string, tuple(compiled.positiontup or ())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "SELECT :a, :b, :a, CAST(:c AS text[])",
        "SELECT :a::text, now()::date, ':' || :b",
        r"SELECT '12\:30', 'a\:b', :a",
        "SELECT 100 % :a, name LIKE '%x' FROM users",
    ],
)
def test_text_is_compiled_as_sqlalchemy_does(sql: str) -> None:
    compiled = compile_text(sql)
    assert (compiled.sql, compiled.names) == with_sqlalchemy(sql)


def _import_all_modules() -> None:
    for module in pkgutil.walk_packages(sso.__path__, "sso."):
        if not module.name.endswith(("__main__", "keeper", "migrations.env")):
            importlib.import_module(module.name)
    gc.unfreeze()  # otherwise the statements of modules that were imported earlier are missing


def test_statements_of_the_program_are_compiled_as_sqlalchemy_does() -> None:
    _import_all_modules()
    texts = [item.text for item in gc.get_objects() if type(item) is Statement]
    assert len(texts) > 100
    for sql in texts:
        compiled = compile_text(sql)
        assert (compiled.sql, compiled.names) == with_sqlalchemy(sql)


def test_array_types_of_the_program_are_known_to_its_connections() -> None:
    _import_all_modules()
    names = {"bigint": "int8", "boolean": "bool", "float": "float8", "int": "int4", "integer": "int4"}
    objects = gc.get_objects()
    used = {name for item in objects if type(item) is BatchStatement for name in item._columns.values()}
    texts = [item.text for item in objects if type(item) is Statement]
    used |= {name for sql in texts for name in re.findall(r"([a-z]\w*)\[\]", sql)}
    assert {names.get(name, name) for name in used} <= {*ARRAY_TYPES, "text"}  # asyncpg itself knows text[]


def test_parameter_without_a_value_is_null() -> None:
    assert Statement("SELECT :a, :b").arguments({"b": 2}) == [None, 2]


def test_unknown_parameter_is_an_error() -> None:
    with pytest.raises(TypeError, match="c"):
        Statement("SELECT :a").arguments({"c": 1})
