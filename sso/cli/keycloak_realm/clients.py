"""Clients of a realm. Whatever a client has that does not exist here is named in the notes."""

import json
from typing import Any

from pydantic import ValidationError

from sso.cli.keycloak_realm.addresses import convert_addresses
from sso.cli.keycloak_realm.attributes import attribute, note_other_attributes
from sso.cli.keycloak_realm.notes import Note
from sso.cli.records.types import Fields
from sso.cli.user_files.model import JsonObject, objects_of, text_of
from sso.core.field_errors import field_text
from sso.core.ids import secret_token
from sso.oauth.clients.record import ClientChanges, ClientRecord
from sso.oauth.model import DEVICE_CODE
from sso.web.request_model import expectation

SERVICE = "client_credentials"


def convert_client(client: JsonObject, services_id: int | None, note: Note) -> Fields | None:
    """Returns the record of a document, or None for a client that has no counterpart here.

    Service accounts are taken over only if there is an application for them: a service has all rights of its
    application, and had only its roles in Keycloak.
    """
    protocol = text_of(client, "protocol") or "openid-connect"
    if protocol != "openid-connect":
        note(f"not carried over: its protocol is {protocol[:40]}")
        return None
    if client.get("bearerOnly") is True:
        note("not carried over: it only receives tokens, and needs no client here")
        return None
    grant_types = _grant_types(client, services_id, note)
    if not grant_types:
        note("not carried over: it has no flow that is taken over")
        return None
    fields: Fields = {
        "client_id": text_of(client, "clientId"),
        "profile": "oidc",
        "access_token_format": "jwt",  # services that verify those of Keycloak can go on
        "grant_types": grant_types,
        "consent": client.get("consentRequired") is True,
        "disabled": client.get("enabled") is False,
        **_name(client),
        **_credentials(client, note),
        **convert_addresses(client, note),
        **_token_attributes(client, note),
        **({"application_id": services_id} if SERVICE in grant_types else {}),
    }
    _note_the_rest(client, note)
    problem = _problem(ClientRecord, fields)
    if problem:
        note(f"not carried over: {problem}")
        return None
    if "authorization_code" in grant_types and not fields["redirect_uris"]:
        note("nobody can sign in there yet: add a redirect URI with `sso client set`")
    return fields


def _problem(model: type[ClientChanges], fields: Fields) -> str:
    try:
        model.model_validate(fields)
    except ValidationError as error:
        first: Any = error.errors(include_input=False, include_url=False)[0]
        return f"{field_text(first['loc'])}: {expectation(first)}"
    return ""


def _name(client: JsonObject) -> Fields:
    name = text_of(client, "name")
    return {"name": name} if name and not name.startswith("${") else {}  # a key of a catalogue of texts


def _grant_types(client: JsonObject, services_id: int | None, note: Note) -> list[str]:
    kinds = ["authorization_code"] if client.get("standardFlowEnabled") is not False else []
    if attribute(client, "oauth2.device.authorization.grant.enabled") == "true":
        kinds.append(DEVICE_CODE)
    if kinds and attribute(client, "use.refresh.tokens") != "false":
        kinds.append("refresh_token")
    if client.get("serviceAccountsEnabled") is True and client.get("publicClient") is not True:
        if services_id is None:
            note("its service account is left out: --services gives it the rights of an application")
        else:
            kinds.append(SERVICE)
            note(f"its service has the rights of the application {services_id}")
    if client.get("implicitFlowEnabled") is True:
        note("the implicit flow does not exist here: use the authorization code with PKCE")
    if client.get("directAccessGrantsEnabled") is True:
        note("the grant type password does not exist here: users sign in on the pages of the service")
    return kinds


def _credentials(client: JsonObject, note: Note) -> Fields:
    if client.get("publicClient") is True:
        return {"public": True}
    method = text_of(client, "clientAuthenticatorType") or "client-secret"
    if method == "client-secret":
        return {"client_secret": _secret(client, note)}
    if method == "client-jwt":
        if keys := _keys(client):
            return {"token_endpoint_auth_method": "private_key_jwt", **keys}
        note("its keys are not in the export as a key set, so it gets a secret")
    else:
        note(f"it authenticates with {method[:40]}, which does not exist here, so it gets a secret")
    return {"client_secret": secret_token()}


def _secret(client: JsonObject, note: Note) -> str:
    """Returns the secret of the export, or a new one, which is noted."""
    secret = text_of(client, "secret")
    if not secret.strip("*"):
        problem = "its secret is not in the export"
    elif secret.startswith("${vault."):
        problem = "its secret is in a vault of Keycloak"
    elif problem := _problem(ClientChanges, {"client_secret": secret}):
        problem = f"its secret cannot be used here ({problem})"
    else:
        return secret
    note(f"{problem}, so it gets a new one: `sso client rotate-secret` prints another")
    return secret_token()


def _keys(client: JsonObject) -> Fields:
    if attribute(client, "use.jwks.url") == "true" and (uri := attribute(client, "jwks.url")):
        return {"jwks_uri": uri}
    try:
        keys = json.loads(attribute(client, "jwks.string"))
    except (ValueError, RecursionError):
        return {}
    return {"jwks": keys} if isinstance(keys, dict) else {}


def _token_attributes(client: JsonObject, note: Note) -> Fields:
    algorithm = attribute(client, "id.token.signed.response.alg")
    if algorithm not in ("", "RS256", "ES256", "EdDSA"):
        note(f"ID tokens are signed with RS256, not with {algorithm[:20]}")
    flags = {
        "require_pushed_authorization_requests": "require.pushed.authorization.requests",
        "dpop_bound_access_tokens": "dpop.bound.access.tokens",
    }
    return {
        **({"id_alg": algorithm} if algorithm in ("ES256", "EdDSA") else {}),
        **{field: True for field, name in flags.items() if attribute(client, name) == "true"},
    }


def _note_the_rest(client: JsonObject, note: Note) -> None:
    if mappers := objects_of(client, "protocolMappers"):
        names = ", ".join(text_of(mapper, "name")[:60] for mapper in mappers)
        note(f"protocol mappers are left out: {names}")
    if client.get("authorizationServicesEnabled") is True:
        note("authorization services (resources, policies) are left out: declare rules in a schema")
    if attribute(client, "logoUri"):
        note("the logo is left out: add it on the page of the client")
    note_other_attributes(client, note)
