"""Compiles applications, large ones in a thread, so that other requests are served meanwhile.

A row of `application_sql` has its JSON as text. Decoding and compiling a thousand roles take a quarter of a second.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import orjson
import trio

from sso.db.connection_share import without_share
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Runner, run_pure
from sso.perm.engine import compiled_application
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.records import RoleRecord
from sso.perm.engine.reserved_names import SECTIONS
from sso.perm.stores.builtin_roles import complete_schema
from sso.perm.stores.facts_sql import application_sql

LARGE_BYTES = 32 * 1024  # of JSON; compiling so much takes a few milliseconds
MAX_STORED_BYTES = 256 * 1024  # of the own data that one statement returns, where compressed data may be much longer
MAX_CACHED_APPLICATIONS = 1000

_APPLICATION = Statement(application_sql(":application_id"))


def is_large_json(value: object) -> bool:
    """Returns whether reading this value of a request, and computing with it, takes more than a few milliseconds."""
    return len(orjson.dumps(value)) > LARGE_BYTES


class CompiledApplications:
    """The compiled applications of recent requests, each under its revision."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._compiled: OrderedDict[int, tuple[int, CompiledApplication]] = OrderedDict()  # with the epoch
        self._locks: dict[int, trio.Lock] = {}  # of applications that are being compiled

    async def load(self, application_id: int, revision: int) -> CompiledApplication:
        """Returns the application in this revision, which the request has read, or in a later one.

        One request compiles it for all that wait for it.
        """
        if (compiled := self.find(application_id, revision)) is not None:
            return compiled
        lock = self._locks.setdefault(application_id, trio.Lock())
        try:
            async with lock:
                return self.find(application_id, revision) or await self._read(application_id)
        finally:
            if not lock.locked():
                self._locks.pop(application_id, None)

    def find(self, application_id: int, revision: int = 0) -> CompiledApplication | None:
        """Returns the cached application in this revision or a later one, or None if there is none."""
        epoch, compiled = self._compiled.get(application_id, (0, None))
        if compiled is None or compiled.version < revision or epoch != self._database.epoch:
            return None
        self._compiled.move_to_end(application_id)
        return compiled

    async def _read(self, application_id: int) -> CompiledApplication:
        epoch = self._database.epoch
        with without_share():  # requests of other callers wait for it
            compiled = await read_application(self._database, application_id)
        assert compiled is not None  # applications are never deleted
        self._compiled[application_id] = epoch, compiled
        self._compiled.move_to_end(application_id)
        if len(self._compiled) > MAX_CACHED_APPLICATIONS:
            self._compiled.popitem(last=False)
        return compiled


async def read_application(runner: Runner, application_id: int) -> CompiledApplication | None:
    """Returns the compiled schema and roles as they are now.

    A transaction that needs them unchanged locks the application.
    """
    row = await runner.row(_APPLICATION, application_id=application_id)
    return None if row is None else await compile_application(runner, application_id, row["revision"], row)


async def compile_application(
    runner: Runner, application_id: int, revision: int, row: Mapping[str, Any]
) -> CompiledApplication:
    """Compiles the schema and the roles in a row of `application_sql`, in a thread of ``runner`` if they are large."""
    size = sum(len(row[section]) for section in SECTIONS) + sum(map(len, row["roles"]))
    return await run_pure(runner, size > LARGE_BYTES, _compile, application_id, revision, row, size)


def _compile(application_id: int, revision: int, row: Mapping[str, Any], size: int) -> CompiledApplication:
    # One role at a time, so that the thread does not hold the interpreter while it decodes all of them.
    records = [RoleRecord(**orjson.loads(role)) for role in row["roles"]]
    schema = complete_schema({section: orjson.loads(row[section]) for section in SECTIONS})
    return compiled_application.compile_application(
        application_id, revision, schema, records, is_large=size > LARGE_BYTES, size=size
    )
