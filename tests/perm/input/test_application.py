"""Applications in requests: settings and service_meta."""

from typing import Any

import pytest

from sso.core.field_errors import FieldError
from sso.perm.input.application import read_application_fields


@pytest.mark.parametrize(
    "meta",
    [
        {"name": "a" * 33},
        {"name": "é"},
        {"name": "a\n"},
        {"name": 1},
        {"name": "a-b"},
        {"description": "x" * 1025},
        {"tags": [f"t{at}" for at in range(11)]},
        {"tags": ["a" * 65]},
        {"tags": ["a-b"]},
        {"tags": [""]},
        {"tags": "a"},
        {"tags": [1]},
        {"url": "file:///etc"},
        {"url": "javascript:alert(1)"},
        {"doc": "gopher://x"},
        {"doc": "//x"},
        {"url": "http://a b"},
        {"url": "http://x\n"},
        {"url": 1},
        {"public_key": "-----BEGIN RSA PRIVATE KEY-----"},
        {"public_key": 1},
        {"private_key": None},
        {"config_schema": []},
        {"env": 5},
        [],
        None,
    ],
)
def test_wrong_service_meta_is_refused(meta: Any) -> None:
    with pytest.raises(FieldError):
        read_application_fields({"service_meta": meta})


def test_service_meta_is_accepted_at_its_limits() -> None:
    meta = {
        "name": "A z_0.9" + "a" * 25,
        "description": "🎲" * 1024,
        "doc": "https://docs.example.com/a?b=c#d",
        "url": "",
        "env": "prod",
        "tags": [f"{'a' * 61}:_{at}" for at in range(10)],
        "public_key": "any string",
        "private_key": "-----BEGIN PRIVATE KEY-----",
        "config_schema": {"$ref": "http://169.254.169.254", "pattern": "(a+)+$"},
    }
    assert read_application_fields({"service_meta": meta | {"x": 1}}) == (
        {"service_meta": meta},
        ["service_meta.x: unknown field, ignored"],
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"restricted_domains": "a.b"},
        {"restricted_domains": [1]},
        {"restricted_domains": ["@a.b"]},
        {"restricted_domains": ["a@b"]},
        {"gdpr": []},
        {"gdpr": {"char_sources": ["ftp://x"]}},
        {"gdpr": {"char_sources": ["file:///x"]}},
        {"gdpr": {"char_sources": [""]}},
        {"gdpr": {"data_sources": ["http://x"]}},
        {"gdpr": {"data_sources": [{"fetch": "javascript:x"}]}},
        {"gdpr": {"data_sources": [{"fetch": "javascript:x", "remove": "https://a.example.com"}]}},
        {"gdpr": {"data_sources": [{"remove": 1}]}},
        {"gdpr": {"data_sources": [{"remove": "http://game.example.com/"}]}},
        [],
        None,
    ],
)
def test_wrong_application_settings_are_refused(settings: Any) -> None:
    with pytest.raises(FieldError):
        read_application_fields({"settings": settings})


def test_unknown_fields_of_application_settings_are_ignored_with_a_warning() -> None:
    settings = {
        "gdpr": {
            "char_sources": ["https://a.b/c"],
            "data_sources": [{"fetch": "https://a.b", "remove": "https://c.d"}],
        },
        "restricted_domains": ["Example.com"],
    }
    assert read_application_fields({"settings": settings | {"other": 1}}) == (
        {"settings": settings},
        ["settings.other: unknown field, ignored"],
    )


def test_application_fields_are_read_as_given() -> None:
    assert read_application_fields({"name": "n", "project_id": "", "other": 1}) == (
        {"name": "n", "project_id": None},
        [],
    )
    assert read_application_fields({"project_id": None}) == ({"project_id": None}, [])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"name": ""}, "name: must not be empty"),
        ({"name": "a\n"}, "name: must not contain control characters"),
        ({"project_id": "x" * 65}, "project_id: must be at most 64 characters"),
        ({"service_meta": {"env": "x" * 65}}, "service_meta.env: must be at most 64 characters"),
        (
            {"service_meta": {"tags": ["a", 1]}},
            "service_meta.tags[1]: must be 1 to 64 letters, digits, colons or underscores",
        ),
        (
            {"settings": {"gdpr": {"data_sources": [{}, {"fetch": ""}]}}},
            "settings.gdpr.data_sources[1].fetch: must not be empty",
        ),
    ],
)
def test_error_names_the_path_and_what_is_expected(data: dict[str, Any], message: str) -> None:
    with pytest.raises(FieldError) as caught:
        read_application_fields(data)
    assert caught.value.message == message
