"""The credentials that each permission endpoint accepts in place of the device factor (§4.1, §4.5).

They depend on the subject of the endpoint. If a credential is valid for one application only, the rule of the endpoint
says which field of the body names the application of the request.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

from msgspec import Struct

from sso.core.field_errors import FieldError
from sso.perm.input.names import read_application_id


class Subject(Enum):
    """What the requests to an endpoint are about."""

    PROJECT = auto()  # nothing replaces the factor
    APPLICATION = auto()  # a service JWT of that application, or of its project, replaces the factor
    USER_DATA = auto()  # as for an application; for get, an access key of that application does so too
    CALLER = auto()  # any service JWT replaces the factor


class EndpointRule(Struct, frozen=True):
    subject: Subject
    application_field: tuple[str, ...] = ()  # the path of the application id in the body
    harmless_get: bool = False  # the action get changes nothing and shows no other users
    asks_questions: bool = False  # it has no action: it answers data.questions, which name users and applications
    user_optional: bool = False  # a service or an access key needs no user JWT

    def is_get(self, fields: dict[str, Any]) -> bool:
        return self.asks_questions or fields.get("action") == "get"

    def replaces_factor(self, *, has_service_jwt: bool, is_access_key_get: bool) -> bool:
        """Returns whether the credentials of a request replace a missing factor: a service JWT, or an access key in a
        get.

        `Authorizer` checks later that they are valid for the application of the request.
        """
        match self.subject:
            case Subject.PROJECT:
                return False
            case Subject.APPLICATION | Subject.CALLER:
                return has_service_jwt
            case Subject.USER_DATA:
                return has_service_jwt or is_access_key_get

    def application_of(self, fields: dict[str, Any], service_id: int) -> int:
        """Returns the application that a request is about; 0 if it names none.

        ``service_id`` is the application of the service JWT, 0 without one. meta/data uses it if the body names none.
        """
        if self.asks_questions:
            return _application_of_questions(fields, service_id)
        if not self.application_field:
            return 0
        value: Any = fields
        for name in self.application_field:
            value = value.get(name) if isinstance(value, dict) else None
        if value is None and self.subject is Subject.USER_DATA:
            return service_id
        return _application_id(value)


def questions_of(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the questions of a body that is not checked yet. Whatever is not an object is left out."""
    data = fields.get("data")
    questions = data.get("questions") if isinstance(data, dict) else None
    return [item for item in questions if isinstance(item, dict)] if isinstance(questions, list) else []


def _application_of_questions(fields: dict[str, Any], service_id: int) -> int:
    """Returns the application that all questions are about; 0 if they are about several."""
    default = fields.get("application_id", service_id or None)
    named = {_application_id(item.get("application_id", default)) for item in questions_of(fields)}
    return named.pop() if len(named) == 1 else 0


def _application_id(value: object) -> int:
    try:
        return read_application_id(value, ("application_id",))
    except FieldError:
        return 0


_PROJECT = EndpointRule(Subject.PROJECT)
_APPLICATION = EndpointRule(Subject.APPLICATION, ("application_id",), harmless_get=True)

ENDPOINT_RULES: Mapping[str, EndpointRule] = {
    "/user/info": EndpointRule(Subject.CALLER),
    "/application": EndpointRule(Subject.APPLICATION, ("data", "application_id"), harmless_get=True),
    "/application/tags": EndpointRule(Subject.PROJECT, ("application_id",)),
    "/accessKey": _APPLICATION,
    "/roles": _APPLICATION,
    "/meta/schema": _APPLICATION,
    "/meta/data": EndpointRule(Subject.USER_DATA, ("application_id",)),
    "/check": EndpointRule(Subject.USER_DATA, asks_questions=True),
    "/publish": _PROJECT,
    "/project": EndpointRule(Subject.PROJECT, harmless_get=True),
    "/project/membership": _PROJECT,
    "/group": _PROJECT,
    "/group/access": _PROJECT,
    "/group/tags": _PROJECT,
    "/audit": _PROJECT,
}
