"""One statement for a request that reads permissions: its credentials, and the versions of the facts that it needs.

Concurrent requests share the statement.
"""

from typing import NamedTuple

from sso.accounts.token_holder import IS_SIGNED_IN
from sso.change_stream.store import POSITION_SQL
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.transaction import Row
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.stores.access_keys import VALID_KEY_SQL
from sso.perm.stores.cached_facts import CachedFacts, PrefetchedFacts
from sso.perm.stores.facts_cache import FactsVersion
from sso.perm.stores.facts_reader import UserAt
from sso.perm.stores.facts_sql import version_sql
from sso.perm.stores.projects import AUTHORED_SQL

# Versions are not computed for an unknown access key, which anybody can send.
_IS_CALLER = "(u.user_id IS NOT NULL OR key.id IS NOT NULL)"
_IS_HOLDER = f"(u.user_id IS NOT NULL AND {IS_SIGNED_IN})"
_READ = BatchStatement(
    f"""SELECT item.n, u.disabled, u.valid_from, {_IS_HOLDER} AS is_holder,
        key.id AS key_id, key.application_id AS key_application_id, key.is_stale,
        c.revision AS central_revision,
        CASE WHEN {_IS_CALLER} THEN {version_sql("item.user_id", "u", "c")} END AS central_version,
        a.revision, CASE WHEN {_IS_CALLER} THEN {version_sql("item.user_id", "u", "a")} END AS version,
        CASE WHEN {_IS_CALLER} AND item.target_id IS NOT NULL THEN {version_sql("item.target_id", "t", "a")}
        END AS target_version, {POSITION_SQL} AS position
    FROM {{items}}
    JOIN applications c ON c.application_id = {CENTRAL_APPLICATION_ID}
    LEFT JOIN applications a ON a.application_id = item.application_id
    LEFT JOIN users u ON u.user_id = item.user_id
    LEFT JOIN users t ON t.user_id = item.target_id
    LEFT JOIN LATERAL ({VALID_KEY_SQL} AND k.digest = item.digest) key ON true""",
    columns={"user_id": "text", "sign_in": "text", "digest": "bytea", "application_id": "int", "target_id": "text"},
)


_READ_AUTHOR = BatchStatement(
    f"""SELECT item.n, u.disabled, u.valid_from, {_IS_HOLDER} AS is_holder, {AUTHORED_SQL} AS authored
    FROM {{items}} LEFT JOIN users u ON u.user_id = item.user_id""",
    columns={"user_id": "text", "sign_in": "text"},
)


class KnownHolder(NamedTuple):
    """The user of a user JWT."""

    disabled: bool
    valid_from: int


class ReadQuery(NamedTuple):
    """What a request reads; an empty id, or None, reads nothing."""

    user_id: str  # of the caller
    sign_in_id: str = ""
    key_digest: bytes | None = None
    application_id: int = 0
    target_id: str | None = None  # another user


class CallerRow(NamedTuple):
    """The result for one request."""

    query: ReadQuery
    row: Row
    facts: PrefetchedFacts

    @property
    def holder(self) -> KnownHolder | None:
        """Returns None if the user does not exist or the sign-in has ended."""
        return KnownHolder(self.row["disabled"], self.row["valid_from"]) if self.row["is_holder"] else None


class CallerReads:
    def __init__(self, database: Database, facts: CachedFacts) -> None:
        self._database = database
        self._facts = facts
        self._read = Batch(database, _READ)
        self._read_author = Batch(database, _READ_AUTHOR)

    async def read(self, query: ReadQuery) -> CallerRow:
        epoch = self._database.epoch
        row = await self._read(
            user_id=query.user_id,
            sign_in=query.sign_in_id,
            digest=query.key_digest,
            application_id=query.application_id,
            target_id=query.target_id,
        )
        assert row is not None  # the central application exists
        is_same_server = epoch == self._database.epoch
        is_known = row["central_version"] is not None and is_same_server
        versions = _versions(query, row, epoch) if is_known else {}
        return CallerRow(
            query, row, PrefetchedFacts(self._facts, versions, revision=row["position"] if is_same_server else None)
        )

    async def read_author(self, query: ReadQuery) -> CallerRow:
        """Reads the caller, and the number of the caller's projects instead of versions."""
        row = await self._read_author(user_id=query.user_id, sign_in=query.sign_in_id)
        assert row is not None
        return CallerRow(query, row, PrefetchedFacts(self._facts, {}, {query.user_id: row["authored"]}))


def _versions(query: ReadQuery, row: Row, epoch: int) -> dict[UserAt, FactsVersion]:
    versions = {
        (query.user_id, CENTRAL_APPLICATION_ID): FactsVersion(row["central_version"], row["central_revision"], epoch)
    }
    revision = row["revision"]
    if revision is not None:
        versions[query.user_id, query.application_id] = FactsVersion(row["version"], revision, epoch)
        if query.target_id is not None:
            versions[query.target_id, query.application_id] = FactsVersion(row["target_version"], revision, epoch)
    return versions
