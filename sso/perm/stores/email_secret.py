"""The secret with which an application may ask for the e-mail address of a login (``with_email``)."""

import hmac

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.encryption import Keyring, column_purpose
from sso.core.ids import secret_token
from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction

_READ = Statement("SELECT email_secret_sealed FROM applications WHERE application_id = :application_id AND NOT removed")
_LOCK = Statement(
    """SELECT a.email_secret_sealed, a.project_id FROM applications a LEFT JOIN projects p ON p.id = a.project_id
    WHERE a.application_id = :application_id AND NOT a.removed AND p.removed IS NOT TRUE FOR UPDATE OF a"""
)
_WRITE = Statement("UPDATE applications SET email_secret_sealed = :sealed WHERE application_id = :application_id")


async def get_or_create_email_secret(
    tx: Transaction, actor: AuditActor, keyring: Keyring, application_id: int
) -> str | None:
    """The secret, created if there is none. Returns None if there is no such application, or it is removed."""
    row = await tx.row(_LOCK, application_id=application_id)
    if row is None:
        return None
    if row["email_secret_sealed"] is not None:
        return keyring.decrypt(_purpose(application_id), row["email_secret_sealed"])
    secret = secret_token()
    await tx.value(_WRITE, application_id=application_id, sealed=keyring.encrypt(_purpose(application_id), secret))
    await trail.write(
        tx,
        actor,
        "application.email_secret",
        str(application_id),
        None,
        {"email_secret": secret},
        project_id=row["project_id"],
        application_id=application_id,
    )
    return secret


async def email_secret_matches(runner: Runner, keyring: Keyring, application_id: int, secret: str) -> bool:
    sealed = await runner.value(_READ, application_id=application_id)
    if sealed is None:
        return False
    return hmac.compare_digest(keyring.decrypt(_purpose(application_id), sealed).encode(), secret.encode())


def _purpose(application_id: int) -> str:
    return column_purpose("applications.email_secret_sealed", application_id)
