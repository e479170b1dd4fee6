"""The OpenAPI document: every route is in it, and it is valid. tests/openapi compares it with a server."""

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from scripts.reference_tables.route_limits import offline_services
from sso.admin.answers.shape import UNTYPED
from sso.app import build_app
from sso.health import Health
from sso.oauth.authorization.request import PARAMETERS
from sso.oauth.pages import AUTHORIZE_PATH
from sso.openapi.document import build_document, document_path
from sso.openapi.operation_ids import SERVICE_OPERATIONS
from sso.services import Services
from sso.telemetry.metrics import Metrics

# Metrics have a listener of their own, which is not the application's.
CONSOLE = "/console"  # pages for people; programs use the management API, whose operations they call
# Fields that have values of any type: the members of conditions that are compared, and free JSON.
ANY_VALUE = ("asked", "found", "application_id", "aliases", "items", "additionalProperties", "JsonValue")
FIELD_ADVICE = "add a sentence to sso/openapi/field_texts, or Field(description=…) to the model"
NOT_IN_THE_APPLICATION = {("GET", "/metrics")}
ADVICE = (
    "describe a new route in `api_operations.py` of its package (see sso/web/api_description.py). A route of the "
    "management API needs no description: it is taken from its AdminRoute"
)
# Not a part of another schema, which is checked with it.
WHOLE_SCHEMA = re.compile(r"\.schema$|^\.components\.schemas\.[^.]+$")
KEYWORDS = {
    "$ref", "additionalProperties", "allOf", "anyOf", "const", "default", "description", "enum", "examples", "format",
    "items", "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minimum", "pattern",
    "patternProperties", "properties", "propertyNames", "required", "title", "type",
}  # fmt: skip


@pytest.fixture(scope="module")
def services() -> Services:
    """Services that have no database."""
    return offline_services()


@pytest.fixture(scope="module")
def document(services: Services) -> dict[str, Any]:
    parsed: dict[str, Any] = orjson.loads(build_document("SSO", services.management.routes))
    return parsed


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield f"{method.upper()} {path}", operation


def schemas(value: Any, where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """All schemas of a part of the document, with the places where they are."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from schemas(item, f"{where}[{index}]")
    elif isinstance(value, dict):
        for name, item in value.items():
            place = f"{where}.{name}"
            if name in ("schema", "items", "additionalProperties") and isinstance(item, dict):
                yield place, item
            if (name == "properties" or place == ".components.schemas") and isinstance(item, dict):
                for field, schema in item.items():
                    yield f"{place}.{field}", schema
                    yield from schemas(schema, f"{place}.{field}")
            elif name not in ("example", "examples", "default", "enum", "const"):
                yield from schemas(item, place)


def test_every_route_is_described_and_nothing_else(services: Services, document: dict[str, Any]) -> None:
    routes = {
        (method, document_path(rule.rule))
        for rule in build_app(services, Health(), Metrics()).url_map.iter_rules()
        if not rule.rule.startswith(CONSOLE)
        for method in ({"GET"} if rule.websocket else (rule.methods or set()) - {"HEAD", "OPTIONS"})
    }
    complete = orjson.loads(build_document("SSO", services.management.routes, with_pages=True))
    described = {(method.upper(), path) for path, item in complete["paths"].items() for method in item}
    assert routes - described == set(), ADVICE
    assert described - routes == NOT_IN_THE_APPLICATION, "these routes no longer exist: remove their descriptions"
    # Programs need no pages. Those that are left are endpoints of the specification, which redirect browsers.
    pages = {name for name, operation in operations(document) if "text/html" in str(operation["responses"].get("200"))}
    assert pages == {"GET /proxy/oauth/authorize", "GET /proxy/oauth/logout"}


def test_document_is_valid_openapi(document: dict[str, Any]) -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator

    assert [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()] == []
    whole = {orjson.dumps(schema): schema for place, schema in schemas(document) if WHOLE_SCHEMA.search(place)}
    for schema in whole.values():
        Draft202012Validator.check_schema(schema)
    for place, schema in schemas(document):
        assert schema.keys() <= KEYWORDS, f"{place}: JSON Schema does not know {schema.keys() - KEYWORDS}"


def test_every_operation_has_a_name_a_summary_an_example_and_errors(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, operation in operations(document)]
    assert len({*names}) == len(names)
    for name, operation in operations(document):
        given = name.split(" ")[1].startswith("/api/admin/") or name in SERVICE_OPERATIONS
        assert given, f"{name}: add its id to sso/openapi/operation_ids.py"
        assert re.fullmatch("[a-z]+(_[a-z0-9]+)*", operation["operationId"]), name
        assert operation["summary"], name
        assert operation["tags"][0] in {tag["name"] for tag in document["tags"]}, name
        assert {"400", "429", "503"} <= operation["responses"].keys(), name
        assert "example" in str(operation.get("requestBody", "example")), name
        used = {scheme for option in operation.get("security", ()) for scheme in option}
        assert used <= document["components"]["securitySchemes"].keys(), name
    assert {"list_users", "get_user", "create_user", "update_user", "delete_user", "list_audit_entries"} <= {*names}
    assert document["paths"]["/api/admin/audit"]["get"]["summary"] == "List audit entries"


def test_examples_follow_their_schemas(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
        for content in [content for body in bodies for content in body.get("content", {}).values()]:
            examples = [content["example"]] if "example" in content else []
            examples += [example["value"] for example in content.get("examples", {}).values()]
            validator = Draft202012Validator({**content["schema"], "components": document["components"]})
            for example in examples:
                assert [error.message for error in validator.iter_errors(example)] == [], name


def test_every_answer_and_every_field_is_described(services: Services, document: dict[str, Any]) -> None:
    for route in services.management.routes:
        name = f"{route.method} {route.path}"
        assert route.answer.data is not UNTYPED, f"{name}: say what it answers with (sso/admin/answers)"
    for name, operation in operations(document):
        for parameter in operation.get("parameters", ()):
            assert parameter.get("description"), f"{name}, parameter {parameter['name']}: {FIELD_ADVICE}"
        for status, answer in operation["responses"].items():
            for media_type, content in answer.get("content", {}).items():
                assert content.get("schema"), f"{name} {status} {media_type} has no schema"
    for place, schema in schemas(document):
        is_field = ".properties." in place and not place.endswith((".items", ".additionalProperties"))
        assert not is_field or schema.get("description"), f"{place}: {FIELD_ADVICE}"
        typed = schema.keys() & {"type", "$ref", "anyOf", "allOf", "const", "enum"}
        assert typed or place.rpartition(".")[2] in ANY_VALUE, f"{place}: a type is missing (WithJsonSchema)"
        options = schema.get("anyOf", ())
        assert len(options) != 2 or {"type": "null"} not in options or "$ref" in str(options), f"{place}: nullable type"


def test_every_parameter_of_an_authorization_request_is_described(document: dict[str, Any]) -> None:
    described = {parameter["name"] for parameter in document["paths"][AUTHORIZE_PATH]["get"]["parameters"]}
    assert described == {"client_id", "redirect_uri", "request_uri", "resource", *PARAMETERS}


def test_workers_do_not_import_the_descriptions_before_they_are_asked() -> None:
    names = "name for name in sys.modules if 'api_operations' in name or name == 'sso.openapi.document'"
    code = f"import sys, sso.app, sso.worker; print([{names}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
