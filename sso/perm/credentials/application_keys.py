"""Lookups of the public keys of applications (§2.3): in files, in service_meta, and custom ones.

Files of this node are read when they are needed. Files of other nodes are in the database (`key_file_import.py`).
"""

import re
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

from sso.core.errors import NotFound
from sso.core.keys import PublicKey, UnusableKey, load_public
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.perm.credentials.key_files import KeyFiles

# Keys of a removed application, or of an application in a removed project, are not valid.
_VALID_ONLY = """JOIN applications a USING (application_id) LEFT JOIN projects p ON p.id = a.project_id
    WHERE NOT a.removed AND p.removed IS NOT TRUE"""
_NOT_OF_THIS_NODE = "(k.source <> 'file' OR k.node <> :node)"
_KEYS_OF_APPLICATION = Statement(
    f"""SELECT k.id, k.pem FROM application_keys k {_VALID_ONLY} AND k.application_id = :application_id
        AND {_NOT_OF_THIS_NODE}
    ORDER BY k.source DESC, k.created, k.id"""
)
_APPLICATION_EXISTS = Statement("SELECT 1 FROM applications WHERE application_id = :application_id")
_KEY_OF_APPLICATION = BatchStatement(
    f"""SELECT item.n, key.pem FROM {{items}} JOIN LATERAL (
        SELECT k.pem FROM application_keys k {_VALID_ONLY} AND k.application_id = item.application_id
            AND k.id = item.id AND (k.source <> 'file' OR k.node <> item.node) LIMIT 1) key ON true""",
    columns={"application_id": "int", "id": "text", "node": "text"},
)
_KEY_BY_ID = Statement(
    f"SELECT k.pem FROM application_keys k {_VALID_ONLY} AND k.id = :id AND {_NOT_OF_THIS_NODE} LIMIT 1"
)
_ACTIVE_APPLICATIONS = Statement(
    f"SELECT application_id FROM (SELECT unnest(CAST(:ids AS int[])) AS application_id) k {_VALID_ONLY}"
)

_IS_IMPORTED = Statement(
    f"""SELECT EXISTS (SELECT FROM application_keys k WHERE application_id = :application_id AND source = 'file'
        AND {_NOT_OF_THIS_NODE})"""
)

MAX_LOADED_KEYS = 1000
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)  # other strings are not looked up at all


class ApplicationKey(NamedTuple):
    key: PublicKey
    is_active: bool = False  # the application, and its project, are known to be not removed


class ApplicationKeys:
    def __init__(self, database: Database, files: KeyFiles, node: str) -> None:
        self._database = database
        self._files = files
        self._node = node
        self._find_key = Batch(database, _KEY_OF_APPLICATION)

    async def find(self, application_id: int, key_id: str) -> ApplicationKey | None:
        """Returns the key with which the application may sign service JWTs, or None if there is no such key.

        A key in a file is returned for a removed application as well: `ServiceJwts` checks the application.
        """
        if not _KEY_ID.fullmatch(key_id):
            return None
        row = await self._find_key(application_id=application_id, id=key_id, node=self._node)
        if row is not None:
            key = _load_usable(row["pem"])
            return ApplicationKey(key, is_active=True) if key is not None else None
        file_key = await self._files.find(application_id)
        return ApplicationKey(file_key.key) if file_key is not None and file_key.id == key_id else None

    async def has_file(self, application_id: int) -> bool:
        """Returns whether a node has a file with a usable key of the application."""
        if await self._files.find(application_id) is not None:
            return True
        is_imported: bool = await self._database.value(_IS_IMPORTED, application_id=application_id, node=self._node)
        return is_imported

    async def find_pem(self, key_id: str) -> str | None:
        """Returns a public key of any application by its id. Any client may read it."""
        if not _KEY_ID.fullmatch(key_id):
            return None
        pem: str | None = await self._database.value(_KEY_BY_ID, id=key_id, node=self._node)
        if pem is not None and _load_usable(pem):
            return pem
        file_keys = await self._files.find_by_id(key_id)
        active = await self._active_applications([key.application_id for key in file_keys])
        return next((key.pem for key in file_keys if key.application_id in active), None)

    async def published(self, application_id: int) -> list[dict[str, str]]:
        """All keys of an application; an empty list if the application or its project is removed."""
        if not await self._database.value(_APPLICATION_EXISTS, application_id=application_id):
            raise NotFound("application not found")
        rows = await self._database.rows(_KEYS_OF_APPLICATION, application_id=application_id, node=self._node)
        file_key = await self._files.find(application_id)
        if file_key is not None and not await self._active_applications((application_id,)):
            file_key = None
        pems = {file_key.id: file_key.pem} if file_key is not None else {}
        for row in rows:
            if _load_usable(row["pem"]):
                pems.setdefault(row["id"], row["pem"])
        return [{"id": key_id, "data": pem} for key_id, pem in pems.items()]

    async def _active_applications(self, application_ids: Collection[int]) -> frozenset[int]:
        """Returns those of the applications that are not removed and not in a removed project."""
        rows = await self._database.rows(_ACTIVE_APPLICATIONS, ids=list(application_ids)) if application_ids else ()
        return frozenset(row["application_id"] for row in rows)


@lru_cache(MAX_LOADED_KEYS)
def _load_usable(pem: str) -> PublicKey | None:
    """The key, or None if it exceeds the limits of today: it may have been stored when they were wider."""
    try:
        return load_public(pem)
    except UnusableKey:
        return None
