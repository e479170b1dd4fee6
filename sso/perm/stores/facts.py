"""Reads the facts about a user at an application that the engine needs."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from sso.change_stream.store import POSITION_SQL
from sso.core.net import Address
from sso.db.batch.statement import BatchStatement, by_index
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.transaction import Row, Runner
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.facts import PermissionFacts
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.engine.service_rights import ServiceRights, compute_service_rights
from sso.perm.stores.compilation import LARGE_BYTES, MAX_STORED_BYTES, CompiledApplications, read_application
from sso.perm.stores.facts_cache import FactsVersion
from sso.perm.stores.facts_decoding import count_characters, decode_json, decode_row
from sso.perm.stores.facts_reader import FactsReader, UserAt
from sso.perm.stores.facts_sql import facts_sql, version_sql
from sso.perm.stores.loaded_facts import LoadedFacts
from sso.perm.stores.past_facts import PastFacts
from sso.perm.stores.projects import count_authored

FEW_PAIRS = 16  # are read at once, as a check of a few questions
MUCH_DATA = 256 * 1024  # characters of a user's own data, which take milliseconds to read
MAX_REMEMBERED = 10_000  # users with much data
PAIRS_AT_ONCE = 25  # read with one statement
UNSIZED_PAIRS = 4  # so few are read whatever the size of their own data
# Characters of own data and of the projects. Decoded, they take about ten times as many bytes.
MAX_PAIRS_DATA = 4 * 1024 * 1024

_COLUMNS = {"user_id": "text", "application_id": "int"}
_FACTS = BatchStatement(facts_sql("{items}"), columns=_COLUMNS)
_AND_VERSION = f", {version_sql('item.user_id')} AS version, u.merged_into, {POSITION_SQL} AS position"
_FACTS_AND_VERSION = BatchStatement(facts_sql("{items}", more=_AND_VERSION), columns=_COLUMNS)
# The first items, until their own data are long. Their sizes are read without the data.
_SIZED_ITEMS = f"""(
        SELECT * FROM (
            SELECT *, sum(bytes) OVER (ORDER BY n) AS bytes_so_far FROM (
                SELECT item.*, coalesce(pg_column_size(own.login) + pg_column_size(own.public_data)
                    + pg_column_size(own.private_data) + pg_column_size(own.secret_data), 0) AS bytes
                FROM {{items}} LEFT JOIN user_records own
                    ON own.application_id = item.application_id AND {by_index("own.user_id", "item.user_id")}
            ) AS stored
        ) AS sized WHERE bytes_so_far - bytes < {MAX_STORED_BYTES}
    ) AS item"""
_SIZED_FACTS_AND_VERSION = BatchStatement(
    facts_sql(_SIZED_ITEMS, more=f"{_AND_VERSION}, item.bytes_so_far"), columns=_COLUMNS
)
_VERSION = BatchStatement(
    f"""SELECT item.n, a.revision, {version_sql("item.user_id")} AS version, {POSITION_SQL} AS position
    FROM {{items}}
    JOIN applications a ON a.application_id = item.application_id
    LEFT JOIN users u ON u.user_id = item.user_id""",
    columns=_COLUMNS,
)


class FactsRow(NamedTuple):
    """The facts about a user, and the revision of the application that they are about."""

    facts: PermissionFacts
    user_exists: bool
    revision: int
    is_large: bool  # computing with the facts takes more than a few milliseconds

    @property
    def is_removed(self) -> bool:
        """Whether the application or its project is removed."""
        return self.facts.removed or (self.facts.home is not None and self.facts.home.removed)


class VersionedFacts(NamedTuple):
    """The facts about a user at no address. They must not be cached if they have no version."""

    version: FactsVersion | None
    loaded: LoadedFacts
    position: int  # of the end of the change stream when they were read


class StoredFacts(FactsReader):
    """Facts as the database has them; concurrent requests share a statement.

    The compiled schema and roles of an application are cached under its revision.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.run_in_thread = database.run_in_thread
        self._version = Batch(database, _VERSION)
        self._facts = Batch(database, _FACTS_AND_VERSION)
        self._applications = CompiledApplications(database)
        self._much_data: set[UserAt] = set()  # had much data at the application when they were last read
        self.past = PastFacts(database, self._applications)

    async def load(self, user_id: str, application_id: int, address: Address | None) -> LoadedFacts | None:
        read = await self.read(user_id, application_id)
        return None if read is None else read.loaded.at_address(address)

    async def load_pairs(self, pairs: Collection[UserAt], address: Address | None) -> dict[UserAt, LoadedFacts]:
        return {pair: read.loaded.at_address(address) for pair, read in (await self.read_pairs(pairs)).items()}

    async def count_authored(self, user_id: str) -> int:
        return await count_authored(self._database, user_id)

    async def read_version(self, user_id: str, application_id: int) -> FactsVersion | None:
        """Returns None if the application does not exist, or if the connections have changed meanwhile."""
        epoch = self._database.epoch
        row = await self._version(user_id=user_id, application_id=application_id)
        return None if row is None else self._version_of(row, epoch)

    async def read_versions(self, pairs: Collection[UserAt]) -> tuple[dict[UserAt, FactsVersion], int | None]:
        """Reads several versions with one statement, without those for which `read_version` returns None.

        Returns the end of the change stream, too, or None if none of the applications exists.
        """
        epoch = self._database.epoch
        read = list(await _read_pairs(self._database, _VERSION, pairs))
        versions = {pair: version for pair, row in read if (version := self._version_of(row, epoch)) is not None}
        return versions, read[0][1]["position"] if read else None

    async def read(self, user_id: str, application_id: int) -> VersionedFacts | None:
        """Facts about a user who was merged into another one are those about that one."""
        pair = user_id, application_id
        if pair in self._much_data:  # not in a statement of others, which would take as long
            return (await self.read_pairs((pair,))).get(pair)
        epoch = self._database.epoch
        row = await self._facts(user_id=user_id, application_id=application_id)
        if row is None:
            return None
        read = await self._decode(user_id, application_id, row, epoch)
        return read if row["merged_into"] is None else await self._of_alias(row["merged_into"], application_id) or read

    async def read_pairs(self, pairs: Collection[UserAt]) -> dict[UserAt, VersionedFacts]:
        """Reads the facts about several users together, see `FactsReader.load_pairs`."""
        read: dict[UserAt, VersionedFacts] = {}
        unread, data_left = list(pairs), MAX_PAIRS_DATA
        while unread:
            epoch = self._database.epoch
            with self._turn(pairs):
                rows, count = await _read_first_pairs(self._database, unread[:PAIRS_AT_ONCE])
            unread = unread[count:]
            for pair, row in rows:
                size = count_characters(row) if read else 0  # the first one is always kept
                if size > data_left:
                    self._remember_size(pair, len(row["record"] or ""))
                    continue
                data_left -= size
                read[pair] = await self._decode(*pair, row, epoch)
                if row["merged_into"] is not None:
                    read[pair] = await self._of_alias(row["merged_into"], pair[1]) or read[pair]
        return read

    def _turn(self, pairs: Collection[UserAt]) -> AbstractContextManager[None]:
        """Limits the connections for many users, or for users with much data, to one for each application."""
        if len(pairs) <= FEW_PAIRS and self._much_data.isdisjoint(pairs):
            return nullcontext()
        applications = {application_id for _, application_id in pairs}
        others = applications - {CENTRAL_APPLICATION_ID}  # where callers have their rights
        return self._database.shares.limit_read(*(("application", item) for item in others or applications))

    async def _of_alias(self, user_id: str, application_id: int) -> VersionedFacts | None:
        """Without a version: it would be that of another user than the one whom the cache has the facts for."""
        read = await self.read(user_id, application_id)
        return None if read is None else read._replace(version=None)

    def _version_of(self, row: Row, epoch: int) -> FactsVersion | None:
        """``epoch`` is that before the row was read."""
        return FactsVersion(row["version"], row["revision"], epoch) if epoch == self._database.epoch else None

    async def _decode(self, user_id: str, application_id: int, row: Row, epoch: int) -> VersionedFacts:
        application = await self._applications.load(application_id, row["revision"])
        facts = await decode_row(self._database, row, user_id, None)
        self._remember_size((user_id, application_id), len(row["record"] or ""))
        settings, size = decode_json(row["app_settings"]), count_characters(row)
        loaded = LoadedFacts(application, facts, row["known"], row["app_name"], settings, size)
        return VersionedFacts(self._version_of(row, epoch), loaded, row["position"])

    def _remember_size(self, pair: UserAt, size: int) -> None:
        if size <= MUCH_DATA:
            self._much_data.discard(pair)
            return
        if len(self._much_data) >= MAX_REMEMBERED:
            self._much_data.clear()
        self._much_data.add(pair)

    async def read_compiled(self, runner: Runner, application_id: int, revision: int) -> CompiledApplication:
        """Returns the compiled schema and roles of a revision that a transaction sees.

        One that may be rolled back is not cached.
        """
        compiled = self._applications.find(application_id)
        if compiled is None or compiled.version != revision:
            compiled = await read_application(runner, application_id)
            assert compiled is not None  # applications are never deleted
        return compiled


async def read_facts(
    runner: Runner, user_id: str, application_id: int, address: Address | None
) -> PermissionFacts | None:
    """Returns the facts as a transaction sees them now, or None if the application does not exist."""
    row = await runner.row(_FACTS.statement, user_id=[user_id], application_id=[application_id])
    return None if row is None else await decode_row(runner, row, user_id, address)


async def read_fact_rows(runner: Runner, pairs: Sequence[UserAt]) -> Iterable[tuple[UserAt, Row]]:
    """Reads the facts about users at applications as a transaction sees them now, without applications that do not
    exist. `decode_fact_row` should decode them one after the other, so that not all of the data is in memory.
    """
    return await _read_pairs(runner, _FACTS, pairs) if pairs else ()


async def decode_fact_row(runner: Runner, user_id: str, row: Row) -> FactsRow:
    """The user has no address, so conditions on addresses do not hold."""
    facts = await decode_row(runner, row, user_id, None)
    return FactsRow(facts, row["known"], row["revision"], count_characters(row) > LARGE_BYTES)


async def _read_pairs(
    runner: Runner, statement: BatchStatement, pairs: Collection[UserAt]
) -> Iterator[tuple[UserAt, Row]]:
    ordered = list(pairs)
    users, applications = [pair[0] for pair in ordered], [pair[1] for pair in ordered]
    rows = await runner.rows(statement.statement, user_id=users, application_id=applications)
    return ((ordered[row["n"] - 1], row) for row in rows)


async def _read_first_pairs(runner: Runner, pairs: Sequence[UserAt]) -> tuple[list[tuple[UserAt, Row]], int]:
    """Reads the first of the pairs, until the own data of users are long. Returns how many these are, too."""
    if len(pairs) <= UNSIZED_PAIRS:
        return list(await _read_pairs(runner, _FACTS_AND_VERSION, pairs)), len(pairs)
    rows = list(await _read_pairs(runner, _SIZED_FACTS_AND_VERSION, pairs))
    last = max((row for _, row in rows), key=lambda row: row["n"], default=None)
    if last is None or last["bytes_so_far"] < MAX_STORED_BYTES:  # the others are at applications that do not exist
        return rows, len(pairs)
    return rows, last["n"]


async def read_service_rights(runner: Runner, user_id: str, now: int) -> ServiceRights:
    """Returns the rights of a user over the whole service, as a transaction sees them now."""
    central = await read_application(runner, CENTRAL_APPLICATION_ID)
    facts = await read_facts(runner, user_id, CENTRAL_APPLICATION_ID, None)
    assert central is not None  # it is built in
    assert facts is not None
    return compute_service_rights(central, facts, now)
