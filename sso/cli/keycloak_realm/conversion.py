"""A realm export as a document for ``sso apply``, and the mapping with which ``sso import users`` assigns its roles."""

import re
from collections.abc import Collection
from typing import Any, TextIO

from msgspec import Struct, field

from sso.cli.context import CommandFailure
from sso.cli.keycloak_realm.built_in import BuiltIn
from sso.cli.keycloak_realm.clients import convert_client
from sso.cli.keycloak_realm.groups import RealmGroups
from sso.cli.keycloak_realm.notes import Notes
from sso.cli.keycloak_realm.roles import RealmRoles, role_names
from sso.cli.keycloak_realm.shape import check_shape
from sso.cli.records.types import Fields
from sso.cli.user_files.json_stream import USERS, JsonStream
from sso.cli.user_files.model import JsonObject, objects_of, text_of
from sso.core.field_errors import FieldError

MAX_NAME = 64
EXISTS = "left as it is, because there is one already"
# What a realm has besides clients, roles and groups, and what to do about it here.
_ADVICE = {
    "identityProviders": "add them with `sso idp add`; accounts there are linked if the ids are the same",
    "userFederationProviders": "import their users from a file",
    "defaultGroups": "users who register here get neither their tags nor their roles",
    "smtpServer": "set SSO_SMTP_URL",
    "passwordPolicy": "new passwords follow the rules of this service",
}
_SCOPES = frozenset(
    (
        "acr", "address", "basic", "email", "microprofile-jwt", "offline_access", "organization", "phone", "profile",
        "role_list", "roles", "saml_organization", "service_account", "web-origins",
    )
)  # fmt: skip
_USER_STORAGE = "org.keycloak.storage.UserStorageProvider"
_READ = frozenset(("realm", "components", "defaultRole", "clients", "roles", "groups", "clientScopes", *_ADVICE))


class Destination(Struct, frozen=True):
    """Where the parts of a realm go."""

    application_id: int  # gets the roles
    services_id: int | None = None  # the application of the service accounts, which are left out without it
    project_id: str | None = None  # gets the groups, which are only tags without it


class Conversion(Struct):
    """What a realm becomes. ``notes`` name what is left out."""

    destination: Destination
    applications: list[Fields]
    clients: list[Fields] = field(default_factory=list)
    roles: list[Fields] = field(default_factory=list)
    groups: dict[str, Fields] = field(default_factory=dict)  # by their paths in the realm
    mapping: Fields = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)

    def document(self) -> Fields:
        sections = {
            "applications": self.applications,
            "clients": self.clients,
            "groups": list(self.groups.values()),
            "roles": {str(self.destination.application_id): self.roles} if self.roles else {},
        }
        return {name: value for name, value in sections.items() if value}

    def leave_out_existing(
        self,
        applications: Collection[int],
        client_ids: Collection[str],
        roles: Collection[str],
        groups: Collection[str],
    ) -> None:
        """Nothing that exists is changed by an import. ``groups`` are ids."""
        self.applications = [item for item in self.applications if item["application_id"] not in applications]
        self.clients = self._new("client", "client_id", self.clients, client_ids)
        self.roles = self._new("role", "name", self.roles, roles)
        old = [path for path, group in self.groups.items() if group["group_id"] in groups]
        self.notes.replace([f"group {path}" for path in old], EXISTS)
        self.groups = {path: group for path, group in self.groups.items() if path not in old}

    def _new(self, kind: str, key: str, records: list[Fields], existing: Collection[str]) -> list[Fields]:
        old = [record[key] for record in records if record[key] in existing]
        self.notes.replace([f"{kind} {name}" for name in old], EXISTS)
        return [record for record in records if record[key] not in existing]

    def counts(self) -> str:
        """Returns what the document has, such as ``1 application, 3 clients``."""
        parts = {
            "application": self.applications, "client": self.clients, "role": self.roles, "group": self.groups,
        }  # fmt: skip
        counted = [f"{len(items):,} {name}{'s' if len(items) > 1 else ''}" for name, items in parts.items() if items]
        return ", ".join(counted) or "nothing"


def read_realm(file: TextIO, destination: Destination) -> Conversion:
    """Reads the file piece by piece. Of users, only the roles of service accounts are kept. Raises CommandFailure."""
    stream = JsonStream(file)
    realm: dict[str, Any] = {}
    accounts: dict[str, list[str]] = {}
    for name, value in stream.members(_READ):
        if name != USERS:
            realm[name] = value
        elif isinstance(value, dict) and (client_id := text_of(value, "serviceAccountClientId")):
            accounts[client_id] = role_names(value, "realmRoles", "clientRoles")
    if realm.get("clients") is None and realm.get("roles") is None:
        raise stream.failure("expected the export of a realm, with clients or roles")
    try:
        check_shape(realm)
    except FieldError as error:
        raise CommandFailure(f"{file.name}: {error.message}") from None
    return _convert(realm, accounts, destination)


def _convert(realm: JsonObject, accounts: dict[str, list[str]], destination: Destination) -> Conversion:
    built_in = BuiltIn(realm)
    conversion = Conversion(destination, _applications(realm, destination))
    _add_clients(conversion, realm, accounts, built_in)
    roles = RealmRoles(realm, built_in, destination.application_id, conversion.notes)
    groups = RealmGroups(realm, conversion.notes)
    conversion.roles = roles.records()
    conversion.groups = groups.records(destination.project_id) if destination.project_id else {}
    conversion.mapping = {"roles": roles.mapping(), "groups": groups.mapping(roles)}
    _note_the_rest(conversion, realm)
    return conversion


def _applications(realm: JsonObject, destination: Destination) -> list[Fields]:
    name = re.sub(r"[\x00-\x1f\x7f]", "", text_of(realm, "realm"))[:MAX_NAME] or "Keycloak"
    project = {"project_id": destination.project_id} if destination.project_id else {}
    applications: list[Fields] = [{"application_id": destination.application_id, "name": name, **project}]
    if destination.services_id is not None:
        applications.append({"application_id": destination.services_id, "name": f"{name} services"})
    return applications


def _add_clients(conversion: Conversion, realm: JsonObject, accounts: dict[str, list[str]], built_in: BuiltIn) -> None:
    for client in objects_of(realm, "clients"):
        client_id = text_of(client, "clientId")
        if built_in.is_client(client_id):
            continue
        note = conversion.notes.about(f"client {client_id[:MAX_NAME]}")
        record = convert_client(client, conversion.destination.services_id, note)
        if record is not None:
            conversion.clients.append(record)
        roles = [
            name for name in accounts.get(client_id, ()) if not built_in.is_role(name) or built_in.administers(name)
        ]
        if roles:
            note(f"the roles of its service account are left out: {', '.join(roles)}")


def _note_the_rest(conversion: Conversion, realm: JsonObject) -> None:
    names = (text_of(scope, "name") for scope in objects_of(realm, "clientScopes"))
    if scopes := [name for name in names if name not in _SCOPES]:
        conversion.notes.add("clientScopes", f"left out: {', '.join(scopes)}")
    if realm.get("groups") and not conversion.destination.project_id:
        conversion.notes.add("groups", "they become tags of their members; with --project, also groups of a project")
    if (realm.get("components") or {}).get(_USER_STORAGE):
        conversion.notes.add("components", "user federation is left out: import its users from a file")
    for part, advice in _ADVICE.items():
        if realm.get(part):
            conversion.notes.add(part, f"left out: {advice}")
