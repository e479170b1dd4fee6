"""Protected rules: only protected roles may include them."""

import pytest

from sso.core.errors import ApiError
from sso.core.field_errors import FieldError
from sso.perm.input.protected_rules import (
    check_role_protection,
    check_schema_protection,
    protected_rules,
    shadowed_private_rules,
)
from tests.perm.evaluation import role, role_giving, rule, schema

SCHEMA = schema({"private_data": rule("ban", False, protected=True) | rule("chat.mute")})
PROTECTED = protected_rules(SCHEMA)


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("section", ["private_data", "public_data"])
def test_only_protected_roles_may_include_protected_rules(section: str, value: bool) -> None:
    data = {"name": "r", "meta": {section: rule("ban", value)}}
    with pytest.raises(ApiError, match="ban is a protected rule"):
        check_role_protection(role(data), PROTECTED)
    check_role_protection(role(data | {"protected": True}), PROTECTED)


def test_public_role_may_include_other_rules() -> None:
    check_role_protection(role(role_giving("r")), PROTECTED)
    check_role_protection(role(role_giving("r", "chat.ban")), PROTECTED)


def test_rule_cannot_become_protected_while_a_public_role_holds_it() -> None:
    with pytest.raises(FieldError) as caught:
        check_schema_protection(SCHEMA, [role(role_giving("ok")), role(role_giving("r", "ban"))])
    assert caught.value.status == 409
    check_schema_protection(SCHEMA, [role(role_giving("r", "ban", protected=True))])


def test_shadowed_private_rules_are_found() -> None:
    roles = [role(role_giving("r", "kick"))]
    written = rule("ban") | rule("kick") | rule("mine")
    assert shadowed_private_rules(written, SCHEMA, roles) == ["ban", "kick"]
    both = schema({"private_data": rule("ban"), "public_data": rule("ban")})
    assert shadowed_private_rules(written, both, []) == []
