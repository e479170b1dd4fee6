"""The public keys of applications in the database (§2.3): the one in service_meta, and custom ones."""

from sso.core import keys
from sso.core.keys import PublicKey, UnusableKey
from sso.db.statement import Statement
from sso.db.transaction import Runner

_ADD = Statement(
    """INSERT INTO application_keys (application_id, id, source, pem) VALUES (:application_id, :id, :source, :pem)
    ON CONFLICT DO NOTHING RETURNING id"""
)
_DELETE_META_KEY = Statement("DELETE FROM application_keys WHERE application_id = :application_id AND source = 'meta'")
_DELETE_CUSTOM_KEY = Statement(
    """DELETE FROM application_keys WHERE application_id = :application_id AND id = :id AND source IN ('custom', 'file')
    RETURNING id"""
)
_DELETE_ALL = Statement("DELETE FROM application_keys WHERE application_id = :application_id RETURNING id")


async def add_custom_key(runner: Runner, application_id: int, pem: str) -> str:
    """Add a key and return its id. Raises UnusableKey if ``pem`` is not a usable key."""
    key = keys.load_public(pem)
    await _add(runner, application_id, key, "custom")
    return keys.key_id(key)


async def delete_custom_key(runner: Runner, application_id: int, key_id: str) -> bool:
    """Deletes a custom key, or a key of a file that no node has any more. Returns False if there is no such key."""
    return await runner.value(_DELETE_CUSTOM_KEY, application_id=application_id, id=key_id) is not None


async def replace_service_meta_key(runner: Runner, application_id: int, public_key: str) -> None:
    """Replace the key of service_meta.public_key. A string that is no usable key is neither published nor trusted."""
    await runner.value(_DELETE_META_KEY, application_id=application_id)
    try:
        key = keys.load_public(public_key)
    except UnusableKey:
        return
    await _add(runner, application_id, key, "meta")


async def delete_application_keys(runner: Runner, application_id: int) -> list[str]:
    """Delete all keys of an application and return their ids. Keys in files stay."""
    return sorted(row["id"] for row in await runner.rows(_DELETE_ALL, application_id=application_id))


async def _add(runner: Runner, application_id: int, key: PublicKey, source: str) -> None:
    pem = keys.public_pem(key)
    await runner.value(_ADD, application_id=application_id, id=keys.key_id(key), source=source, pem=pem)
