"""The audit trail: each change with its actor, time, address, and values before and after.

An entry is written in the transaction of the change.
"""

from dataclasses import dataclass
from typing import Any

from sso.db.statement import Statement
from sso.db.transaction import Runner
from sso.perm.stores.audit_values import redact_and_truncate
from sso.perm.stores.timestamps import rfc3339

DEFAULT_PAGE = 50

_WRITE = Statement(
    """INSERT INTO audit (
        user_id, service_id, key_id, operator, address, operation, target, project_id, application_id, before, after
    ) VALUES (
        :user_id, :service_id, :key_id, :operator, :address, :operation, :target, :project_id, :application_id,
        :before, :after
    )"""
)
_READ = Statement(
    """SELECT * FROM audit
    WHERE (CAST(:project_id AS text) IS NULL OR project_id = :project_id)
      AND (CAST(:application_id AS int) IS NULL OR application_id = :application_id)
      AND (CAST(:user_id AS text) IS NULL OR user_id = :user_id)
      AND (CAST(:operation AS text) IS NULL OR operation = :operation)
      AND (CAST(:target AS text) IS NULL OR target = :target)
      AND (CAST(:since AS float) IS NULL OR at >= to_timestamp(:since))
      AND (CAST(:until AS float) IS NULL OR at < to_timestamp(:until))
      AND (CAST(:before_id AS bigint) IS NULL OR id < :before_id)
    ORDER BY id DESC LIMIT :limit"""
)


@dataclass(frozen=True)
class AuditActor:
    """The author of a change: a user, a service, or the operator of the command line."""

    user_id: str = ""
    service_id: int | None = None
    address: str = ""
    key_id: str | None = None  # the access key that the request was made with
    operator: str = ""  # the account of the operating system that ran a command


@dataclass(frozen=True)
class AuditFilter:
    project_id: str | None = None
    application_id: int | None = None
    user_id: str | None = None
    operation: str | None = None
    target: str | None = None
    since: int | None = None
    until: int | None = None
    before_id: int | None = None  # only entries before this one: the next page
    limit: int = DEFAULT_PAGE


async def write(
    tx: Runner,
    actor: AuditActor,
    operation: str,
    target: str,
    before: Any,
    after: Any,
    *,
    project_id: str | None = None,
    application_id: int | None = None,
) -> None:
    """Write an entry, unless ``before`` equals ``after``. Secrets are redacted, large values are truncated."""
    if before == after:
        return
    await tx.value(
        _WRITE,
        user_id=actor.user_id,
        service_id=actor.service_id,
        key_id=actor.key_id,
        operator=actor.operator,
        address=actor.address,
        operation=operation,
        target=target,
        project_id=project_id,
        application_id=application_id,
        before=redact_and_truncate(operation, before),
        after=redact_and_truncate(operation, after),
    )


async def read(runner: Runner, audit_filter: AuditFilter) -> list[dict[str, Any]]:
    """The entries that match, newest first."""
    rows = await runner.rows(
        _READ,
        project_id=audit_filter.project_id,
        application_id=audit_filter.application_id,
        user_id=audit_filter.user_id,
        operation=audit_filter.operation,
        target=audit_filter.target,
        since=None if audit_filter.since is None else float(audit_filter.since),
        until=None if audit_filter.until is None else float(audit_filter.until),
        before_id=audit_filter.before_id,
        limit=audit_filter.limit,
    )
    return [{**dict(row), "at": rfc3339(row["at"])} for row in rows]
