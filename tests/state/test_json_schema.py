"""The JSON schema of documents: it is current, accepts what the service accepts, and names what it refuses."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from sso.core.field_errors import FieldError
from sso.state.document import parse
from sso.state.json_schema import document_schema
from tests.state.studio import studio

FILE = Path(__file__).parents[2] / "docs" / "state.schema.json"
VALIDATOR = Draft202012Validator(document_schema())


def test_file_in_the_documentation_is_current() -> None:
    assert json.loads(FILE.read_text()) == document_schema(), "run: sso state schema > docs/state.schema.json"
    Draft202012Validator.check_schema(document_schema())


def test_valid_document_is_accepted() -> None:
    time = {"until": 2000000000, "weekly": [{"days": ["sat"], "to": "24:00"}], "zone": "Europe/Berlin"}
    role = {"name": "weekend", "condition": {"or": [{"tag": "a"}, {"time": time}], "everyone": True}}
    document = studio() | {"$schema": "state.schema.json"}
    document["roles"] = {"40": [role, *document["roles"]["40"]]}
    document["applications"][0]["assertions"] = ["only weekend may chat.mute"]
    parse(document)
    assert [error.message for error in VALIDATOR.iter_errors(orjson.loads(orjson.dumps(document)))] == []


def role_with(condition: dict[str, Any]) -> dict[str, Any]:
    return {"roles": {"40": [{"name": "r", "condition": condition}]}}


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"user": []}, ""),
        ({"users": {}}, "users"),
        ({"users": [{"nick": "Ann"}]}, "users.0"),
        ({"users": [{"login": "ann@example.com", "pasword": "x"}]}, "users.0"),
        ({"roles": {"forty": []}}, "roles"),
        (role_with({"tga": "x"}), "roles.40.0.condition"),
        (role_with({"time": {"weekly": [{"to": "25:00"}]}}), "roles.40.0.condition"),
        ({"groups": [{"group_id": "a" * 24, "conditions": [{"title": "t", "condition": {"uid": "1"}}]}]},
         "groups.0.conditions.0.condition.uid"),
        ({"memberships": [{"users": []}]}, "memberships.0"),
        ({"applications": [{"application_id": 40, "assertions": "x"}]}, "applications.0.assertions"),
    ],
)  # fmt: skip
def test_wrong_document_is_refused_by_the_schema_and_the_service(document: dict[str, Any], path: str) -> None:
    errors = [".".join(map(str, error.absolute_path)) for error in VALIDATOR.iter_errors(document)]
    assert path in errors
    with pytest.raises(FieldError):
        parse(document)
