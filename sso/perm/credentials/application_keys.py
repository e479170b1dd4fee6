"""Lookups of the public keys of applications (§2.3): in files, in service_meta, and custom ones.

Files of this node are read when they are needed. Files of other nodes are in the database (`key_file_import.py`).
"""

import re
from functools import lru_cache
from typing import NamedTuple

from sso.core.errors import NotFound
from sso.core.keys import PublicKey, UnusableKey, load_public
from sso.db.database import Database
from sso.perm.credentials.key_files import KeyFiles
from sso.perm.stores.application_keys import StoredApplicationKeys

MAX_LOADED_KEYS = 1000
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)  # other strings are not looked up at all


class ApplicationKey(NamedTuple):
    key: PublicKey
    is_active: bool = False  # the application, and its project, are known to be not removed


class ApplicationKeys:
    def __init__(self, database: Database, files: KeyFiles, node: str) -> None:
        self._files = files
        self._stored = StoredApplicationKeys(database, node)

    async def find(self, application_id: int, key_id: str) -> ApplicationKey | None:
        """Returns the key with which the application may sign service JWTs, or None if there is no such key.

        A key in a file is returned for a removed application as well: `ServiceJwts` checks the application.
        """
        if not _KEY_ID.fullmatch(key_id):
            return None
        pem = await self._stored.find_pem_of_application(application_id, key_id)
        if pem is not None:
            key = _load_usable(pem)
            return ApplicationKey(key, is_active=True) if key is not None else None
        file_key = await self._files.find(application_id)
        return ApplicationKey(file_key.key) if file_key is not None and file_key.id == key_id else None

    async def has_file(self, application_id: int) -> bool:
        """Returns whether a node has a file with a usable key of the application."""
        if await self._files.find(application_id) is not None:
            return True
        return await self._stored.is_imported(application_id)

    async def find_pem(self, key_id: str) -> str | None:
        """Returns a public key of any application by its id. Any client may read it."""
        if not _KEY_ID.fullmatch(key_id):
            return None
        pem = await self._stored.find_pem(key_id)
        if pem is not None and _load_usable(pem):
            return pem
        file_keys = await self._files.find_by_id(key_id)
        active = await self._stored.active_applications([key.application_id for key in file_keys])
        return next((key.pem for key in file_keys if key.application_id in active), None)

    async def published(self, application_id: int) -> list[dict[str, str]]:
        """All keys of an application; an empty list if the application or its project is removed."""
        stored = await self._stored.pems_of_application(application_id)
        if stored is None:
            raise NotFound("application not found")
        file_key = await self._files.find(application_id)
        if file_key is not None and not await self._stored.active_applications((application_id,)):
            file_key = None
        pems = {file_key.id: file_key.pem} if file_key is not None else {}
        for key_id, pem in stored:
            if _load_usable(pem):
                pems.setdefault(key_id, pem)
        return [{"id": key_id, "data": pem} for key_id, pem in pems.items()]


@lru_cache(MAX_LOADED_KEYS)
def _load_usable(pem: str) -> PublicKey | None:
    """The key, or None if it exceeds the limits of today: it may have been stored when they were wider."""
    try:
        return load_public(pem)
    except UnusableKey:
        return None
