"""Entries in the audit trail about changes that users make to their own accounts and that affect permissions.

Conditions of roles and groups compare the domain of the login. Its changes are therefore in the audit trail, like those
that operators make; everything else that users do is in their security history (`sso.accounts.history`).
"""

from typing import Any

from sso.db.statement import Statement
from sso.db.transaction import Runner

_WRITE = Statement(
    """INSERT INTO audit (user_id, operation, target, before, after)
    VALUES (:user_id, :operation, :user_id, :before, :after)"""
)


async def audit_registration(tx: Runner, user_id: str, login: str) -> None:
    await _write(tx, user_id, "user.create", None, {"login": login})


async def audit_new_login(tx: Runner, user_id: str, old: str, new: str) -> None:
    await _write(tx, user_id, "user.save", {"login": old}, {"login": new})


async def _write(tx: Runner, user_id: str, operation: str, before: Any, after: Any) -> None:
    await tx.value(_WRITE, user_id=user_id, operation=operation, before=before, after=after)
