"""Loads the facts about a user at an application that the engine needs; concurrent requests share a statement.

Each request reads the version of the facts, and uses cached facts of that version or reads them. The compiled schema
and roles of an application are cached under its revision. So every request that starts after the commit of a
change sees it, on every worker, without notifications between workers.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import orjson
import trio

from sso.core.net import Address
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.transaction import Row, Runner, run_pure
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.facts import PermissionFacts
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.engine.service_rights import ServiceRights, compute_service_rights
from sso.perm.stores.compilation import LARGE_BYTES, CompiledApplications, read_application
from sso.perm.stores.facts_cache import NO_VERSIONS, FactsCache, FactsVersion, KnownVersions
from sso.perm.stores.facts_decoding import decode_facts
from sso.perm.stores.facts_sql import facts_sql, version_sql
from sso.perm.stores.loaded_facts import LoadedFacts
from sso.perm.stores.past_facts import PastFacts

_COLUMNS = {"user_id": "text", "application_id": "int"}
_FACTS = BatchStatement(facts_sql("{items}"), columns=_COLUMNS)
_FACTS_AND_VERSION = BatchStatement(
    facts_sql("{items}", more=f", {version_sql('item.user_id')} AS version"), columns=_COLUMNS
)
_VERSION = BatchStatement(
    f"""SELECT item.n, a.revision, {version_sql("item.user_id")} AS version
    FROM {{items}}
    JOIN applications a ON a.application_id = item.application_id
    LEFT JOIN users u ON u.user_id = item.user_id""",  # noqa: S608 - the parts are ours
    columns=_COLUMNS,
)


class FactsRow(NamedTuple):
    """The facts about a user, and the revision of the application that they are about."""

    facts: PermissionFacts
    user_exists: bool
    revision: int

    @property
    def is_removed(self) -> bool:
        """Whether the application or its project is removed."""
        return self.facts.removed or (self.facts.home is not None and self.facts.home.removed)


class FactsStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._version = Batch(database, _VERSION)
        self._facts = Batch(database, _FACTS_AND_VERSION)
        self._cache = FactsCache()
        self._applications = CompiledApplications(database)
        self.past = PastFacts(database, self._applications)

    async def load(
        self, user_id: str, application_id: int, address: Address | None, version: FactsVersion | None = None
    ) -> LoadedFacts | None:
        """Returns None if the application does not exist; the user need not exist.

        ``version`` is the version of the facts, if the request has read it.
        """
        if version is not None:
            return await self._load_version(user_id, application_id, version, address)
        if (user_id, application_id) in self._cache:
            epoch = self._database.epoch
            row = await self._version(user_id=user_id, application_id=application_id)
            if row is None:
                return None
            if epoch == self._database.epoch:
                version = FactsVersion(row["version"], row["revision"], epoch)
                return await self._load_version(user_id, application_id, version, address)
        return await self._read(user_id, application_id, address)

    async def _load_version(
        self, user_id: str, application_id: int, version: FactsVersion, address: Address | None
    ) -> LoadedFacts:
        """Facts of this version, which this request has read, or of a later one."""
        loaded = self._cache.find(user_id, application_id, version, address)
        if loaded is None:
            loaded = await self._read(user_id, application_id, address)
            assert loaded is not None  # applications are never deleted
        return loaded

    async def _read(self, user_id: str, application_id: int, address: Address | None) -> LoadedFacts | None:
        epoch = self._database.epoch
        row = await self._facts(user_id=user_id, application_id=application_id)
        if row is None:
            return None
        return await self._add(user_id, application_id, row, epoch, address)

    async def _add(
        self, user_id: str, application_id: int, row: Row, epoch: int, address: Address | None
    ) -> LoadedFacts:
        """The facts of a row, which are cached from now on. ``epoch`` is that before the row was read."""
        application = await self._applications.load(application_id, row["revision"])
        size = len(orjson.dumps([row["record"], row["home"], row["projects"]]))
        facts = await run_pure(self._database, size > LARGE_BYTES, decode_facts, row, user_id, None)
        loaded = LoadedFacts(application, facts, row["known"], row["app_name"], row["app_settings"], size)
        if epoch != self._database.epoch:
            return loaded.at_address(address)
        version = FactsVersion(row["version"], row["revision"], epoch)
        return self._cache.add(user_id, application_id, version, loaded, address)

    async def load_pairs(
        self, pairs: Collection[tuple[str, int]], address: Address | None, read_before: KnownVersions
    ) -> tuple[dict[tuple[str, int], LoadedFacts], KnownVersions]:
        """The facts about several users at applications, without applications that do not exist, and their versions.

        One statement reads the versions that the request has not read before, and one more the facts that are not
        cached.
        """
        epoch = self._database.epoch
        versions = {pair: version for pair in pairs if (version := read_before.find(*pair)) is not None}
        if unread := [pair for pair in pairs if pair not in versions]:
            versions |= await self._read_versions(unread, epoch)
        known = KnownVersions(versions) if epoch == self._database.epoch else NO_VERSIONS
        loaded: dict[tuple[str, int], LoadedFacts] = {}
        for (user_id, application_id), version in known.by_key.items():
            cached = self._cache.find(user_id, application_id, version, address)
            if cached is not None:
                loaded[user_id, application_id] = cached
        missing = [pair for pair in versions if pair not in loaded]
        if missing:
            loaded |= await self._read_pairs(missing, address)
        return loaded, known

    async def _read_versions(self, pairs: Sequence[tuple[str, int]], epoch: int) -> dict[tuple[str, int], FactsVersion]:
        users, applications = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        rows = await self._database.rows(_VERSION.statement, user_id=users, application_id=applications)
        return {pairs[row["n"] - 1]: FactsVersion(row["version"], row["revision"], epoch) for row in rows}

    async def _read_pairs(
        self, pairs: Sequence[tuple[str, int]], address: Address | None
    ) -> dict[tuple[str, int], LoadedFacts]:
        epoch = self._database.epoch
        users, applications = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        rows = await self._database.rows(_FACTS_AND_VERSION.statement, user_id=users, application_id=applications)
        loaded: dict[tuple[str, int], LoadedFacts] = {}
        for row in rows:
            user_id, application_id = pair = pairs[row["n"] - 1]
            loaded[pair] = await self._add(user_id, application_id, row, epoch, address)
        return loaded

    async def load_many(
        self, user_id: str, addresses: Mapping[int, Address | None], versions: KnownVersions = NO_VERSIONS
    ) -> dict[int, LoadedFacts | None]:
        """Load the facts at several applications concurrently, so that they share a statement.

        ``addresses`` has the address of the user for each application.
        """
        loaded = self._find_many(user_id, addresses, versions)
        if len(loaded) == len(addresses):
            return loaded
        errors: list[DatabaseError] = []

        async def load(application_id: int) -> None:
            try:
                loaded[application_id] = await self.load(
                    user_id, application_id, addresses[application_id], versions.find(user_id, application_id)
                )
            except DatabaseError as error:
                errors.append(error)  # raised below, because the nursery would wrap it in an ExceptionGroup

        async with trio.open_nursery() as nursery:
            for application_id in addresses.keys() - loaded.keys():
                nursery.start_soon(load, application_id)
        if errors:
            raise errors[0]
        return loaded

    def _find_many(
        self, user_id: str, addresses: Mapping[int, Address | None], versions: KnownVersions
    ) -> dict[int, LoadedFacts | None]:
        """The facts that are cached in the version that the request has read."""
        loaded: dict[int, LoadedFacts | None] = {}
        for application_id, address in addresses.items():
            version = versions.find(user_id, application_id)
            if version is not None:
                cached = self._cache.find(user_id, application_id, version, address)
                if cached is not None:
                    loaded[application_id] = cached
        return loaded

    async def read_compiled(self, runner: Runner, application_id: int, revision: int) -> CompiledApplication:
        """The compiled schema and roles of a revision that a transaction sees. One that may be rolled back is not
        cached."""
        compiled = self._applications.find(application_id)
        if compiled is None or compiled.version != revision:
            compiled = await read_application(runner, application_id)
            assert compiled is not None  # applications are never deleted
        return compiled


async def read_facts(
    runner: Runner, user_id: str, application_id: int, address: Address | None
) -> PermissionFacts | None:
    """The facts as a transaction sees them now. Returns None if the application does not exist."""
    row = await runner.row(_FACTS.statement, user_id=[user_id], application_id=[application_id])
    return None if row is None else decode_facts(row, user_id, address)


async def read_fact_rows(runner: Runner, pairs: Sequence[tuple[str, int]]) -> dict[tuple[str, int], FactsRow]:
    """The facts about users at applications as a transaction sees them now, without applications that do not exist.

    No user has an address, so conditions on addresses do not hold.
    """
    if not pairs:
        return {}
    users, applications = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    rows = await runner.rows(_FACTS.statement, user_id=users, application_id=applications)
    return {
        pairs[row["n"] - 1]: FactsRow(decode_facts(row, users[row["n"] - 1], None), row["known"], row["revision"])
        for row in rows
    }


async def read_service_rights(runner: Runner, user_id: str, now: int) -> ServiceRights:
    """The rights of a user over the whole service, as a transaction sees them now."""
    central = await read_application(runner, CENTRAL_APPLICATION_ID)
    facts = await read_facts(runner, user_id, CENTRAL_APPLICATION_ID, None)
    assert central is not None  # it is built in
    assert facts is not None
    return compute_service_rights(central, facts, now)
