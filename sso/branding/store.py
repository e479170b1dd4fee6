"""The stored brand: one row with its texts, and the logos that were uploaded last, so that an undo finds them."""

from msgspec import Struct

from sso.branding.record import SETTINGS
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction

KEPT_LOGOS = 10

_READ = Statement("SELECT texts, version FROM stored_brand WHERE id = 1")
_CREATE = Statement("INSERT INTO stored_brand (id) VALUES (1) ON CONFLICT DO NOTHING")
_LOCK = Statement("SELECT texts, version FROM stored_brand WHERE id = 1 FOR UPDATE")
_SAVE = Statement("UPDATE stored_brand SET texts = :texts, version = version + 1 WHERE id = 1 RETURNING texts, version")
_LOGO = Statement("SELECT content FROM brand_logos WHERE logo_id = :logo_id")
_ADD_LOGO = Statement(
    """INSERT INTO brand_logos (logo_id, content) VALUES (:logo_id, :content)
    ON CONFLICT (logo_id) DO UPDATE SET created = now()"""
)
_FORGET_LOGOS = Statement(
    """DELETE FROM brand_logos WHERE logo_id <> :kept AND logo_id NOT IN (
        SELECT logo_id FROM brand_logos ORDER BY created DESC LIMIT :limit)"""
)


class StoredBrand(Struct, frozen=True):
    texts: dict[str, str]  # every field; "" for one that is not stored. The logo is its id
    version: int


def _stored(row: Row | None) -> StoredBrand:
    texts = row["texts"] if row else {}
    return StoredBrand({name: texts.get(name, "") for name in SETTINGS}, row["version"] if row else 0)


async def read_brand(runner: Runner) -> StoredBrand:
    return _stored(await runner.row(_READ))


async def lock_brand(tx: Transaction) -> StoredBrand:
    """Returns the brand, which nothing else changes until the transaction ends."""
    await tx.value(_CREATE)
    return _stored(await tx.row(_LOCK))


async def save_texts(tx: Transaction, texts: dict[str, str]) -> StoredBrand:
    return _stored(await tx.row(_SAVE, texts={name: text for name, text in texts.items() if text}))


async def read_logo(runner: Runner, logo_id: str) -> bytes | None:
    content: bytes | None = await runner.value(_LOGO, logo_id=logo_id)
    return content


async def add_logo(tx: Transaction, logo_id: str, content: bytes) -> None:
    """Stores a logo. Only the newest ones stay."""
    await tx.value(_ADD_LOGO, logo_id=logo_id, content=content)
    await tx.value(_FORGET_LOGOS, kept=logo_id, limit=KEPT_LOGOS)
