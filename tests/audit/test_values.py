"""Values in audit entries: secrets are redacted by field, large values are truncated with a marker."""

import orjson
import pytest

from sso.audit.values import MAX_BYTES, REDACTED, redact_and_truncate


@pytest.mark.parametrize(
    ("operation", "value", "expected"),
    [
        ("access_key.create", {"id": "k", "hash": "s3cret"}, {"id": "k", "hash": REDACTED}),
        (
            "application.save",
            {"name": "A", "service_meta": {"private_key": "s3cret", "doc": "x"}},
            {"name": "A", "service_meta": {"private_key": REDACTED, "doc": "x"}},
        ),
        ("application.email_secret", {"email_secret": "s3cret"}, {"email_secret": REDACTED}),
        ("client.save", {"client_secret": "s3cret", "name": "n"}, {"client_secret": REDACTED, "name": "n"}),
        ("user.save", {"password": "s3cret", "totp_secret": None}, {"password": REDACTED, "totp_secret": None}),
        ("user.create", None, None),
    ],
)
def test_secret_fields_of_a_record_are_redacted(operation: str, value: object, expected: object) -> None:
    assert redact_and_truncate(operation, value) == expected


@pytest.mark.parametrize("name", ["secret", "hash", "password", "private_key", "client_secret", "totp_secret"])
def test_rules_with_names_like_secrets_are_not_redacted(name: str) -> None:
    rules = {"private_data": {name: {"value": True}}, "roles": [{"name": name}]}
    for operation in ("permissions.save", "schema.save", "role.save", "membership.save"):
        assert redact_and_truncate(operation, rules) == rules
    configuration = {"service_meta": {"config_schema": {"properties": {name: {"type": "string"}}}}}
    assert redact_and_truncate("application.save", configuration) == configuration


def test_redaction_does_not_change_the_original_value() -> None:
    value = {"service_meta": {"private_key": "s3cret"}}
    redact_and_truncate("application.save", value)
    assert value == {"service_meta": {"private_key": "s3cret"}}


def test_largest_members_of_a_large_record_are_truncated() -> None:
    large = {"private_data": {f"rule{at}": {"value": "x" * 100} for at in range(2000)}, "roles": ["guard"], "id": 5}
    found = redact_and_truncate("permissions.save", large)
    assert found["private_data"] == {"truncated": True, "bytes": len(orjson.dumps(large["private_data"]))}
    assert (found["roles"], found["id"]) == (["guard"], 5)
    assert len(orjson.dumps(found)) <= MAX_BYTES


def test_record_of_the_maximum_size_is_kept() -> None:
    name = {"a": "x" * (MAX_BYTES - len('{"a":""}'))}
    assert redact_and_truncate("schema.save", name) == name
    assert redact_and_truncate("schema.save", {"a": name["a"] + "x"}) == {
        "a": {"truncated": True, "bytes": MAX_BYTES - 5}
    }


def test_large_value_that_is_not_an_object_is_truncated() -> None:
    assert redact_and_truncate("schema.save", ["x" * MAX_BYTES]) == {"truncated": True, "bytes": MAX_BYTES + 4}
