"""What a dry run would change, as lines of text."""

from collections.abc import Iterator, Mapping
from typing import Any

MAX_LINES = 50  # of records, and of users


def format_apply_report(report: Mapping[str, Any], logins: Mapping[str, str]) -> Iterator[str]:
    """``report`` is the JSON of a dry run; ``logins`` are those of the users, by id."""
    yield f"would create {report['created']}, change {report['changed']}, leave {report['unchanged']} unchanged"
    changes = report["changes"]
    for change in changes[:MAX_LINES]:
        fields = sorted({*(change["before"] or ()), *(change["after"] or ())})
        yield f"  {change['operation']} {change['target']}: {'new' if change['before'] is None else ', '.join(fields)}"
    if len(changes) > MAX_LINES:
        yield f"  and {len(changes) - MAX_LINES:,} more changes (--json shows all)"
    yield from format_impact(report, logins)


def format_impact(report: Mapping[str, Any], logins: Mapping[str, str]) -> Iterator[str]:
    if not report["total"]:
        yield "no user would gain or lose permissions"
    else:
        yield f"users who {'would' if report['exact'] else 'may'} gain or lose permissions: {report['total']:,}"
    users = report["users"]
    for change in users[:MAX_LINES]:
        entries = [*(f"+{entry}" for entry in change["gained"]), *(f"-{entry}" for entry in change["lost"])]
        user = logins.get(change["user_id"], change["user_id"])
        yield f"  {user} at application {change['application_id']}: {' '.join(entries)}"
    if len(users) > MAX_LINES:
        yield f"  and {len(users) - MAX_LINES:,} more (--json shows all)"
    for failed in report["failed_assertions"]:
        yield f"assertion fails: application {failed['application_id']}: {failed['assertion']}: {failed['reason']}"
