"""Writes all users in the form in which they are imported, for moving to another service."""

from collections.abc import AsyncGenerator
from typing import Any

from sso.accounts.model import User
from sso.accounts.second_factor.codes import totp_purpose
from sso.accounts.user_record import exported_user
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.encryption import Keyring
from sso.db.database import Database
from sso.db.transaction import Row
from sso.state.user_export_store import read_users_after

PAGE = 500


async def export_users(
    database: Database, keyring: Keyring, actor: AuditActor, *, secrets: bool
) -> AsyncGenerator[dict[str, Any], None]:
    """Yields each user, with ``secrets`` also the password hash and the secret of the authenticator app.

    The audit entry is written before the first user is read, so that an export that ends early has one, too.
    """
    await trail.write(database, actor, "users.export", "", None, {"secrets": secrets})
    after = ""
    while rows := await read_users_after(database, after, PAGE):
        for row in rows:
            yield _record(row, keyring if secrets else None)
        after = rows[-1]["user_id"]


def _record(row: Row, keyring: Keyring | None) -> dict[str, Any]:
    user = User.from_row(row)
    record = exported_user(user) | {name: row[name] for name in ("identities", "roles") if row[name]}
    if keyring is not None and user.password_hash:
        record["password_hash"] = user.password_hash
    if keyring is not None and user.totp_sealed:
        record["totp_secret"] = keyring.decrypt(totp_purpose(user.user_id), user.totp_sealed)
    return record
