"""Application settings, service_meta and tags at save."""

from typing import Any

import pytest

from sso.perm.errors import InvalidInput
from sso.perm.input.application import read_application_fields
from sso.perm.input.tags import read_tags


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
    with pytest.raises(InvalidInput):
        read_application_fields({"service_meta": meta})


def test_service_meta_at_its_limits() -> None:
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


def test_tags_count_once() -> None:
    assert read_tags(["a", "b", "a"] * 10) == ["a", "b"]


@pytest.mark.parametrize(
    "settings",
    [
        {"restricted_domains": "a.b"},
        {"restricted_domains": [1]},
        {"restricted_domains": ["@a.b"]},
        {"gdpr": []},
        {"gdpr": {"char_sources": ["ftp://x"]}},
        {"gdpr": {"char_sources": [""]}},
        {"gdpr": {"data_sources": ["http://x"]}},
        {"gdpr": {"data_sources": [{"fetch": "javascript:x"}]}},
        {"gdpr": {"data_sources": [{"remove": 1}]}},
        [],
        None,
    ],
)
def test_wrong_settings_are_refused(settings: Any) -> None:
    with pytest.raises(InvalidInput):
        read_application_fields({"settings": settings})


def test_settings() -> None:
    settings = {
        "gdpr": {"char_sources": ["https://a.b/c"], "data_sources": [{"fetch": "https://a.b", "remove": "http://c.d"}]},
        "restricted_domains": ["Example.com"],
    }
    assert read_application_fields({"settings": settings | {"other": 1}}) == (
        {"settings": settings},
        ["settings.other: unknown field, ignored"],
    )
