"""Assertions of applications in the database. Every change is written to the audit trail."""

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction

_READ = Statement("SELECT assertions FROM applications WHERE application_id = :application_id")
_SAVE = Statement("UPDATE applications SET assertions = :assertions WHERE application_id = :application_id")
_ALL = Statement(
    """SELECT a.application_id, a.assertions FROM applications a LEFT JOIN projects p ON p.id = a.project_id
    WHERE a.assertions <> '[]' AND NOT a.removed AND p.removed IS NOT TRUE
        AND (CAST(:application_id AS int) IS NULL OR a.application_id = :application_id)
    ORDER BY a.application_id"""
)


async def read_assertions(runner: Runner, application_id: int) -> list[str] | None:
    """Returns None if the application does not exist."""
    statements: list[str] | None = await runner.value(_READ, application_id=application_id)
    return statements


async def read_all_assertions(runner: Runner, application_id: int | None = None) -> dict[int, list[str]]:
    """Returns the assertions of applications that are not removed, of one or of all that have some."""
    rows = await runner.rows(_ALL, application_id=application_id)
    return {row["application_id"]: row["assertions"] for row in rows}


async def save_assertions(tx: Transaction, actor: AuditActor, application: Row, statements: list[str]) -> None:
    """Saves the assertions of a locked application. The writer of permissions checks them."""
    application_id = application["application_id"]
    before = application["assertions"]
    if statements == before:
        return
    await tx.value(_SAVE, application_id=application_id, assertions=statements)
    await trail.write(
        tx,
        actor,
        "assertions.save",
        str(application_id),
        {"assertions": before},
        {"assertions": statements},
        project_id=application["project_id"],
        application_id=application_id,
    )
