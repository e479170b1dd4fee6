"""Addresses of a client: redirect URIs, addresses after a sign-out, origins, links, back-channel logout."""

from collections.abc import Iterable

from sso.cli.keycloak_realm.attributes import attribute
from sso.cli.keycloak_realm.notes import Note
from sso.cli.records.types import Fields
from sso.cli.user_files.model import JsonObject, names_of, text_of
from sso.core.outgoing_url import is_outgoing_url
from sso.oauth.clients.branding import check_link
from sso.oauth.clients.redirect_uris import browser_origin, match_redirect_uri

SAME, NONE, SEPARATOR = "+", "-", "##"  # in lists of addresses


def convert_addresses(client: JsonObject, note: Note) -> Fields:
    """Returns the fields that have a value."""
    redirect_uris = _exact(client, names_of(client, "redirectUris"), "redirect URI", note)
    fields: Fields = {
        "post_logout_redirect_uris": _after_logout(client, redirect_uris, note),
        "origins": _origins(client, note),
        **_links(client, note),
        **_backchannel_logout(client, note),
    }
    if attribute(client, "frontchannel.logout.url"):
        note("the front-channel logout does not exist here: use back-channel logout")
    return {"redirect_uris": redirect_uris, **{name: value for name, value in fields.items() if value}}


def _absolute(client: JsonObject, address: str) -> str:
    """Keycloak appends a relative address to the rootUrl, which may have a path."""
    root = text_of(client, "rootUrl").removesuffix("/")
    return f"{root}{address}" if address.startswith("/") and root else address


def _exact(client: JsonObject, listed: Iterable[str], kind: str, note: Note) -> list[str]:
    uris: dict[str, None] = {}
    for uri in (_absolute(client, address) for address in listed):
        if uri.startswith("/"):
            problem = "it is relative, and the client has no rootUrl"
        elif "*" in uri:
            problem = "a wildcard; add the exact addresses"
        else:
            matched = match_redirect_uri(uri, (), (uri,))
            problem = matched if isinstance(matched, str) else ""
        if problem:
            note(f"the {kind} {uri[:200]!r} is left out: {problem}")
        else:
            uris[uri] = None
    return list(uris)


def _after_logout(client: JsonObject, redirect_uris: list[str], note: Note) -> list[str]:
    """Without a list, and with ``+``, Keycloak uses the redirect URIs."""
    listed = [uri for uri in attribute(client, "post.logout.redirect.uris").split(SEPARATOR) if uri]
    if listed == [NONE]:
        note("after a sign-out, it may return to the origins of its redirect URIs; in Keycloak, it returned nowhere")
        return []
    own = _exact(client, [uri for uri in listed if uri not in (SAME, NONE)], "address after a sign-out", note)
    same = redirect_uris if not listed or SAME in listed else []
    return list(dict.fromkeys([*same, *own]))


def _origins(client: JsonObject, note: Note) -> list[str]:
    """The origins of redirect URIs, which ``+`` stands for, are allowed anyway."""
    origins = []
    for origin in names_of(client, "webOrigins"):
        if origin == browser_origin(origin):
            origins.append(origin)
        elif origin != SAME:
            note(f"the web origin {origin[:200]!r} is left out: expected one such as https://app.example.com")
    return origins


def _links(client: JsonObject, note: Note) -> Fields:
    fields: Fields = {}
    for name, field in (("policyUri", "policy_uri"), ("tosUri", "tos_uri")):
        if link := attribute(client, name):
            try:
                fields[field] = check_link(link)
            except ValueError as error:
                note(f"{name} is left out: {error}")
    return fields


def _backchannel_logout(client: JsonObject, note: Note) -> Fields:
    uri = _absolute(client, attribute(client, "backchannel.logout.url"))
    if not uri:
        return {}
    if not is_outgoing_url(uri, allow_http=True):
        expected = "expected an https address, or http for this machine"
        note(f"the address of the back-channel logout {uri[:200]!r} is left out: {expected}")
        return {}
    required = attribute(client, "backchannel.logout.session.required") == "true"
    return {"backchannel_logout_uri": uri, "backchannel_logout_session_required": required}
