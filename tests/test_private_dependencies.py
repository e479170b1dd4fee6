"""The private parts of libraries that the code relies on.

A failure here after an update of a library means: read what has changed, adapt the file that the message names, then
bring this test up to date.
"""

import asyncio
import inspect
from asyncio import selector_events, sslproto
from collections import deque
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any
from unittest.mock import AsyncMock

import asyncpg
import pytest
import sniffio
import trio_asyncio
from asyncpg.protocol import protocol
from nats.aio.client import Client
from nats.aio.transport import TcpTransport
from sqlalchemy import text
from sqlalchemy.dialects.postgresql.asyncpg import dialect
from trio_asyncio._base import BaseTrioEventLoop
from trio_asyncio._handles import ScopedHandle

from sso.db.asyncio_loop import MAX_READ, FastAsyncioLoop
from sso.db.connection import ARRAY_TYPES
from sso.db.database import Database
from tests.kit.private_dependencies import changed, code_digest

LOOP = "sso/db/asyncio_loop.py"


@pytest.mark.parametrize(
    ("method", "digest"),
    [
        (trio_asyncio.TrioEventLoop._queue_handle, "528f73b82285a521"),
        (trio_asyncio.TrioEventLoop.stop, "c3c8feefc718c1ca"),
        (BaseTrioEventLoop._io_task, "b85b03dacceabc8e"),
        (BaseTrioEventLoop._add_io_handler, "e98f500d29729a88"),
        (BaseTrioEventLoop.call_soon, "66d46feca7ff5bd8"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_trio_asyncio_methods_that_the_loop_overrides(method: Callable[..., Any], digest: str) -> None:
    part = f"the code of {method.__qualname__}"
    assert code_digest(method) == digest, changed("trio-asyncio", part, LOOP)


async def test_trio_asyncio_loop_has_the_attributes_of_the_subclass() -> None:
    async with trio_asyncio.open_loop() as loop:
        assert type(loop) is trio_asyncio.TrioEventLoop, changed("trio-asyncio", "the class of open_loop()", LOOP)
        assert callable(getattr(loop._q_send, "send_nowait", None)), changed("trio-asyncio", "loop._q_send", LOOP)
        for name in ("_check_closed", "run_aio_future", "create_task"):
            assert callable(getattr(loop, name, None)), changed("trio-asyncio", f"loop.{name}", LOOP)
        clashes = {"_ready_now", "_is_scheduled", "_is_stopping"} & vars(loop).keys()
        assert not clashes, changed("trio-asyncio", f"the new attribute {clashes}", LOOP)
        handle = ScopedHandle(print, (), loop)
        for name in ("_scope", "_raise"):
            assert hasattr(handle, name), changed("trio-asyncio", f"ScopedHandle.{name}", LOOP)


def test_trio_asyncio_current_loop_is_a_context_variable() -> None:
    for name in ("set", "reset"):
        assert hasattr(trio_asyncio.current_loop, name), changed("trio-asyncio", f"current_loop.{name}", LOOP)


async def test_asyncio_handle_has_its_private_attributes() -> None:
    async with FastAsyncioLoop.open() as loop:
        calls: list[int] = []
        handle = asyncio.Handle(calls.append, (1,), loop, None)
        assert getattr(handle, "_cancelled", None) is False, changed("asyncio", "Handle._cancelled", LOOP)
        handle._run()
        assert calls == [1], changed("asyncio", "Handle._run", LOOP)


@pytest.mark.parametrize(
    ("owner", "method"),
    [
        (selector_events._SelectorSocketTransport, "_read_ready__data_received"),  # type: ignore[attr-defined]
        (sslproto.SSLProtocol, "__init__"),
    ],
)
def test_asyncio_reads_as_much_as_max_size(owner: type, method: str) -> None:
    part = f"{owner.__name__}.max_size"
    assert owner.max_size == MAX_READ, changed("asyncio", part, LOOP)  # type: ignore[attr-defined]
    source = inspect.getsource(getattr(owner, method))
    assert "self.max_size" in source, changed("asyncio", f"{part}, unused in {method}", LOOP)


def test_sniffio_keeps_the_library_in_a_thread_local() -> None:
    part = "thread_local.name"
    assert hasattr(sniffio.thread_local, "name"), changed("sniffio", part, LOOP)
    sniffio.thread_local.name, before = "test", sniffio.thread_local.name
    try:
        assert sniffio.current_async_library() == "test", changed("sniffio", part, LOOP)
    finally:
        sniffio.thread_local.name = before


def test_sqlalchemy_compiles_named_parameters_to_numbers_in_order_of_first_use() -> None:
    compiled = text("SELECT :b, :a, :b").compile(dialect=dialect())  # type: ignore[no-untyped-call]
    message = changed("sqlalchemy", "SQLCompiler.positiontup of the asyncpg dialect", "sso/db/statement.py")
    assert compiled.string == "SELECT $1, $2, $1", message
    assert list(getattr(compiled, "positiontup", None) or ()) == ["b", "a"], message


@pytest.mark.parametrize(
    "values",
    [["a", None], ("a",), {"a"}, {"a": 1}.keys(), deque(["a"]), [["a"], ["b"]]],
    ids=["list", "tuple", "set", "keys", "deque", "nested"],
)
async def test_asyncpg_accepts_containers_as_arrays(database: Database, values: Collection[Any]) -> None:
    assert await database.run_sql("SELECT CAST($1 AS text[])", [values]) == [(list(values),)]


@pytest.mark.parametrize("value", ["a", 5, {"a": 1}], ids=["text", "number", "mapping"])
async def test_asyncpg_refuses_other_values_as_arrays(database: Database, value: object) -> None:
    with pytest.raises(asyncpg.DataError, match="container expected"):
        await database.run_sql("SELECT CAST($1 AS text[])", [value])


async def test_asyncpg_asks_the_names_that_are_replaced(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await database.ping()
    for name, value in {"IterableABC": (), "SizedABC": (), "MappingABC": list}.items():
        with monkeypatch.context() as patch:
            patch.setattr(protocol, name, value)
            with pytest.raises(asyncpg.DataError, match="container expected"):
                await database.run_sql("SELECT CAST($1 AS text[])", [["a"]])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bool", True),
        ("bytea", b"a"),
        ("int4", 7),
        ("int8", 2**40),
        ("float8", 0.5),
        ("timestamptz", datetime(2026, 1, 1, tzinfo=UTC)),
        ("jsonb", {"a": [1]}),
    ],
)
async def test_asyncpg_does_not_ask_for_array_types_of_the_service(
    database: Database, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    find = "SELECT typarray, oid FROM pg_type WHERE typname = $1 AND typnamespace = 'pg_catalog'::regnamespace"
    assert await database.run_sql(find, [name]) == [ARRAY_TYPES[name]]
    message = changed("asyncpg", "how a connection learns of types", "sso/db/connection.py")
    monkeypatch.setattr(asyncpg.Connection, "_introspect_types", AsyncMock(side_effect=AssertionError(message)))
    assert await database.run_sql(f"SELECT CAST($1 AS {name}[])", [[value, None]]) == [([value, None],)]


def test_parts_of_nats_py_that_the_bus_uses() -> None:
    """A connection is closed at once, and a password is sent only if the server has announced TLS."""
    file, client = "sso/bus/nats_transport.py", Client()
    for part in ("_pending", "_pending_data_size", "_transport", "_server_info", "_reading_task"):
        assert hasattr(client, part), changed("nats-py", part, file)
    transport = TcpTransport()  # type: ignore[no-untyped-call]
    assert hasattr(transport, "_io_writer"), changed("nats-py", "TcpTransport._io_writer", file)
    part = "the code of Client._flush_pending"
    assert code_digest(Client._flush_pending) == "757563192006359c", changed("nats-py", part, file)
    part = "the code of Client._process_connect_init"
    assert code_digest(Client._process_connect_init) == "7d3b7e1cc95d400a", changed("nats-py", part, file)
    part = "the code of Client._connect_command"
    assert code_digest(Client._connect_command) == "00832e4b2002401a", changed("nats-py", part, file)
