"""The attributes of a client: a map of strings, in which Keycloak keeps most of its newer settings."""

from sso.cli.keycloak_realm.notes import Note
from sso.cli.user_files.model import JsonObject

_TAKEN_OVER = frozenset(
    (
        "backchannel.logout.session.required", "backchannel.logout.url", "dpop.bound.access.tokens",
        "frontchannel.logout.url", "id.token.signed.response.alg", "jwks.string", "jwks.url", "logoUri",
        "oauth2.device.authorization.grant.enabled", "policyUri", "post.logout.redirect.uris",
        "require.pushed.authorization.requests", "tosUri", "use.jwks.string", "use.jwks.url", "use.refresh.tokens",
    )
)  # fmt: skip
# They change nothing: the service does this anyway, or they are notes of Keycloak for itself.
_WITHOUT_EFFECT = frozenset(
    (
        "backchannel.logout.revoke.offline.tokens", "client.secret.creation.time", "display.on.consent.screen",
        "frontchannel.logout.session.required", "jwt.credential.certificate", "pkce.code.challenge.method",
        "realm_client", "standard.token.exchange.enabled.refreshTokens",
    )
)  # fmt: skip
_OFF = ("", "false", "{}", "[]", "any", "not required")  # without an effect, as Keycloak writes it


def attribute(client: JsonObject, name: str) -> str:
    """Returns the text of an attribute, "" if the client does not have it."""
    attributes = client.get("attributes")
    value = attributes.get(name) if isinstance(attributes, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def note_other_attributes(client: JsonObject, note: Note) -> None:
    names = [
        name
        for name in client.get("attributes") or ()
        if name not in _TAKEN_OVER | _WITHOUT_EFFECT
        and not name.startswith("saml")
        and attribute(client, name) not in _OFF
    ]
    if names:
        note(f"attributes are left out: {', '.join(name[:80] for name in names)}")
