"""The JSON schema of documents of desired state, from the models that read them, for editors and other tools."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from sso.accounts.user_record import UserRecord
from sso.oauth.clients.record import ClientRecord
from sso.perm.input.access_keys import AccessKeyRecord
from sso.perm.input.application import ApplicationRecord
from sso.perm.input.assertions import MAX_ASSERTIONS, MAX_LENGTH
from sso.perm.input.groups import GroupRecord
from sso.perm.input.project import ProjectRecord
from sso.perm.input.roles import RoleFields
from sso.perm.input.schema import USER_DATA_FIELDS
from sso.perm.input.time_windows import time_window_schema
from sso.state.sections.permissions import PermissionRecord
from sso.state.sections.schemas import SCHEMA_FIELDS
from sso.upstream.provider_record import ProviderRecord

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_LISTS: dict[str, type[BaseModel]] = {
    "users": UserRecord,
    "clients": ClientRecord,
    "identity_providers": ProviderRecord,
    "projects": ProjectRecord,
    "applications": ApplicationRecord,
    "groups": GroupRecord,
    "permissions": PermissionRecord,
    "access_keys": AccessKeyRecord,
}
_STRING, _OBJECT = {"type": "string"}, {"type": "object"}
_APPLICATION_KEY = "^[1-9][0-9]{0,9}$"


def document_schema() -> dict[str, Any]:
    models: list[type[BaseModel]] = [*_LISTS.values(), RoleFields]
    _, generated = models_json_schema([(model, "validation") for model in models], ref_template="#/$defs/{model}")
    definitions: dict[str, Any] = _without_titles(generated)["$defs"]
    _complete(definitions)
    sections: dict[str, Any] = {name: _list_of(_ref(model.__name__)) for name, model in _LISTS.items()}
    sections |= {
        "schemas": _by_application(_object({name: {} for name in sorted(SCHEMA_FIELDS)})),
        "roles": _by_application(_list_of(_ref("RoleFields"))),
        "memberships": _list_of(_ref("Membership")),
    }
    return {
        "$schema": DIALECT,
        "title": "Document of desired state",
        **_object({"$schema": _STRING, **sections}),
        "$defs": dict(sorted(definitions.items())),
    }


def _complete(definitions: dict[str, Any]) -> None:
    """Adds what the models leave to other readers: conditions, assertions, memberships and sections of user data."""
    for name in (*(model.__name__ for model in _LISTS.values()), "RoleFields"):
        definitions[name]["additionalProperties"] = False
    del definitions["RoleFields"]["properties"]["application_id"]
    definitions["RoleFields"]["properties"]["condition"] = {"anyOf": [_ref("Condition"), {"type": "null"}]}
    definitions["GroupConditionFields"]["properties"]["condition"] = _ref("Condition")
    text = _STRING | {"maxLength": MAX_LENGTH, "description": "LOGIN may RULE, LOGIN may not RULE, only ROLE may RULE"}
    definitions["ApplicationRecord"]["properties"]["assertions"] = _list_of(text) | {"maxItems": MAX_ASSERTIONS}
    data = {name: _list_of(_ref("Assignment")) if name == "roles" else {} for name in sorted(USER_DATA_FIELDS)}
    definitions["PermissionRecord"]["properties"]["data"] = _OBJECT | {"properties": data}
    number = {"type": "integer", "minimum": 0}
    assignment = _object({"name": _STRING, "expired": number, "ttl": number}, "name")
    roles = {"project": _list_of(_ref("Assignment"))} | {
        level: _OBJECT | {"additionalProperties": _list_of(_ref("Assignment"))}
        for level in ("applications", "services", "groups")
    }
    member = _object({"user_id": _STRING, "roles": _object(roles)}, "user_id")
    groups = _list_of(_STRING)
    definitions |= {
        "Assignment": {"anyOf": [_STRING, assignment]},
        "Membership": _object({"id": _STRING, "users": _list_of(member), "allow": groups, "disallow": groups}, "id"),
        "Condition": _condition(),
    }


def _condition() -> dict[str, Any]:
    parts = _list_of(_ref("Condition"))
    word = _STRING | {"minLength": 1}
    members = {"domain": word, "uid": _list_of(_STRING), "tag": word, "ip": word, "purchase": word}
    others = {"time": time_window_schema(), "everyone": {"type": "boolean"}, "and": parts, "or": parts}
    return _object(members | others)


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": list(required)} if required else {})


def _by_application(value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "patternProperties": {_APPLICATION_KEY: value}, "additionalProperties": False}


def _list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def _without_titles(value: Any) -> Any:
    """Leaves out the titles of fields, which repeat their names."""
    if isinstance(value, list):
        return [_without_titles(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: _without_titles(item) for name, item in value.items() if name != "title" or isinstance(item, dict)}
