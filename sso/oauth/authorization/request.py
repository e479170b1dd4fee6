"""Parses and validates the parameters of an authorization request. Pure: no clock, no store."""

import re
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from sso.accounts.authentication_context import ACR_VALUES
from sso.core.jwt import MAX_TOKEN
from sso.core.language import parse_ui_locales
from sso.oauth.authorization.requested_claims import RequestedClaims, parse_claims
from sso.oauth.clients.redirect_uris import Redirect
from sso.oauth.errors import AuthorizationError, InvalidTarget
from sso.oauth.model import PROMPTS, RESPONSE_MODES, SCOPES, AuthorizationRequest, Client, ResponseMode
from sso.oauth.tokens.resources import check_resources

MAX_PARAMETERS = 100
MAX_STATE, MAX_NONCE = 4096, 1024  # bytes
MAX_LOGIN_HINT = 320  # characters
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")
DEFAULT_SCOPES = ("openid",)
SECONDS = re.compile(r"[0-9]{1,9}", re.ASCII)
PARAMETERS = (
    "response_type", "response_mode", "scope", "state", "nonce", "code_challenge", "code_challenge_method", "prompt",
    "max_age", "login_hint", "ui_locales", "id_token_hint", "dpop_jkt", "claims", "acr_values",
)  # fmt: skip
# These change the meaning of the request, so they are refused instead of ignored.
UNSUPPORTED = ("request", "request_uri", "registration")


class Parameters(Struct, frozen=True):
    """The parameters of a query string, percent-decoded to bytes."""

    values: Mapping[bytes, Sequence[bytes]]

    @classmethod
    def read(cls, query: bytes) -> "Parameters | None":
        """Returns None if there are more than ``MAX_PARAMETERS``."""
        parts = query.split(b"&", MAX_PARAMETERS)
        if len(parts) > MAX_PARAMETERS:
            return None
        values: dict[bytes, list[bytes]] = {}
        for part in parts:
            if part:
                name, _, value = part.partition(b"=")
                values.setdefault(_decode(name), []).append(_decode(value))
        return cls(values)

    @classmethod
    def from_fields(cls, fields: Mapping[str, str | list[str]]) -> "Parameters":
        """Returns the fields of a form as parameters. A field may have several values."""
        lists = {name: [value] if isinstance(value, str) else value for name, value in fields.items()}
        return cls({name.encode(): [value.encode() for value in values] for name, values in lists.items()})

    def single_value(self, name: str) -> bytes | None:
        """Returns the value of the parameter, or None if it is missing, empty or repeated."""
        values = self.values.get(name.encode(), ())
        return values[0] or None if len(values) == 1 else None

    def has(self, name: str) -> bool:
        return name.encode() in self.values

    def repeated(self, names: Sequence[str] = PARAMETERS) -> set[str]:
        return {name for name in names if len(self.values.get(name.encode(), ())) > 1}

    def text(self, name: str, max_length: int = MAX_STATE) -> str | None:
        """Returns the value as text, or None if the parameter is missing, empty or repeated."""
        raw = self.single_value(name)
        if raw is None:
            return None
        try:
            value = raw.decode()
        except UnicodeDecodeError:
            raise AuthorizationError("invalid_request", f"{name}: expected UTF-8") from None
        if len(value) > max_length or "\0" in value:
            raise AuthorizationError(
                "invalid_request", f"{name}: expected at most {max_length} characters, without NUL"
            )
        return value

    def ascii_text(self, name: str) -> str:
        """Returns the value as text, or "" if the parameter is missing, empty, repeated or not ASCII."""
        raw = self.single_value(name)
        return raw.decode() if raw and raw.isascii() else ""


def _decode(encoded: bytes) -> bytes:
    return unquote_to_bytes(encoded.replace(b"+", b" "))


def validate(
    parameters: Parameters,
    client: Client,
    redirect: Redirect,
    subject_of: Callable[[str], str | None],
    *,
    is_pushed: bool = False,
) -> AuthorizationRequest:
    """Returns the validated request, or raises AuthorizationError. ``subject_of`` returns the user of an ID token."""
    for name in sorted(parameters.repeated()):
        raise AuthorizationError("invalid_request", f"{name} must not appear more than once")
    for name in UNSUPPORTED:
        if parameters.has(name):
            raise AuthorizationError(f"{name}_not_supported", f"{name} is not supported")
    state = parameters.single_value("state")
    if state is not None and len(state) > MAX_STATE:
        raise AuthorizationError("invalid_request", f"state: expected at most {MAX_STATE} bytes")
    if "authorization_code" not in client.grant_types:
        raise AuthorizationError("unauthorized_client", "authorization_code is not one of the client's grant_types")
    if client.require_pushed_authorization_requests and not is_pushed:
        raise AuthorizationError("invalid_request", "the client must push its authorization requests (RFC 9126)")
    _check_response_type(parameters)
    mode = _response_mode(parameters, client)
    if mode == "form_post" and state is not None and as_form_text(state) is None:
        raise AuthorizationError("invalid_request", "state: expected UTF-8 without control characters for form_post")
    # A strict client has no such parameter.
    requested = parse_claims(parameters.text("claims")) if client.rules.is_standard else RequestedClaims()
    return AuthorizationRequest(
        client=client,
        redirect=redirect,
        scopes=_scopes(parameters, client),
        state=state,
        nonce=_nonce(parameters, client),
        challenge=_challenge(parameters, client),
        prompts=_prompts(parameters),
        max_age=_max_age(parameters),
        login_hint=_login_hint(parameters),
        sub=_subject(parameters, subject_of, requested.sub),
        ui_locales=ui_locales(parameters),
        response_mode=mode,
        dpop_jkt=_dpop_jkt(parameters),
        resources=_resources(parameters),
        acr_values=_acr_values(parameters, client, requested.acr_values),
        claims=requested.stored,
    )


def _check_response_type(parameters: Parameters) -> None:
    response_type = parameters.text("response_type")
    if response_type is None:
        raise AuthorizationError("invalid_request", "response_type is required")
    if response_type != "code":
        raise AuthorizationError("unsupported_response_type", "response_type: expected code")


def _response_mode(parameters: Parameters, client: Client) -> ResponseMode:
    requested = parameters.text("response_mode")
    if not client.rules.is_standard:
        if requested != "query":
            raise AuthorizationError("invalid_request", "response_mode: expected query")
    elif requested not in (None, *RESPONSE_MODES):
        raise AuthorizationError("invalid_request", f"response_mode: expected {' or '.join(RESPONSE_MODES)}")
    return error_response_mode(parameters, client)


def error_response_mode(parameters: Parameters, client: Client) -> ResponseMode:
    """Returns how an error is sent to the client, also if the request is invalid."""
    is_form_post = client.rules.is_standard and parameters.ascii_text("response_mode") == "form_post"
    return "form_post" if is_form_post else "query"


def as_form_text(state: bytes) -> str | None:
    """Returns the text that a browser sends unchanged in a form, None if there is none."""
    try:
        text = state.decode()
    except UnicodeDecodeError:
        return None
    return None if CONTROL_CHARACTER.search(text) else text


def _scopes(parameters: Parameters, client: Client) -> tuple[str, ...]:
    if not parameters.has("scope"):
        if client.registered_by:  # it was written for other services, where the scope is optional
            return DEFAULT_SCOPES
        raise AuthorizationError("invalid_request", "scope is required")
    return parse_scopes(parameters.text("scope") or "")


def parse_scopes(text: str) -> tuple[str, ...]:
    """Returns the scopes in the order of ``SCOPES``. Raises AuthorizationError."""
    scopes = set(text.split(" ")) - {""}
    if not scopes <= set(SCOPES):
        raise AuthorizationError("invalid_scope", f"scope: expected some of {', '.join(SCOPES)}")
    if "openid" not in scopes:
        raise AuthorizationError("invalid_scope", "scope: expected openid among its values")
    return tuple(scope for scope in SCOPES if scope in scopes)


def _nonce(parameters: Parameters, client: Client) -> str | None:
    nonce = parameters.text("nonce")
    # Every ID token contains the nonce, and a client must be able to send the token back as id_token_hint, so it must
    # not become too long. JSON encodes a control character as six characters.
    if nonce is not None and (len(nonce.encode()) > MAX_NONCE or CONTROL_CHARACTER.search(nonce)):
        raise AuthorizationError(
            "invalid_request", f"nonce: expected at most {MAX_NONCE} bytes, without control characters"
        )
    if nonce is None and not client.rules.is_standard:
        raise AuthorizationError("invalid_request", "nonce is required")
    return nonce


def _challenge(parameters: Parameters, client: Client) -> str | None:
    challenge, method = parameters.text("code_challenge"), parameters.text("code_challenge_method")
    if challenge is None and method is None:
        if client.is_public or client.rules.needs_pkce:
            raise AuthorizationError("invalid_request", "code_challenge is required")
        return None
    if method != "S256":
        raise AuthorizationError("invalid_request", "code_challenge_method: expected S256")
    if challenge is None or not CHALLENGE.fullmatch(challenge):
        raise AuthorizationError("invalid_request", "code_challenge: expected 43 characters of base64url")
    return challenge


def _acr_values(parameters: Parameters, client: Client, essential: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the known values, or all if none is known. A strict client has no ``acr``, so it cannot ask for one."""
    if not client.rules.is_standard:
        return ()
    values = (essential or tuple((parameters.text("acr_values") or "").split()))[:MAX_PARAMETERS]
    return tuple(value for value in values if value in ACR_VALUES) or values


def _dpop_jkt(parameters: Parameters) -> str | None:
    jkt = parameters.text("dpop_jkt")
    if jkt is not None and not CHALLENGE.fullmatch(jkt):
        raise AuthorizationError("invalid_request", "dpop_jkt: expected 43 characters of base64url")
    return jkt


def _resources(parameters: Parameters) -> tuple[str, ...]:
    """Returns the resources, which may be several (RFC 8707). The caller checks that they are registered."""
    values = parameters.values.get(b"resource", ())
    if not values:
        return ()
    try:
        return check_resources([value.decode("ascii", "replace") for value in values if value])
    except InvalidTarget as error:
        raise AuthorizationError(error.code, str(error)) from None


def _prompts(parameters: Parameters) -> frozenset[str]:
    prompts = frozenset((parameters.text("prompt") or "").split(" ")) - {""}
    if not prompts <= PROMPTS:
        raise AuthorizationError("invalid_request", f"prompt: expected some of {', '.join(sorted(PROMPTS))}")
    if "none" in prompts and len(prompts) > 1:
        raise AuthorizationError("invalid_request", "prompt: none cannot be combined with other values")
    return prompts


def _max_age(parameters: Parameters) -> int | None:
    text = parameters.text("max_age")
    if text is None:
        return None
    if not SECONDS.fullmatch(text):
        raise AuthorizationError("invalid_request", "max_age: expected a number of seconds with at most 9 digits")
    return int(text)


def _login_hint(parameters: Parameters) -> str:
    """Returns "" for a value that cannot be a login. An invalid value is not an error, because it is only a hint."""
    try:
        return parameters.text("login_hint", MAX_LOGIN_HINT) or ""
    except AuthorizationError:
        return ""


def ui_locales(parameters: Parameters | None) -> str:
    """Returns the well-formed languages of ui_locales. It is only a preference, so an invalid value is not an error."""
    raw = parameters.single_value("ui_locales") if parameters else None
    return " ".join(parse_ui_locales(raw.decode("ascii", "replace"))) if raw else ""


def _subject(parameters: Parameters, subject_of: Callable[[str], str | None], requested: str | None) -> str | None:
    hint = parameters.text("id_token_hint", MAX_TOKEN)
    if hint is None:
        return requested
    subject = subject_of(hint)
    if subject is None:
        raise AuthorizationError(
            "invalid_request", "id_token_hint: expected an ID token that this service issued to the client"
        )
    if requested not in (None, subject):
        raise AuthorizationError("invalid_request", "claims.sub: expected the user of id_token_hint")
    return subject
