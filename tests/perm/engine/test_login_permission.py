"""Login rules (§2.8)."""

from typing import Any

import pytest

from sso.perm.engine.login_permission import login_allowed
from sso.perm.engine.records import OwnRecord
from tests.perm.world import NOW, schema


def says(can: bool | None = None, cannot: bool | None = None, **members: Any) -> dict[str, Any]:
    given = {"can": can, "cannot": cannot}
    return {name: {"value": value, **members} for name, value in given.items() if value is not None}


@pytest.mark.parametrize(
    ("base", "own", "expected"),
    [
        ({}, {}, True),
        (says(True, False), {}, True),
        (says(False, False), {}, False),
        (says(True, True), {}, False),
        (says(False, True), says(True, False), True),
        (says(True, False), says(cannot=True), False),
        (says(True, False), says(can=False), False),
        (says(False, False), says(can=True), True),
        (says(True, False), says(cannot=True, expired=NOW), True),
        (says(True, False), says(cannot=True, expired=NOW + 1), False),
    ],
)
def test_login_rules_are_overridden_by_the_users_own(base: Any, own: Any, expected: bool) -> None:
    assert login_allowed(schema({"login": base}), OwnRecord(login=own), "example.com", (), NOW) is expected


@pytest.mark.parametrize(
    ("domains", "expected"),
    [((), True), (("example.com",), True), (("EXAMPLE.com", "b.c"), True), (("xample.com",), False), (("com",), False)],
)
def test_restricted_domains_name_the_only_domains_that_may(domains: tuple[str, ...], expected: bool) -> None:
    assert login_allowed(schema({}), OwnRecord(), "example.com", domains, NOW) is expected
