"""The public keys of applications (§2.3): in the file system, in service_meta, and custom ones."""

import re
from collections.abc import Collection
from pathlib import Path

from sso.core import keys as material
from sso.core.errors import NotFound
from sso.core.keys import PublicKey, UnusableKey
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Runner
from sso.perm.credentials.key_files import KeyFiles

# Keys of a removed application, or of one in a removed project, are no keys.
_ALIVE = """JOIN applications a USING (application_id) LEFT JOIN projects p ON p.id = a.project_id
    WHERE NOT a.removed AND p.removed IS NOT TRUE"""
_OF = Statement(
    f"""SELECT k.id, k.pem FROM application_keys k {_ALIVE} AND k.application_id = :application_id
    ORDER BY k.source DESC, k.created, k.id"""  # noqa: S608 - the parts are ours
)
_EXISTS = Statement("SELECT 1 FROM applications WHERE application_id = :application_id")
_ONE = Statement(
    f"SELECT k.pem FROM application_keys k {_ALIVE} AND k.application_id = :application_id AND k.id = :id LIMIT 1"  # noqa: S608
)
_ANYWHERE = Statement(f"SELECT k.pem FROM application_keys k {_ALIVE} AND k.id = :id LIMIT 1")  # noqa: S608
_LIVING = Statement(
    f"""SELECT application_id FROM (SELECT unnest(CAST(:ids AS int[])) AS application_id) k {_ALIVE}"""  # noqa: S608
)
_PUT = Statement(
    """INSERT INTO application_keys (application_id, id, source, pem) VALUES (:application_id, :id, :source, :pem)
    ON CONFLICT DO NOTHING RETURNING id"""
)
_CLEAR = Statement("DELETE FROM application_keys WHERE application_id = :application_id AND source = 'meta'")
_REMOVE = Statement(
    """DELETE FROM application_keys WHERE application_id = :application_id AND id = :id AND source = 'custom'
    RETURNING id"""
)
_END = Statement("DELETE FROM application_keys WHERE application_id = :application_id RETURNING id")

_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)  # anything else names no key, and is looked up nowhere


class ApplicationKeys:
    def __init__(self, database: Database, folder: Path) -> None:
        self._database = database
        self._files = KeyFiles(folder)

    async def find(self, application_id: int, kid: str) -> PublicKey | None:
        """A key that this application, if it is not removed, may sign a service JWT with."""
        if not _KEY_ID.fullmatch(kid):
            return None
        pem = await self._database.value(_ONE, application_id=application_id, id=kid)
        if pem is not None:
            return _usable(pem)
        in_file = await self._files.of(application_id)
        return in_file.key if in_file is not None and in_file.id == kid else None

    async def has_file(self, application_id: int) -> bool:
        """Whether the operator gave the application a usable key in a file."""
        return await self._files.of(application_id) is not None

    async def find_pem(self, kid: str) -> str | None:
        """The public part of a key by its id alone: anybody may ask, and it decides nothing."""
        if not _KEY_ID.fullmatch(kid):
            return None
        found: str | None = await self._database.value(_ANYWHERE, id=kid)
        if found is not None and _usable(found):
            return found
        in_files = await self._files.with_id(kid)
        living = await self._living([key.application_id for key in in_files])
        return next((key.pem for key in in_files if key.application_id in living), None)

    async def published(self, application_id: int) -> list[dict[str, str]]:
        """All keys of an application; none if it, or its project, is removed."""
        if not await self._database.value(_EXISTS, application_id=application_id):
            raise NotFound("application not found")
        rows = await self._database.rows(_OF, application_id=application_id)
        in_file = await self._files.of(application_id)
        if in_file is not None and not await self._living((application_id,)):
            in_file = None
        found = {in_file.id: in_file.pem} if in_file is not None else {}
        for row in rows:
            if _usable(row["pem"]):
                found.setdefault(row["id"], row["pem"])
        return [{"id": kid, "data": pem} for kid, pem in found.items()]

    async def add_custom(self, runner: Runner, application_id: int, pem: str) -> str:
        """The id of the key; UnusableKey if it is none."""
        key = material.load_public(pem)
        await _put(runner, application_id, key, "custom")
        return material.key_id(key)

    async def remove_custom(self, runner: Runner, application_id: int, kid: str) -> bool:
        return await runner.value(_REMOVE, application_id=application_id, id=kid) is not None

    async def _living(self, ids: Collection[int]) -> frozenset[int]:
        rows = await self._database.rows(_LIVING, ids=list(ids)) if ids else ()
        return frozenset(row["application_id"] for row in rows)


async def set_from_meta(tx: Runner, application_id: int, public_key: str) -> None:
    """What service_meta.public_key says; a string that is no usable key is published nowhere and opens nothing."""
    await tx.value(_CLEAR, application_id=application_id)
    try:
        key = material.load_public(public_key)
    except UnusableKey:
        return
    await _put(tx, application_id, key, "meta")


async def end_signing_keys(tx: Runner, application_id: int) -> list[str]:
    """Delete all keys that are not in files; their ids."""
    return sorted(row["id"] for row in await tx.rows(_END, application_id=application_id))


def _usable(pem: str) -> PublicKey | None:
    """A key that was stored under wider limits than today's is none."""
    try:
        return material.load_public(pem)
    except UnusableKey:
        return None


async def _put(runner: Runner, application_id: int, key: PublicKey, source: str) -> None:
    pem = material.public_pem(key)
    await runner.value(_PUT, application_id=application_id, id=material.key_id(key), source=source, pem=pem)
