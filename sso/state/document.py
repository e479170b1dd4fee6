"""The format of the document. A field that the document does not name keeps its value."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from pydantic import Field, ValidationError

from sso.accounts.model import login_key
from sso.accounts.user_record import UserRecord
from sso.core.field_errors import FieldError
from sso.core.records import RecordModel
from sso.oauth.clients.record import ClientRecord
from sso.state.sections import (
    access_keys,
    applications,
    groups,
    memberships,
    permissions,
    projects,
    schemas,
)
from sso.upstream.provider_record import ProviderRecord
from sso.web.request_model import expectation


class _Accounts(RecordModel):
    users: list[UserRecord] = Field(default_factory=list)
    clients: list[ClientRecord] = Field(default_factory=list)
    identity_providers: list[ProviderRecord] = Field(default_factory=list)


class Document(Struct, frozen=True):
    """A parsed document. Whether the records that it refers to exist is checked when it is applied."""

    users: list[UserRecord]
    clients: list[ClientRecord]
    identity_providers: list[ProviderRecord]
    projects: list[projects.ProjectPart]
    applications: list[applications.ApplicationPart]
    schemas: list[schemas.SchemaPart]  # with the roles
    groups: list[groups.GroupPart]
    memberships: list[memberships.MembershipPart]
    permissions: list[permissions.PermissionPart]
    access_keys: list[access_keys.AccessKeyPart]
    warnings: tuple[str, ...] = ()

    @property
    def record_count(self) -> int:
        accounts = len(self.users) + len(self.clients) + len(self.identity_providers)
        schemas_and_roles = sum(bool(part.location) + len(part.roles) for part in self.schemas)
        applications = len(self.applications) + len(self.access_keys) + schemas_and_roles
        projects = len(self.projects) + len(self.groups) + len(self.memberships)
        return accounts + applications + projects + len(self.permissions)

    @property
    def has_permissions(self) -> bool:
        """Whether the document has any section of the permission model."""
        parts = (self.projects, self.applications, self.schemas, self.groups, self.memberships, self.permissions)
        return any(parts) or bool(self.access_keys)

    @property
    def application_ids(self) -> set[int]:
        """The ids of all applications that the document names."""
        return {
            *(part.id for part in self.applications),
            *(part.id for part in self.schemas),
            *(part.application_id for part in self.permissions),
            *(part.application_id for part in self.access_keys),
        }


SCHEMA_NAME = "$schema"
ACCOUNT_SECTIONS = frozenset(("users", "clients", "identity_providers"))
SECTIONS = ACCOUNT_SECTIONS | {
    "applications",
    "schemas",
    "roles",
    "projects",
    "permissions",
    "groups",
    "memberships",
    "access_keys",
}


def parse(value: Any) -> Document:
    """Returns the document. Raises FieldError with the location of the first mistake."""
    if not isinstance(value, dict):
        raise FieldError((), "the document: must be an object")
    for name in value:
        if name == SCHEMA_NAME:
            continue  # for editors
        if name not in SECTIONS:
            raise FieldError((name,), "unknown section")
    accounts = _parse_accounts({name: value[name] for name in ACCOUNT_SECTIONS if name in value})
    warnings: list[str] = []
    return Document(
        users=accounts.users,
        clients=accounts.clients,
        identity_providers=accounts.identity_providers,
        projects=projects.read(value.get("projects", []), warnings),
        applications=applications.read(value.get("applications", []), warnings),
        schemas=schemas.read(value.get("schemas", {}), value.get("roles", {}), warnings),
        groups=groups.read(value.get("groups", []), warnings),
        memberships=memberships.read(value.get("memberships", [])),
        permissions=permissions.read(value.get("permissions", []), warnings),
        access_keys=access_keys.read(value.get("access_keys", [])),
        warnings=tuple(warnings),
    )


def count_records(value: Mapping[str, Any]) -> int:
    """Returns how many records a document has that was not parsed yet. It may have mistakes."""
    count = 0
    for section in value.values():
        for part in section.values() if isinstance(section, dict) else (section,):
            # A list of records, or the schema of an application with its roles.
            roles = part.get("roles") if isinstance(part, dict) else None
            count += len(part) if isinstance(part, list) else 1 + (len(roles) if isinstance(roles, dict) else 0)
    return count


def _parse_accounts(value: dict[str, Any]) -> _Accounts:
    try:
        accounts = _Accounts.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        problem = "unknown field" if first["type"] == "extra_forbidden" else expectation(first)
        raise FieldError(first["loc"], problem) from None
    _check_unique("users", "login", [login_key(user.login) for user in accounts.users])
    _check_unique("users", "user_id", [user.user_id for user in accounts.users])
    _check_unique("clients", "client_id", [client.client_id for client in accounts.clients])
    _check_unique("identity_providers", "id", [provider.id for provider in accounts.identity_providers])
    return accounts


def _check_unique(section: str, name: str, keys: Sequence[str | None]) -> None:
    seen: set[str | None] = set()
    for index, key in enumerate(keys):
        if key is not None and key in seen:
            raise FieldError((section, index, name), "appears twice in the document")
        seen.add(key)
