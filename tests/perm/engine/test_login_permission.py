"""Whether a user may log in (§2.8): login rules and restricted domains."""

from typing import Any

import pytest

from sso.perm.engine.login_permission import login_allowed
from sso.perm.engine.records import OwnRecord
from tests.perm.evaluation import NOW, schema


def login(can: bool | None = None, cannot: bool | None = None, **members: Any) -> dict[str, Any]:
    values = {"can": can, "cannot": cannot}
    return {name: {"value": value, **members} for name, value in values.items() if value is not None}


@pytest.mark.parametrize(
    ("base", "own", "expected"),
    [
        ({}, {}, True),
        (login(True, False), {}, True),
        (login(False, False), {}, False),
        (login(True, True), {}, False),
        (login(False, True), login(True, False), True),
        (login(True, False), login(cannot=True), False),
        (login(True, False), login(can=False), False),
        (login(False, False), login(can=True), True),
        (login(True, False), login(cannot=True, expired=NOW), True),
        (login(True, False), login(cannot=True, expired=NOW + 1), False),
    ],
)
def test_own_login_rules_override_those_of_the_schema(base: Any, own: Any, expected: bool) -> None:
    assert login_allowed(schema({"login": base}), OwnRecord(login=own), "example.com", (), NOW) is expected


@pytest.mark.parametrize(
    ("domains", "expected"),
    [((), True), (("example.com",), True), (("EXAMPLE.com", "b.c"), True), (("xample.com",), False), (("com",), False)],
)
def test_only_restricted_domains_may_log_in(domains: tuple[str, ...], expected: bool) -> None:
    assert login_allowed(schema({}), OwnRecord(), "example.com", domains, NOW) is expected
