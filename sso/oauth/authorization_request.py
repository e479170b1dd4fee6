"""What an authorization request says, and whether it may be said: pure, no clock and no store."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from sso.core.jwt import MAX_TOKEN
from sso.core.language import in_ui_locales
from sso.oauth.errors import AuthorizationError
from sso.oauth.model import PROMPTS, SCOPES, AuthorizationRequest, Client
from sso.oauth.redirect_uris import Redirect

MAX_PARAMETERS = 100
MAX_STATE, MAX_NONCE, MAX_HINT = 4096, 1024, 320  # bytes, bytes, characters
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
AGE = re.compile(r"[0-9]{1,9}", re.ASCII)
KNOWN = (
    "response_type", "response_mode", "scope", "state", "nonce", "code_challenge", "code_challenge_method", "prompt",
    "max_age", "login_hint", "ui_locales", "id_token_hint",
)  # fmt: skip
# Ignoring these would do something else than the client believes.
NOT_SUPPORTED = ("request", "request_uri", "registration")


@dataclass(frozen=True)
class Parameters:
    """The parameters of a query, decoded once, as bytes: only what must be text is made text."""

    values: Mapping[bytes, Sequence[bytes]]

    @classmethod
    def read(cls, query: bytes) -> "Parameters | None":
        """None if there are absurdly many."""
        parts = query.split(b"&", MAX_PARAMETERS)
        if len(parts) > MAX_PARAMETERS:
            return None
        values: dict[bytes, list[bytes]] = {}
        for part in parts:
            if part:
                name, _, value = part.partition(b"=")
                values.setdefault(_decoded(name), []).append(_decoded(value))
        return cls(values)

    def only(self, name: str) -> bytes | None:
        """The value if it stands there once, and not empty."""
        found = self.values.get(name.encode(), ())
        return found[0] or None if len(found) == 1 else None

    def has(self, name: str) -> bool:
        return name.encode() in self.values

    def repeated(self, names: Sequence[str] = KNOWN) -> set[str]:
        return {name for name in names if len(self.values.get(name.encode(), ())) > 1}

    def text(self, name: str, most: int = MAX_STATE) -> str | None:
        raw = self.only(name)
        if raw is None:
            return None
        try:
            value = raw.decode()
        except UnicodeDecodeError:
            raise AuthorizationError("invalid_request", f"{name} is not valid UTF-8") from None
        if len(value) > most or "\0" in value:
            raise AuthorizationError("invalid_request", f"{name} is too long or has characters that are not allowed")
        return value


def ascii_of(parameters: Parameters, name: str) -> str:
    """The value as text; what is not there, or is no ASCII, as nothing."""
    raw = parameters.only(name)
    return raw.decode() if raw and raw.isascii() else ""


def _decoded(encoded: bytes) -> bytes:
    return unquote_to_bytes(encoded.replace(b"+", b" "))


def check(
    parameters: Parameters, client: Client, redirect: Redirect, subject_of: Callable[[str], str | None]
) -> AuthorizationRequest:
    """The request as the client may make it, or Denied. ``subject_of`` reads an id_token of ours."""
    for name in sorted(parameters.repeated()):
        raise AuthorizationError("invalid_request", f"{name} stands there more than once")
    for name in NOT_SUPPORTED:
        if parameters.has(name):
            raise AuthorizationError(f"{name}_not_supported", f"{name} is not supported")
    state = parameters.only("state")
    if state is not None and len(state) > MAX_STATE:
        raise AuthorizationError("invalid_request", f"state is longer than {MAX_STATE} bytes")
    _check_response(parameters, client)
    return AuthorizationRequest(
        client=client,
        redirect=redirect,
        scopes=_scopes(parameters),
        state=state,
        nonce=_nonce(parameters, client),
        challenge=_challenge(parameters, client),
        prompts=_prompts(parameters),
        max_age=_max_age(parameters),
        login_hint=_hint(parameters),
        sub=_subject(parameters, subject_of),
        ui_locales=ui_locales(parameters),
    )


def _check_response(parameters: Parameters, client: Client) -> None:
    kind = parameters.text("response_type")
    if kind is None:
        raise AuthorizationError("invalid_request", "response_type is required")
    if kind != "code":
        raise AuthorizationError("unsupported_response_type", "response_type must be code")
    mode = parameters.text("response_mode")
    if mode != "query" and (mode is not None or client.profile == "strict"):
        raise AuthorizationError("invalid_request", "response_mode must be query")


def _scopes(parameters: Parameters) -> tuple[str, ...]:
    if not parameters.has("scope"):
        raise AuthorizationError("invalid_request", "scope is required")
    wanted = set((parameters.text("scope") or "").split(" ")) - {""}
    if not wanted <= set(SCOPES):
        raise AuthorizationError("invalid_scope", f"known scopes: {', '.join(SCOPES)}")
    if "openid" not in wanted:
        raise AuthorizationError("invalid_scope", "scope must include openid")
    return tuple(scope for scope in SCOPES if scope in wanted)


def _nonce(parameters: Parameters, client: Client) -> str | None:
    nonce = parameters.text("nonce")
    # It goes into every id_token, which must come back as a hint: control characters become six there.
    if nonce is not None and (len(nonce.encode()) > MAX_NONCE or CONTROL.search(nonce)):
        raise AuthorizationError(
            "invalid_request", f"nonce is longer than {MAX_NONCE} bytes, or has control characters"
        )
    if nonce is None and client.profile == "strict":
        raise AuthorizationError("invalid_request", "nonce is required")
    return nonce


def _challenge(parameters: Parameters, client: Client) -> str | None:
    challenge, method = parameters.text("code_challenge"), parameters.text("code_challenge_method")
    if challenge is None and method is None:
        if client.is_public:
            raise AuthorizationError("invalid_request", "code_challenge is required")
        return None
    if method != "S256":
        raise AuthorizationError("invalid_request", "code_challenge_method must be S256")
    if challenge is None or not CHALLENGE.fullmatch(challenge):
        raise AuthorizationError("invalid_request", "code_challenge must be 43 characters of base64url")
    return challenge


def _prompts(parameters: Parameters) -> frozenset[str]:
    prompts = frozenset((parameters.text("prompt") or "").split(" ")) - {""}
    if not prompts <= PROMPTS:
        raise AuthorizationError("invalid_request", f"prompt: {', '.join(sorted(PROMPTS))} are known")
    if "none" in prompts and len(prompts) > 1:
        raise AuthorizationError("invalid_request", "prompt: none stands alone")
    return prompts


def _max_age(parameters: Parameters) -> int | None:
    text = parameters.text("max_age")
    if text is None:
        return None
    if not AGE.fullmatch(text):
        raise AuthorizationError("invalid_request", "max_age must be a number of seconds")
    return int(text)


def _hint(parameters: Parameters) -> str:
    """Only a hint: one that cannot be a login is no reason to refuse anything."""
    try:
        return parameters.text("login_hint", MAX_HINT) or ""
    except AuthorizationError:
        return ""


def ui_locales(parameters: Parameters | None) -> str:
    """As far as it is understood. A wish: one that cannot be met is no reason to refuse anything."""
    said = parameters.only("ui_locales") if parameters else None
    return " ".join(in_ui_locales(said.decode("ascii", "replace"))) if said else ""


def _subject(parameters: Parameters, subject_of: Callable[[str], str | None]) -> str | None:
    hint = parameters.text("id_token_hint", MAX_TOKEN)
    if hint is None:
        return None
    subject = subject_of(hint)
    if subject is None:
        raise AuthorizationError("invalid_request", "id_token_hint is not one of ours")
    return subject
