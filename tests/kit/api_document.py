"""Compares answers of the management API with the OpenAPI document of the server that gave them."""

import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import httpx
from jsonschema import Draft202012Validator

PREFIX = "/api/admin/"


@dataclass(frozen=True)
class Operation:
    id: str
    method: str
    path: str  # such as /api/admin/users/{user_id}
    answers: dict[str, Any]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(self.path)))


class ApiDocument:
    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        # A client may get new fields one day, so the document allows them. A field that it lacks is an error here.
        self._components = closed(document["components"])
        self._validators: dict[tuple[str, int], Draft202012Validator] = {}  # by operation and status

    @cached_property
    def operations(self) -> dict[str, Operation]:
        """The operations of the management API by their ids. Paths without variables come first."""
        found = [
            Operation(operation["operationId"], method.upper(), path, operation["responses"])
            for path, item in self.document["paths"].items()
            for method, operation in item.items()
            if path.startswith(PREFIX)
        ]
        return {operation.id: operation for operation in sorted(found, key=lambda item: item.path.count("{"))}

    def find(self, method: str, path: str) -> Operation | None:
        return next(
            (item for item in self.operations.values() if item.method == method and item.pattern.fullmatch(path)), None
        )

    def check(self, response: httpx.Response) -> str | None:
        """Fails if the answer is not what the document says. Returns the id of the operation; None if it has none."""
        request = response.request
        operation = self.find(request.method, request.url.raw_path.decode().partition("?")[0])
        if operation is None or not response.headers.get("Content-Type", "").startswith("application/json"):
            return None
        name = f"{operation.id} {response.status_code}"
        errors = list(self._validator(operation, response.status_code).iter_errors(response.json()))
        assert not errors, f"{name}: {[(list(error.path), error.message[:300]) for error in errors[:3]]}"
        return operation.id

    def _validator(self, operation: Operation, status: int) -> Draft202012Validator:
        if (operation.id, status) not in self._validators:
            answer = operation.answers.get(str(status))
            assert answer is not None, f"{operation.id} {status}: the document does not have this status"
            if reference := answer.get("$ref"):
                answer = self.document["components"]["responses"][reference.rpartition("/")[2]]
            schema = closed(answer["content"]["application/json"]["schema"])
            validator = Draft202012Validator({**schema, "components": self._components})
            self._validators[operation.id, status] = validator
        return self._validators[operation.id, status]


def closed(schema: Any) -> Any:
    """Refuses members that a schema does not name."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        result.setdefault("additionalProperties", False)
    return result


@cache
def document_of(base_url: str) -> ApiDocument:
    return ApiDocument(httpx.get(f"{base_url}/openapi.json", timeout=60).json())


def checked(response: httpx.Response) -> httpx.Response:
    """Returns the answer if the document of its server describes it."""
    url = response.request.url
    document_of(f"{url.scheme}://{url.netloc.decode()}").check(response)
    return response
