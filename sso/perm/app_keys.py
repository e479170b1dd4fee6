"""The public keys of applications (§2.3): in the file system, in service_meta, and custom ones."""

from pathlib import Path

from sso.core import keys as material
from sso.core.keys import PublicKey, UnusableKey
from sso.db.bridge import Database, Runner
from sso.db.statement import Statement

_OF = Statement(
    """SELECT id, pem FROM application_keys WHERE application_id = :application_id
    ORDER BY source DESC, created, id"""
)
_ONE = Statement(
    """SELECT pem FROM application_keys k JOIN applications a USING (application_id)
    WHERE k.application_id = :application_id AND k.id = :id AND NOT a.removed LIMIT 1"""
)
_ANYWHERE = Statement("SELECT pem FROM application_keys WHERE id = :id LIMIT 1")
_PUT = Statement(
    """INSERT INTO application_keys (application_id, id, source, pem) VALUES (:application_id, :id, :source, :pem)
    ON CONFLICT DO NOTHING RETURNING id"""
)
_CLEAR = Statement("DELETE FROM application_keys WHERE application_id = :application_id AND source = 'meta'")
_REMOVE = Statement(
    """DELETE FROM application_keys WHERE application_id = :application_id AND id = :id AND source = 'custom'
    RETURNING id"""
)


class ApplicationKeys:
    def __init__(self, database: Database, folder: Path) -> None:
        self._database = database
        self._folder = folder  # keys/<application_id>.pem

    async def find(self, application_id: int, kid: str) -> PublicKey | None:
        """A key that this application, if it is not removed, may sign a service JWT with."""
        pem = await self._database.value(_ONE, application_id=application_id, id=kid)
        if pem is not None:
            return material.load_public(pem)
        return next((key for key in self._from_file(application_id) if material.key_id(key) == kid), None)

    async def find_pem(self, kid: str) -> str | None:
        """The public part of a key by its id alone: anybody may ask, and it decides nothing."""
        found: str | None = await self._database.value(_ANYWHERE, id=kid)
        if found is not None:
            return found
        for path in sorted(self._folder.glob("*.pem")):
            for key in self._read(path):
                if material.key_id(key) == kid:
                    return material.public_pem(key)
        return None

    async def published(self, application_id: int) -> list[dict[str, str]]:
        rows = await self._database.rows(_OF, application_id=application_id)
        found = {material.key_id(key): material.public_pem(key) for key in self._from_file(application_id)}
        for row in rows:
            found.setdefault(row["id"], row["pem"])
        return [{"id": kid, "data": pem} for kid, pem in found.items()]

    async def add_custom(self, runner: Runner, application_id: int, pem: str) -> str:
        """The id of the key; UnusableKey if it is none."""
        key = material.load_public(pem)
        await _put(runner, application_id, key, "custom")
        return material.key_id(key)

    async def remove_custom(self, runner: Runner, application_id: int, kid: str) -> bool:
        return await runner.value(_REMOVE, application_id=application_id, id=kid) is not None

    def _from_file(self, application_id: int) -> list[PublicKey]:
        return self._read(self._folder / f"{int(application_id)}.pem")

    def _read(self, path: Path) -> list[PublicKey]:
        try:
            return [material.load_public(path.read_text())]
        except (OSError, UnicodeDecodeError, UnusableKey):
            return []


async def set_from_meta(tx: Runner, application_id: int, public_key: str) -> None:
    """What service_meta.public_key says; a string that is no usable key is published nowhere and opens nothing."""
    await tx.value(_CLEAR, application_id=application_id)
    try:
        key = material.load_public(public_key)
    except UnusableKey:
        return
    await _put(tx, application_id, key, "meta")


async def _put(runner: Runner, application_id: int, key: PublicKey, source: str) -> None:
    pem = material.public_pem(key)
    await runner.value(_PUT, application_id=application_id, id=material.key_id(key), source=source, pem=pem)
