"""The errors of the OAuth endpoints, with their codes of RFC 6749 and RFC 6750."""

from urllib.parse import quote

from sso.core.algorithms import CLIENT_ALGORITHMS
from sso.core.ban import BANNED, Ban
from sso.core.errors import ApiError, RetryLater
from sso.core.field_errors import FieldError
from sso.core.language import Text
from sso.core.path_ids import path_id

DPOP_ALGORITHMS = f'algs="{" ".join(CLIENT_ALGORITHMS)}"'
MAX_SHOWN_URI = 200  # characters


class InvalidRequest(ApiError):
    code = "invalid_request"


class InvalidGrant(ApiError):
    code = "invalid_grant"
    message = "the code or token is not valid"


class BannedUser(InvalidGrant):
    recorded_message = BANNED

    def __init__(self, ban: Ban) -> None:
        super().__init__(ban.description)


class UnauthorizedClient(ApiError):
    """The client may not use this grant type."""

    code = "unauthorized_client"

    def __init__(self, grant_type: str) -> None:
        super().__init__(f"grant_type: {grant_type} is not one of the client's grant_types")


class UnsupportedGrantType(ApiError):
    code = "unsupported_grant_type"
    message = (
        "grant_type: expected authorization_code, refresh_token, client_credentials, "
        "urn:ietf:params:oauth:grant-type:device_code or urn:ietf:params:oauth:grant-type:token-exchange"
    )


class InvalidScope(ApiError):
    code = "invalid_scope"


class InvalidSubjectToken(ApiError):
    """A token cannot be exchanged: it is not valid, or not for this client (RFC 8693 section 2.2.2)."""

    code = "invalid_request"
    message = "subject_token: expected a valid access token of a user that is meant for this client"


class BannedSubject(InvalidSubjectToken):
    recorded_message = f"subject_token: {BANNED}"

    def __init__(self, ban: Ban) -> None:
        super().__init__(f"subject_token: {ban.description}")


class NoTokenExchange(ApiError):
    """The client that wants to exchange a token may not."""

    code = "unauthorized_client"
    message = "only clients with token_exchange may exchange tokens"


class TooManyExchanges(RetryLater):
    """The subject token was exchanged so often that the client does not seem to keep what it gets."""

    status = 429
    code = "temporarily_unavailable"
    message = "subject_token: it was exchanged too often, use the exchanged tokens until they end"


class MissingOpenidScope(ApiError):
    """The access token does not have the scope that the endpoint needs (RFC 6750 section 3.1)."""

    status = 403
    code = "insufficient_scope"
    message = "the token needs the scope openid"

    def __init__(self) -> None:
        super().__init__()
        self.headers = {"WWW-Authenticate": f'Bearer realm="sso", error="{self.code}", scope="openid"'}


class MissingApplication(ApiError):
    """The application of a service client does not exist or was removed."""

    code = "unauthorized_client"
    message = "the application of the client does not exist"


class NoResourceServer(ApiError):
    """The client that introspects a token is not a resource server."""

    status = 403
    code = "unauthorized_client"
    message = "only resource servers may introspect tokens"


class InvalidClient(ApiError):
    status = 401
    code = "invalid_client"
    message = "client authentication failed"

    def __init__(self, scheme: str = "Bearer") -> None:
        super().__init__()
        self.headers = {"WWW-Authenticate": f'{scheme} realm="sso"'}


class InvalidAccessToken(ApiError):
    """The request has no access token, or an invalid one."""

    status = 401
    code = "invalid_token"
    message = "the token is missing, expired, revoked or not of this kind"

    def __init__(self, *, accepts_dpop: bool = False) -> None:
        super().__init__()
        dpop = f", DPoP {DPOP_ALGORITHMS}" if accepts_dpop else ""
        self.headers = {"WWW-Authenticate": f'Bearer realm="sso", error="{self.code}"{dpop}'}


class InvalidDpopProof(ApiError):
    """The DPoP proof of a request is missing although it is required, or it is invalid."""

    code = "invalid_dpop_proof"
    message = "DPoP: a proof is required"


class UseDpopNonce(InvalidDpopProof):
    """The DPoP proof lacks a valid nonce. The response has one (RFC 9449 section 8)."""

    code = "use_dpop_nonce"
    message = "DPoP: nonce: expected that of the header DPoP-Nonce"

    def __init__(self, nonce: str) -> None:
        super().__init__()
        self.headers = {"DPoP-Nonce": nonce}


class InvalidBoundToken(ApiError):
    """A token with the scheme DPoP is invalid, or the request has no valid proof for it (RFC 9449 section 7.1)."""

    status = 401
    code = "invalid_token"
    message = InvalidAccessToken.message

    def __init__(self, invalid_proof: InvalidDpopProof | None = None) -> None:
        super().__init__(invalid_proof.message if invalid_proof else None)
        if invalid_proof:
            self.code = invalid_proof.code  # type: ignore[misc]
        self.headers = {"WWW-Authenticate": f'DPoP realm="sso", error="{self.code}", {DPOP_ALGORITHMS}'}
        self.headers |= invalid_proof.headers if invalid_proof else {}


class InvalidTarget(ApiError):
    """The resource is not a registered resource server, or the grant is not for it (RFC 8707)."""

    code = "invalid_target"


class InvalidRedirectUri(ApiError):
    """The client or the redirect URI is not known, so the error is shown on a page here and not sent by a redirect."""

    message = Text(
        "We do not know the site that sent you here, or the address it wants you to return to is not registered. You "
        "were not signed in. Go back to the site and try again; if you see this page again, contact the site."
    )

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


class UnregisteredRedirectUri(InvalidRedirectUri):
    """The client is known, but not the redirect URI. The page names it, for the developer of the site."""

    heading = Text("This site is not set up correctly")

    def __init__(self, reason: str, uri: str, client_id: str) -> None:
        super().__init__(reason)
        shown = uri if len(uri) <= MAX_SHOWN_URI else f"{uri[:MAX_SHOWN_URI]}…"
        self.message = Text(
            "It asked us to send you to %(uri)s, which is not registered for it. You were not signed in.", uri=shown
        )
        self.developer_hint = Text(
            "For the developer: add this redirect URI to the client %(client)s.", client=client_id
        )
        client, added = quote(path_id(client_id), safe=""), quote(uri, safe="")
        self.developer_path = f"/console/clients/{client}?add_redirect_uri={added}"


class ClientAwaitsApproval(InvalidRedirectUri):
    """The client has registered itself, and no administrator has approved it yet."""

    heading = Text("This application is not approved yet")
    message = Text(
        "An administrator has to approve it before anyone can sign in with it. You were not signed in. Try again later."
    )


class InvalidClientMetadata(ApiError):
    """The metadata of a client that registers itself is refused (RFC 7591 section 3.2.2)."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(error.message)
        is_redirect = error.path[:1] == ("redirect_uris",)
        self.code = "invalid_redirect_uri" if is_redirect else "invalid_client_metadata"  # type: ignore[misc]


class InvalidRegistrationToken(ApiError):
    """A registration without the initial access token that it needs, or a registration access token of no client."""

    status = 401
    code = "invalid_token"
    message = "the token is missing, expired, used up or not the one of this client"

    def __init__(self) -> None:
        super().__init__()
        self.headers = {"WWW-Authenticate": f'Bearer realm="sso", error="{self.code}"'}


class TooManyRegistrations(RetryLater):
    status = 429
    code = "temporarily_unavailable"
    message = "too many clients were registered from this network, try again later"


class TooManyWaitingClients(RetryLater):
    status = 503
    code = "temporarily_unavailable"
    message = "too many clients wait for the approval of an administrator, try again later"


class AuthorizationFinished(ApiError):
    """The pending authorization does not exist: it has expired or was already answered."""

    message = Text("This sign-in has expired or is already finished. Go back to the site and start again.")


class TooManyAuthorizations(RetryLater):
    status = 429
    code = "temporarily_unavailable"
    message = Text("Too many sign-ins were started from your network. Please wait a minute and try again.")


class TooManyPushedRequests(RetryLater):
    status = 429
    code = "temporarily_unavailable"
    message = "too many authorization requests were pushed, try again later"


class InvalidPushedRequest(ApiError):
    """A pushed authorization request is invalid. The code is the one that a redirect to the client would have."""

    def __init__(self, error: "AuthorizationError") -> None:
        super().__init__(error.description)
        self.code = error.error  # type: ignore[misc]
        self.recorded_message = error.recorded_description


class AuthorizationError(Exception):
    """An error that is sent to the client by a redirect, as ``error`` and ``error_description``.

    ``recorded`` is kept in recordings in place of a description that is about a user or repeats what was sent.
    """

    def __init__(self, error: str, description: str, *, recorded: str = "") -> None:
        super().__init__(description)
        self.error = error
        self.description = description
        self.recorded_description = recorded or description
