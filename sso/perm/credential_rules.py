"""What each permission endpoint is about, and which credentials may replace the device factor there (§4.1, §4.5).

The endpoint decides which application a call is about: a body field that the endpoint does not use decides nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from sso.core.ids import MAX_APPLICATION_ID
from sso.perm.errors import InvalidInput
from sso.perm.input.names import read_application_key


class Subject(Enum):
    """What the calls of an endpoint are about."""

    PROJECT = auto()  # nothing replaces the factor
    APPLICATION = auto()  # a service JWT of that application, or of its project, replaces the factor
    USER_DATA = auto()  # as for an application; for get, an access key of that application does so too
    CALLER = auto()  # any service JWT replaces the factor


@dataclass(frozen=True)
class EndpointRule:
    subject: Subject
    application_field: tuple[str, ...] = ()  # where the body names the application that a call is about
    harmless_get: bool = False  # the action get changes nothing and shows no other users

    def replaces_factor(self, *, service: bool, key_reads: bool) -> bool:
        """Whether a service JWT, or an access key in a get, makes up for a missing factor.

        The desk checks that they are valid for the application of the call.
        """
        match self.subject:
            case Subject.PROJECT:
                return False
            case Subject.APPLICATION | Subject.CALLER:
                return service
            case Subject.USER_DATA:
                return service or key_reads

    def application_of(self, fields: dict[str, Any], service_id: int) -> int:
        """The application that a call is about, 0 if none. ``service_id`` is that of the service JWT, 0 without one."""
        if not self.application_field:
            return 0
        value: Any = fields
        for name in self.application_field:
            value = value.get(name) if isinstance(value, dict) else None
        if value is None and self.subject is Subject.USER_DATA:
            return service_id
        if isinstance(value, str):
            try:
                return read_application_key(value, "application_id")
            except InvalidInput:
                return 0
        return value if type(value) is int and 0 < value <= MAX_APPLICATION_ID else 0


_PROJECT = EndpointRule(Subject.PROJECT)
_APPLICATION = EndpointRule(Subject.APPLICATION, ("application_id",), harmless_get=True)

ENDPOINTS: Mapping[str, EndpointRule] = {
    "/user/info": EndpointRule(Subject.CALLER),
    "/application": EndpointRule(Subject.APPLICATION, ("data", "application_id"), harmless_get=True),
    "/application/tags": EndpointRule(Subject.PROJECT, ("application_id",)),
    "/accessKey": _APPLICATION,
    "/roles": _APPLICATION,
    "/meta/schema": _APPLICATION,
    "/meta/data": EndpointRule(Subject.USER_DATA, ("application_id",)),
    "/publish": _PROJECT,
    "/project": EndpointRule(Subject.PROJECT, harmless_get=True),
    "/project/membership": _PROJECT,
    "/group": _PROJECT,
    "/group/access": _PROJECT,
    "/group/tags": _PROJECT,
    "/audit": _PROJECT,
}
