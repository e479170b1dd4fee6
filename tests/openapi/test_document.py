"""The OpenAPI document: every route is in it, and it is valid."""

import subprocess
import sys
from typing import Any

import httpx
import orjson
import pytest

from sso.app import build_app
from sso.health import Health
from sso.openapi.document import build_document, document_path
from sso.services import Services
from sso.telemetry.metrics import Metrics
from tests.kit.server import Server

# Metrics have a listener of their own, which is not the application's.
CONSOLE = "/console"  # pages for people; programs use the management API, whose operations they call
WITHOUT_EXAMPLE = ("/openapi.json", "/account/export")  # too large
NOT_IN_THE_APPLICATION = {("GET", "/metrics")}
ADVICE = (
    "describe a new route in `api_operations.py` of its package (see sso/web/api_description.py). A route of the "
    "management API needs no description: it is taken from its AdminRoute"
)


@pytest.fixture
def document(services: Services) -> dict[str, Any]:
    parsed: dict[str, Any] = orjson.loads(build_document("SSO", services.management.routes))
    return parsed


async def test_every_route_is_in_the_document_and_nothing_else(services: Services, document: dict[str, Any]) -> None:
    routes = {
        (method, document_path(rule.rule))
        for rule in build_app(services, Health(), Metrics()).url_map.iter_rules()
        if not rule.rule.startswith(CONSOLE)
        for method in ({"GET"} if rule.websocket else (rule.methods or set()) - {"HEAD", "OPTIONS"})
    }
    described = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert routes - described == set(), ADVICE
    assert described - routes == NOT_IN_THE_APPLICATION, "these routes no longer exist: remove their descriptions"


async def test_document_is_valid_openapi(document: dict[str, Any]) -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator

    assert [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()] == []


async def test_every_operation_has_a_summary_an_example_or_a_page_and_errors(document: dict[str, Any]) -> None:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            name = f"{method} {path}"
            assert operation["summary"], name
            assert operation["tags"][0] in {tag["name"] for tag in document["tags"]}, name
            assert {"400", "429", "503"} <= operation["responses"].keys(), name
            assert "example" in str(operation.get("requestBody", "example")), name
            answers = [answer for status, answer in operation["responses"].items() if status < "300"]
            answers = [answer for answer in answers if "application/json" in answer.get("content", {})]
            assert path in WITHOUT_EXAMPLE or all("example" in str(answer) for answer in answers), name
            assert "'data': None" not in str(answers), f"{name}: add an example to sso/openapi/admin_examples.py"
            used = {scheme for option in operation.get("security", ()) for scheme in option}
            assert used <= document["components"]["securitySchemes"].keys(), name


async def test_models_are_described_completely(document: dict[str, Any]) -> None:
    """A field whose validator pydantic does not know has an empty schema; give it one with WithJsonSchema."""
    for model, schema in document["components"]["schemas"].items():
        for name, field in schema.get("properties", {}).items():
            assert field.keys() - {"default", "description"} or name in ("application_id", "aliases"), f"{model}.{name}"


def test_document_is_served_with_an_etag(server: Server) -> None:
    first = httpx.get(f"{server.base_url}/openapi.json", timeout=60)
    assert (first.status_code, first.headers["Content-Type"]) == (200, "application/json")
    assert first.json()["openapi"] == "3.1.0"
    again = httpx.get(f"{server.base_url}/openapi.json", headers={"If-None-Match": first.headers["ETag"]}, timeout=60)
    assert (again.status_code, again.content) == (304, b"")


def test_workers_do_not_import_the_descriptions_before_they_are_asked() -> None:
    names = "name for name in sys.modules if 'api_operations' in name or name == 'sso.openapi.document'"
    code = f"import sys, sso.app, sso.worker; print([{names}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
