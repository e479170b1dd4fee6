"""Checks all assertions of applications, for `sso perm test` and the management API."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from sso.db.transaction import Transaction
from sso.perm.changes.assertion_check import check_application
from sso.perm.changes.impact import FailedAssertion
from sso.perm.stores.assertions import read_all_assertions
from sso.perm.stores.facts import StoredFacts


class AssertionReport(Struct, frozen=True):
    checked: int  # assertions
    failed: tuple[FailedAssertion, ...]
    warnings: tuple[str, ...]

    @property
    def json(self) -> dict[str, Any]:
        return {
            "checked": self.checked,
            "failed": [item.json for item in self.failed],
            "warnings": list(self.warnings),
        }

    def without_users(self) -> "AssertionReport":
        """Returns the same report for callers who may not read which users there are, and what they may do."""
        return AssertionReport(self.checked, tuple(item.without_users() for item in self.failed), self.warnings)


async def check_assertions(
    tx: Transaction,
    facts: StoredFacts,
    now: int,
    application_id: int | None = None,
    is_included: Callable[[int], bool] = lambda _application_id: True,
) -> AssertionReport:
    """Checks the assertions of one application, or of all that are included."""
    failed: list[FailedAssertion] = []
    warnings: list[str] = []
    found = await read_all_assertions(tx, application_id)
    assertions = {key: statements for key, statements in found.items() if is_included(key)}
    for key, statements in assertions.items():
        more, more_warnings = await check_application(tx, facts, key, statements, now)
        failed += more
        warnings += [f"application {key}: {warning}" for warning in more_warnings]
    return AssertionReport(sum(map(len, assertions.values())), tuple(failed), tuple(warnings))
