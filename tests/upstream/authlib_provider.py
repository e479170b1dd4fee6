"""An OpenID provider with Authlib, unmodified: ``python -m tests.upstream.authlib_provider CLIENT_ID SECRET``.

Prints its issuer. The login form asks for a name only; each name is a person.
"""

import sys
import time
import warnings
from html import escape
from typing import Any, ClassVar

from flask import Flask, jsonify, redirect, request
from joserfc.jwk import RSAKey
from werkzeug.serving import make_server

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from authlib.integrations.flask_oauth2 import AuthorizationServer, ResourceProtector, current_token
    from authlib.oauth2.rfc6749 import ClientMixin, TokenMixin, grants
    from authlib.oauth2.rfc6750 import BearerTokenValidator
    from authlib.oauth2.rfc7636 import CodeChallenge
    from authlib.oidc.core import OpenIDCode, UserInfo
    from authlib.oidc.core.models import AuthorizationCodeMixin

KEY = RSAKey.generate_key(2048, {"kid": "authlib-1", "use": "sig", "alg": "RS256"})
CODES: dict[str, "Code"] = {}
TOKENS: dict[str, "Token"] = {}
CLIENT_ID, SECRET = sys.argv[1:] if len(sys.argv) == 3 else ("", "")
app = Flask(__name__)


class Client(ClientMixin):  # type: ignore[misc]
    client_metadata: ClassVar = {"id_token_signed_response_alg": "RS256"}
    client_id = CLIENT_ID

    def get_client_id(self) -> str:
        return CLIENT_ID

    def get_default_redirect_uri(self) -> None:
        return None

    def get_allowed_scope(self, scope: str) -> str:
        return scope or ""

    def check_redirect_uri(self, uri: str) -> bool:
        return uri.endswith("/login/upstream/authlib/callback")

    def check_client_secret(self, secret: str) -> bool:
        return secret == SECRET

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == "client_secret_basic"

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == "authorization_code"


class Code(AuthorizationCodeMixin):  # type: ignore[misc]
    def __init__(self, person: str, payload: Any) -> None:
        self.person = person
        self.auth_time = int(time.time())
        self.request: dict[str, str] = dict(payload.data)
        self.code_challenge = self.request.get("code_challenge")
        self.code_challenge_method = self.request.get("code_challenge_method")

    def get_redirect_uri(self) -> Any:
        return self.request["redirect_uri"]

    def get_scope(self) -> Any:
        return self.request["scope"]

    def get_nonce(self) -> Any:
        return self.request.get("nonce")

    def get_auth_time(self) -> int:
        return self.auth_time


class Token(TokenMixin):  # type: ignore[misc]
    def __init__(self, person: str, scope: str) -> None:
        self.person = person
        self.scope = scope

    def check_client(self, client: Client) -> bool:
        return True

    def get_scope(self) -> str:
        return self.scope

    def is_expired(self) -> bool:
        return False

    def is_revoked(self) -> bool:
        return False


class CodeGrant(grants.AuthorizationCodeGrant):  # type: ignore[misc]
    TOKEN_ENDPOINT_AUTH_METHODS: ClassVar = ["client_secret_basic"]

    def save_authorization_code(self, code: str, request: Any) -> None:
        CODES[code] = Code(request.user, request.payload)

    def query_authorization_code(self, code: str, client: Client) -> Code | None:
        return CODES.pop(code, None)

    def delete_authorization_code(self, code: Code) -> None:
        """The code was deleted when it was read."""

    def authenticate_user(self, code: Code) -> str:
        return code.person


class IdTokens(OpenIDCode):  # type: ignore[misc]
    def exists_nonce(self, nonce: str, request: Any) -> bool:
        return False

    def resolve_client_private_key(self, client: Client) -> RSAKey:
        return KEY

    def get_client_algorithm(self, client: Client) -> str:
        return "RS256"

    def get_client_claims(self, client: Client) -> dict[str, Any]:
        now = int(time.time())
        return {"iss": issuer(), "aud": [CLIENT_ID], "iat": now, "exp": now + 3600}

    def get_encode_header(self, client: Client) -> dict[str, str]:
        return {"alg": "RS256", "kid": "authlib-1"}

    def generate_user_info(self, person: str, scope: str) -> Any:
        return UserInfo(sub=person)  # the rest is at the userinfo endpoint


class Bearer(BearerTokenValidator):  # type: ignore[misc]
    def authenticate_token(self, token: str) -> Token | None:
        return TOKENS.get(token)


def save_token(token: dict[str, Any], request: Any) -> None:
    TOKENS[token["access_token"]] = Token(request.user, token["scope"])


server = AuthorizationServer(app, lambda client_id: Client() if client_id == CLIENT_ID else None, save_token)
server.register_grant(CodeGrant, [IdTokens(require_nonce=True), CodeChallenge(required=True)])
require = ResourceProtector()
require.register_token_validator(Bearer())


def issuer() -> str:
    return str(app.config["ISSUER"])


@app.get("/.well-known/openid-configuration")
def metadata() -> Any:
    return jsonify(
        issuer=issuer(),
        authorization_endpoint=f"{issuer()}/authorize",
        token_endpoint=f"{issuer()}/token",
        userinfo_endpoint=f"{issuer()}/userinfo",
        jwks_uri=f"{issuer()}/jwks",
        token_endpoint_auth_methods_supported=["client_secret_basic"],
    )


@app.get("/authorize")
def authorize() -> Any:
    person = request.args.get("name")
    grant = server.get_consent_grant(end_user=person)
    if not person:
        fields = "".join(
            f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'
            for name, value in request.args.items()
        )
        return f"""<!doctype html><html lang="en"><title>Elsewhere</title><link rel="icon" href="data:,">
            <form action="/authorize">{fields}<label>Name <input name="name"></label><button>Continue</button></form>"""
    if person == "nobody":
        return redirect(f"{request.args['redirect_uri']}?error=access_denied&state={request.args['state']}")
    return server.create_authorization_response(grant_user=person, grant=grant)


@app.post("/token")
def token() -> Any:
    return server.create_token_response()


@app.get("/userinfo")
@require("openid")  # type: ignore[untyped-decorator]
def userinfo() -> Any:
    person = current_token.person
    return jsonify(sub=person, name=person.title(), email=f"{person}@elsewhere.example", email_verified=True)


@app.get("/jwks")
def jwks() -> Any:
    return jsonify(keys=[KEY.as_dict(private=False)])


def main() -> None:
    listener = make_server("127.0.0.1", 0, app, threaded=True)
    app.config["ISSUER"] = f"http://127.0.0.1:{listener.server_port}"
    print(issuer(), flush=True)
    listener.serve_forever()


if __name__ == "__main__":
    main()
