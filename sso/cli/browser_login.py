"""Sign-in with a browser on this machine: authorization code with PKCE, and a redirect to this program (RFC 8252).

A code that a person types on another device would be easier, but a stranger could send such a code to an administrator.
The management API therefore refuses sign-ins of devices and games.
"""

import base64
import hashlib
import hmac
import secrets
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

from sso.cli.context import CommandFailure
from sso.cli.echo import echo
from sso.client import ApiCall, BrowserLogin, SsoClient
from sso.client.call import read_body
from sso.client.credentials import new_factor

CLIENT_ID = "sso-cli"
WAIT_S = 300
DONE = "You are signed in. You can close this window and return to the terminal."


class _Callback(BaseHTTPRequestHandler):
    """Receives the redirect of the browser."""

    server: "_CallbackServer"

    def do_GET(self) -> None:
        target = urlsplit(self.path)
        answer = {name: values[0] for name, values in parse_qs(target.query).items()}
        is_ours = target.path == "/callback" and hmac.compare_digest(
            answer.get("state", "").encode(), self.server.state.encode()
        )
        if is_ours:
            self.server.answer = answer
        text = (DONE if "code" in answer else "Not signed in. See the terminal.") if is_ours else "not found"
        self.send_response(200 if is_ours else 404)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


class _CallbackServer(HTTPServer):
    def __init__(self, state: str) -> None:
        super().__init__(("127.0.0.1", 0), _Callback)
        self.state = state
        self.answer: dict[str, str] = {}
        self.timeout = WAIT_S

    @property
    def redirect_uri(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/callback"


def sign_in_with_browser(url: str, client_id: str) -> BrowserLogin:
    """Prints the address, waits for the browser, and returns the credentials."""
    state, verifier = secrets.token_urlsafe(24), secrets.token_urlsafe(48)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    with _CallbackServer(state) as server:
        query = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": server.redirect_uri,
            "scope": "openid offline_access",
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        echo("Open this address in a browser on this machine, and sign in:", err=True)
        echo(f"{url}/proxy/oauth/authorize?{urlencode(query)}")
        code = _wait_for_code(server)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": server.redirect_uri,
            "client_id": client_id,
            "code_verifier": verifier,
        }
    with SsoClient(url) as api:
        tokens = api.send(ApiCall("POST", "/proxy/oauth/token", read_body, form=form, authenticated=False))
        credentials = BrowserLogin(client_id, tokens.get("refresh_token", ""), new_factor())
        api.run(credentials.use(tokens))
    return credentials


def _wait_for_code(server: _CallbackServer) -> str:
    from time import monotonic

    end = monotonic() + WAIT_S
    while not server.answer and monotonic() < end:
        server.timeout = end - monotonic()
        server.handle_request()
    if not server.answer:
        raise CommandFailure(f"nobody signed in within {WAIT_S // 60} minutes")
    if "code" not in server.answer:
        reason = server.answer.get("error_description") or server.answer.get("error", "no code")
        raise CommandFailure(f"the sign-in was refused: {reason}")
    return server.answer["code"]
