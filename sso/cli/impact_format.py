"""What a dry run would change, as lines of text."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sso.perm.changes.impact import Impact
    from sso.state.apply import ApplyReport

MAX_LINES = 50  # of records, and of users


def format_apply_report(report: "ApplyReport", logins: Mapping[str, str]) -> Iterator[str]:
    counts = report.counts
    yield f"would create {counts.created}, change {counts.changed}, leave {counts.unchanged} unchanged"
    for difference in report.differences[:MAX_LINES]:
        fields = ", ".join(difference.fields) if difference.before is not None else "new"
        yield f"  {difference.operation} {difference.target}: {fields}"
    if len(report.differences) > MAX_LINES:
        yield f"  and {len(report.differences) - MAX_LINES:,} more changes (--json shows all)"
    yield from format_impact(report.impact, logins)


def format_impact(impact: "Impact", logins: Mapping[str, str]) -> Iterator[str]:
    """``logins`` are those of the users, by id."""
    if not impact.total:
        yield "no user would gain or lose permissions"
    else:
        yield f"users who {'would' if impact.is_exact else 'may'} gain or lose permissions: {impact.total:,}"
    for change in impact.changes[:MAX_LINES]:
        entries = [*(f"+{entry}" for entry in change.gained), *(f"-{entry}" for entry in change.lost)]
        user = logins.get(change.user_id, change.user_id)
        yield f"  {user} at application {change.application_id}: {' '.join(entries)}"
    if len(impact.changes) > MAX_LINES:
        yield f"  and {len(impact.changes) - MAX_LINES:,} more (--json shows all)"
    for failed in impact.failed_assertions:
        yield f"assertion fails: application {failed.application_id}: {failed.statement}: {failed.reason}"
