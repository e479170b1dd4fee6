"""Clients of a realm. Whatever a client has that does not exist here is named in the notes."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urljoin

from pydantic import ValidationError

from sso.cli.records.types import Fields
from sso.cli.user_files.model import JsonObject, names_of, objects_of, text_of
from sso.core.field_errors import field_text
from sso.core.ids import secret_token
from sso.oauth.clients.branding import check_link
from sso.oauth.clients.record import ClientRecord
from sso.oauth.clients.redirect_uris import browser_origin, match_redirect_uri
from sso.oauth.model import DEVICE_CODE
from sso.web.request_model import expectation

BUILT_IN = frozenset(
    ("account", "account-console", "admin-cli", "broker", "realm-management", "security-admin-console")
)
MIN_SECRET = 16
NO_SECRET = "its secret is not in the export, so it gets a new one: `sso client rotate-secret` prints one"  # noqa: S105
Note = Callable[[str], None]


def is_built_in(client: JsonObject) -> bool:
    """Whether Keycloak has created the client for itself. The master realm has one for each other realm."""
    client_id = text_of(client, "clientId")
    return client_id in BUILT_IN or (client_id.endswith("-realm") and client.get("bearerOnly") is True)


def convert_client(client: JsonObject, application_id: int, note: Note) -> Fields | None:
    """Returns the record of a document, or None for a client that has no counterpart here."""
    protocol = text_of(client, "protocol") or "openid-connect"
    if protocol != "openid-connect":
        note(f"not carried over: its protocol is {protocol[:40]}")
        return None
    if client.get("bearerOnly") is True:
        note("not carried over: it only receives tokens, and needs no client here")
        return None
    grant_types = _grant_types(client, note)
    if not grant_types:
        note("not carried over: none of its flows exists here")
        return None
    fields: Fields = {
        "client_id": text_of(client, "clientId"),
        "profile": "oidc",
        "redirect_uris": _redirect_uris(client, note),
        "access_token_format": "jwt",  # services that verify those of Keycloak can go on
        "grant_types": grant_types,
        "consent": client.get("consentRequired") is True,
        "disabled": client.get("enabled") is False,
        **_name(client),
        **_credentials(client, note),
        **_addresses(client, note),
        **_token_attributes(client, note),
    }
    if "client_credentials" in grant_types:
        fields["application_id"] = application_id
        note(f"its service has the rights of the application {application_id}; roles of its account are left out")
    _note_the_rest(client, note)
    return _valid(fields, note)


def _valid(fields: Fields, note: Note) -> Fields | None:
    try:
        ClientRecord.model_validate(fields)
    except ValidationError as error:
        first: Any = error.errors(include_input=False, include_url=False)[0]
        note(f"not carried over: {field_text(first['loc'])}: {expectation(first)}")
        return None
    return fields


def _name(client: JsonObject) -> Fields:
    name = text_of(client, "name")
    return {"name": name} if name and not name.startswith("${") else {}  # a key of a catalogue of texts


def _redirect_uris(client: JsonObject, note: Note) -> list[str]:
    root, uris = text_of(client, "rootUrl"), []
    for listed in names_of(client, "redirectUris"):
        uri = urljoin(root, listed) if listed.startswith("/") and root else listed
        reason = "a wildcard; add the exact addresses" if "*" in uri else match_redirect_uri(uri, (), (uri,))
        if isinstance(reason, str):
            note(f"the redirect URI {uri[:200]!r} is left out: {reason}")
        else:
            uris.append(uri)
    return list(dict.fromkeys(uris))


def _grant_types(client: JsonObject, note: Note) -> list[str]:
    kinds = []
    if client.get("standardFlowEnabled") is not False:
        kinds += ["authorization_code", "refresh_token"]
    if client.get("serviceAccountsEnabled") is True and client.get("publicClient") is not True:
        kinds.append("client_credentials")
    if _attribute(client, "oauth2.device.authorization.grant.enabled") == "true":
        kinds.append(DEVICE_CODE)
    if client.get("implicitFlowEnabled") is True:
        note("the implicit flow does not exist here: use the authorization code with PKCE")
    if client.get("directAccessGrantsEnabled") is True:
        note("the grant type password does not exist here: users sign in on the pages of the service")
    return kinds


def _credentials(client: JsonObject, note: Note) -> Fields:
    if client.get("publicClient") is True:
        return {"public": True}
    method = text_of(client, "clientAuthenticatorType") or "client-secret"
    if method == "client-jwt":
        if keys := _keys(client):
            return {"token_endpoint_auth_method": "private_key_jwt", **keys}
        note("its keys are not in the export as a key set, so it gets a secret")
    elif method != "client-secret":
        note(f"it authenticates with {method[:40]}, which does not exist here, so it gets a secret")
    secret = text_of(client, "secret") if method == "client-secret" else ""
    if len(secret) < MIN_SECRET or not secret.strip("*"):
        note(NO_SECRET)
        secret = secret_token()
    return {"client_secret": secret}


def _keys(client: JsonObject) -> Fields:
    if _attribute(client, "use.jwks.url") == "true" and (uri := _attribute(client, "jwks.url")):
        return {"jwks_uri": uri}
    try:
        keys = json.loads(_attribute(client, "jwks.string"))
    except (ValueError, RecursionError):
        return {}
    return {"jwks": keys} if isinstance(keys, dict) else {}


def _addresses(client: JsonObject, note: Note) -> Fields:
    """Origins of browser apps, addresses after a sign-out, links. ``+`` means those of the redirect URIs."""
    fields: Fields = {"origins": [], "post_logout_redirect_uris": []}
    for origin in names_of(client, "webOrigins"):
        if origin == browser_origin(origin):
            fields["origins"].append(origin)
        elif origin != "+":
            note(f"the web origin {origin[:200]!r} is left out: expected one such as https://app.example.com")
    for uri in filter(None, _attribute(client, "post.logout.redirect.uris").split("##")):
        if not isinstance(match_redirect_uri(uri, (), (uri,)), str) and "*" not in uri:
            fields["post_logout_redirect_uris"].append(uri)
        elif uri != "+":
            note(f"the address after a sign-out {uri[:200]!r} is left out: expected an exact https address")
    for attribute, name in (("policyUri", "policy_uri"), ("tosUri", "tos_uri")):
        if link := _attribute(client, attribute):
            try:
                fields[name] = check_link(link)
            except ValueError as error:
                note(f"{attribute} is left out: {error}")
    if uri := _attribute(client, "backchannel.logout.url"):
        fields["backchannel_logout_uri"] = uri
        fields["backchannel_logout_session_required"] = (
            _attribute(client, "backchannel.logout.session.required") == "true"
        )
    return {name: value for name, value in fields.items() if value}


def _token_attributes(client: JsonObject, note: Note) -> Fields:
    algorithm = _attribute(client, "id.token.signed.response.alg")
    if algorithm not in ("", "RS256", "ES256", "EdDSA"):
        note(f"ID tokens are signed with RS256, not with {algorithm[:20]}")
    flags = {
        "require_pushed_authorization_requests": "require.pushed.authorization.requests",
        "dpop_bound_access_tokens": "dpop.bound.access.tokens",
    }
    return {
        **({"id_alg": algorithm} if algorithm in ("ES256", "EdDSA") else {}),
        **{name: True for name, attribute in flags.items() if _attribute(client, attribute) == "true"},
    }


def _note_the_rest(client: JsonObject, note: Note) -> None:
    if mappers := objects_of(client, "protocolMappers"):
        names = ", ".join(text_of(mapper, "name")[:60] for mapper in mappers)
        note(f"protocol mappers are left out: {names}")
    if client.get("authorizationServicesEnabled") is True:
        note("authorization services (resources, policies) are left out: declare rules in a schema")
    if _attribute(client, "logoUri"):
        note("the logo is left out: add it on the page of the client")


def _attribute(client: JsonObject, name: str) -> str:
    attributes = client.get("attributes")
    return text_of(attributes, name) if isinstance(attributes, dict) else ""
