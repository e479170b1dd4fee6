"""The project quota (§5.6): the highest limit of all sources; unlimited wins, malformed counts as 0."""

from typing import Any

import pytest

from sso.perm.engine.project_quota import project_quota
from tests.perm.evaluation import NOW, evaluate, role_giving, rule

RULE = "can_create_projects"


def limit(*params: str, **parts: Any) -> int | None:
    """Of a user with one role for each of the parameter strings."""
    roles = [role_giving(f"r{at}", RULE, default=True, params=text) for at, text in enumerate(params)]
    return project_quota(evaluate(application_id=1, roles=roles, **parts).effective)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (("5",), 5),
        ((" 7 ",), 7),
        (("5,10",), 10),
        (("",), None),
        ((" , ",), None),
        (("-1",), 0),
        (("abc",), 0),
        (("1e9",), 0),
        (("５",), 0),
        (("1_0",), 0),
        (("9" * 30,), 0),
        (("0",), 0),
        (("3", "8"), 8),
        (("3", ""), None),
        (("abc", "2"), 2),
        (("abc", ""), None),
        ((), 0),
    ],
)
def test_quota_is_the_highest_limit_of_the_roles(params: tuple[str, ...], expected: int | None) -> None:
    assert limit(*params) == expected


def test_own_data_and_schema_are_sources_of_the_quota() -> None:
    assert limit("3", own={"private_data": rule(RULE, params="9")}) == 9
    assert limit("9", own={"private_data": rule(RULE, params="3")}) == 3
    assert limit("3", own={"private_data": rule(RULE)}) is None
    assert limit("3", schema={"private_data": rule(RULE)}) is None


def test_false_value_in_own_data_leaves_no_quota() -> None:
    assert limit("3", own={"private_data": rule(RULE, False)}) == 0


def test_ended_assignment_gives_no_quota() -> None:
    assert limit("3", own={"private_data": rule(RULE, expired=NOW)}) == 3


def test_public_data_gives_no_quota() -> None:
    assert limit(own={"public_data": rule(RULE)}) == 0


def test_other_applications_give_no_quota() -> None:
    assert project_quota(evaluate(application_id=10, own={"private_data": rule(RULE)}).effective) == 0
