"""A realm export as a document for ``sso apply``, and the mapping with which ``sso import users`` assigns its roles."""

import re
from dataclasses import dataclass, field
from typing import TextIO

from sso.cli.keycloak_realm.clients import convert_client, is_built_in
from sso.cli.keycloak_realm.roles import RealmRoles
from sso.cli.records.types import Fields
from sso.cli.user_files.json_stream import JsonStream
from sso.cli.user_files.model import JsonObject, objects_of, text_of

MAX_NAME = 64
# What a realm has besides clients and roles, and what to do about it here.
_ADVICE = {
    "identityProviders": "add them with `sso idp add`; accounts there are linked if the ids are the same",
    "userFederationProviders": "import their users from a file",
    "smtpServer": "set SSO_SMTP_URL",
    "passwordPolicy": "new passwords follow the rules of this service",
}
_SCOPES = frozenset(
    (
        "acr", "address", "basic", "email", "microprofile-jwt", "offline_access", "organization", "phone", "profile",
        "role_list", "roles", "saml_organization", "service_account", "web-origins",
    )
)  # fmt: skip
_READ = frozenset(("realm", "clients", "roles", "groups", "clientScopes", *_ADVICE))


@dataclass
class Conversion:
    """What a realm becomes. ``notes`` name what is left out."""

    application_id: int
    name: str
    clients: list[Fields] = field(default_factory=list)
    roles: list[Fields] = field(default_factory=list)
    mapping: Fields = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def document(self, *, with_application: bool = True) -> Fields:
        application = [{"application_id": self.application_id, "name": self.name}] if with_application else []
        sections = {
            "applications": application,
            "clients": self.clients,
            "roles": {str(self.application_id): self.roles} if self.roles else {},
        }
        return {name: value for name, value in sections.items() if value}

    def leave_out_existing(self, client_ids: set[str], roles: set[str]) -> None:
        """Nothing that exists is changed by an import."""
        for client in self.clients:
            if client["client_id"] in client_ids:
                self.notes.append(f"client {client['client_id']}: left as it is, because there is one already")
        for role in self.roles:
            if role["name"] in roles:
                self.notes.append(f"role {role['name']}: left as it is, because there is one already")
        self.clients = [client for client in self.clients if client["client_id"] not in client_ids]
        self.roles = [role for role in self.roles if role["name"] not in roles]


def read_realm(file: TextIO, application_id: int) -> Conversion:
    """Reads the file piece by piece; users are skipped. Raises CommandFailure."""
    stream = JsonStream(file)
    realm = dict(stream.members(_READ))
    if not isinstance(realm.get("clients"), list) and not isinstance(realm.get("roles"), dict):
        raise stream.failure("expected the export of a realm, with clients or roles")
    name = re.sub(r"[\x00-\x1f\x7f]", "", text_of(realm, "realm"))[:MAX_NAME] or "Keycloak"
    conversion = Conversion(application_id, name)
    _add_clients(conversion, realm)
    roles = RealmRoles(realm, application_id, conversion.notes.append)
    conversion.roles, conversion.mapping = roles.records(), roles.mapping()
    if scopes := [
        name for scope in objects_of(realm, "clientScopes") if (name := text_of(scope, "name")) not in _SCOPES
    ]:
        conversion.notes.append(f"client scopes are left out: {', '.join(scopes)}")
    conversion.notes += [f"{part} is left out: {advice}" for part, advice in _ADVICE.items() if realm.get(part)]
    return conversion


def _add_clients(conversion: Conversion, realm: JsonObject) -> None:
    for client in objects_of(realm, "clients"):
        if is_built_in(client):
            continue
        name = text_of(client, "clientId")[:MAX_NAME]

        def note(text: str, name: str = name) -> None:
            conversion.notes.append(f"client {name}: {text}")

        record = convert_client(client, conversion.application_id, note)
        if record is not None:
            conversion.clients.append(record)
