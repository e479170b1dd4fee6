"""The operation that saves the brand, with its audit entry. It runs in a transaction of the caller."""

import base64
import re
from collections.abc import Collection

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.branding import store
from sso.branding.record import SETTINGS
from sso.branding.store import StoredBrand
from sso.core.field_errors import FieldError
from sso.core.logo import Logo, check_logo
from sso.db.transaction import Transaction

TOPIC = "brand"
TARGET = "service"
MAX_LOGO_BYTES = 128 * 1024
EXPECTED_LOGO = f"must be an SVG, PNG or WebP image of at most {MAX_LOGO_BYTES // 1024} KiB and 4096 pixels a side"
_DATA_URI = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,([A-Za-z0-9+/]+={0,2})", re.ASCII)
_LOGO_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)


async def save_brand(
    tx: Transaction, actor: AuditActor, before: StoredBrand, changes: dict[str, str], fixed: Collection[str]
) -> StoredBrand:
    """Saves the fields in ``changes`` of the brand that the caller has locked. An empty text removes a value.

    Raises FieldError for a field that a setting decides about (``fixed``): the change would have no effect.
    """
    changes = {name: text for name, text in changes.items() if text != before.texts[name]}
    for name in changes:
        if name in fixed:
            raise FieldError((name,), f"is set by {SETTINGS[name]}, which has precedence")
    if changes.get("logo"):
        changes["logo"] = await _logo_id(tx, changes["logo"])
    after = {**before.texts, **changes}
    if after == before.texts:
        return before
    saved = await store.save_texts(tx, after)
    await trail.write(tx, actor, "brand.save", TARGET, before.texts, saved.texts)
    tx.publish_after_commit(TOPIC)
    return saved


async def _logo_id(tx: Transaction, text: str) -> str:
    """Returns the id of the logo in a data URI, which is stored, or of one that was stored before."""
    if _LOGO_ID.fullmatch(text):
        if await store.read_logo(tx, text) is None:
            raise FieldError(("logo",), "there is no such logo any more; upload it again")
        return text
    try:
        logo = await tx.run_in_thread(decode_logo, text)
    except ValueError as error:
        raise FieldError(("logo",), str(error)) from None
    await store.add_logo(tx, logo.digest, logo.content)
    return logo.digest


def decode_logo(uri: str) -> Logo:
    """Returns the image of a data URI, whose declared type is not used. Raises ValueError."""
    match = _DATA_URI.fullmatch(uri)
    try:
        content = base64.b64decode(match[1], validate=True) if match else b""
        logo = check_logo(content)
    except ValueError:  # also that of a wrong base64 text
        raise ValueError(EXPECTED_LOGO) from None
    if len(content) > MAX_LOGO_BYTES:
        raise ValueError(EXPECTED_LOGO)
    return logo
