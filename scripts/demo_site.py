"""A demo web site that signs people in with the service and shows the tokens. Standard library only; a demonstration.

The three steps that every site needs are `Site.sign_in` (send the browser to the service with `state` and `nonce`),
`Site.callback` (check `state`, exchange the code, check `nonce`) and `Site.sign_out`. A production site also verifies
the signature of the id_token with the published keys. Here the token comes straight from the service, so its claims may
be read without that (OpenID Connect Core, section 3.1.3.7).
"""

import base64
import hashlib
import html
import json
import os
import secrets
import urllib.error
import urllib.parse
import urllib.request
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SERVICE = os.environ.get("SSO_BASE_URL", "http://127.0.0.1:8000").rstrip("/")
PORT = int(os.environ.get("DEMO_SITE_PORT", "8001"))
SITE = f"http://127.0.0.1:{PORT}"
CLIENT_ID, CLIENT_SECRET = "demo-site", "demo-site-secret"
REDIRECT_URI = f"{SITE}/callback"
COOKIE = "demo_site"

STYLE = """
:root {
  color-scheme: light dark;
  --accent: #17663d; --accent-hover: #115231; --on-accent: #fff; --page: #f3f4f8; --card: #fff; --text: #191c26;
  --muted: #565d70; --line: #e1e4ec; --edge: #848ca1; --link: #17663d;
}
@media (prefers-color-scheme: dark) {
  :root {
    --accent: #1f7a4b; --accent-hover: #1a6a41; --page: #101219; --card: #191c26; --text: #e9ebf2; --muted: #a6adbf;
    --line: #2c3140; --edge: #727b93; --link: #7fd6a6;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); overflow-wrap: anywhere;
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif; }
header, main, footer { width: 100%; max-width: 52rem; margin: 0 auto; padding: 1rem 1.25rem; }
header { padding-top: 1.5rem; font-weight: 650; }
footer { color: var(--muted); font-size: .875rem; }
h1 { margin: 0 0 .25rem; font-size: 1.5rem; line-height: 1.25; }
h2 { margin: 1.75rem 0 .5rem; font-size: 1.0625rem; }
p { margin: .5rem 0; }
a { color: var(--link); text-underline-offset: .2em; }
:focus-visible { outline: .1875rem solid var(--link); outline-offset: .125rem; }
.card { padding: 2rem; border: 1px solid var(--line); border-radius: .875rem; background: var(--card); }
.actions { display: flex; flex-wrap: wrap; gap: .5rem; margin-top: 1.25rem; }
.button { display: inline-flex; align-items: center; min-height: 2.875rem; padding: .5rem 1.125rem;
  border: 1px solid transparent; border-radius: .625rem; background: var(--accent); color: var(--on-accent);
  font-weight: 600; text-decoration: none; }
.button:hover { background: var(--accent-hover); }
.button.quiet { border-color: var(--edge); background: none; color: var(--text); font-weight: 500; }
.muted { color: var(--muted); }
pre { margin: 0; padding: 1rem; border: 1px solid var(--line); border-radius: .625rem; background: var(--page);
  white-space: pre-wrap; font: .875rem/1.5 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
@media (max-width: 34rem) {
  .card { padding: 1.375rem 1.25rem; }
  .actions .button { flex: 1 1 100%; justify-content: center; }
}
"""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title} · Demo site</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<header>Demo site</header>
<main><div class="card">
<h1>{title}</h1>
{body}
</div></main>
<footer><p>This stands in for your own site. It sees only what the service sends.
Its source is <code>scripts/demo_site.py</code>.</p></footer>
</body>
</html>
"""

Json = dict[str, Any]
visits: dict[str, Json] = {}  # by the secret in the visitor's cookie


def call_service(path: str, form: Json | None = None, bearer: str = "") -> Json:
    """Sends a GET request, or a POST request with the form. Returns the JSON answer, also of an error."""
    data = urllib.parse.urlencode(form).encode() if form is not None else None
    request = urllib.request.Request(SERVICE + path, data, {"Authorization": f"Bearer {bearer}"})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            answer: Json = json.load(response)
    except urllib.error.HTTPError as error:
        answer = json.load(error)
    return answer


def request_tokens(**form: str) -> Json:
    # The one line that is special to this service: SHA1 over redirect_uri immediately followed by client_secret.
    bearer = hashlib.sha1((REDIRECT_URI + CLIENT_SECRET).encode()).hexdigest()
    return call_service("/proxy/oauth/token", {**form, "redirect_uri": REDIRECT_URI}, bearer)


def read_claims(jwt: str) -> Json:
    payload = jwt.split(".")[1]
    claims: Json = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return claims


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        self.query = dict(urllib.parse.parse_qsl(url.query))
        cookie = SimpleCookie(self.headers.get("Cookie", "")).get(COOKIE)
        self.cookie = cookie.value if cookie else ""
        self.visit = visits.get(self.cookie, {})
        pages = {
            "/": self.home,
            "/sign-in": self.sign_in,
            "/callback": self.callback,
            "/refresh": self.refresh,
            "/userinfo": self.userinfo,
            "/sign-out": self.sign_out,
        }
        pages.get(url.path, self.not_found)()

    def not_found(self) -> None:
        self.show("Page not found", '<p><a href="/">Back to the start</a></p>', status=404)

    def home(self) -> None:
        if "tokens" in self.visit:
            self.show_tokens(self.visit["tokens"])
        else:
            self.show(
                "Welcome",
                "<p>You are not signed in.</p>"
                '<p class="muted">Try it with demo@example.com and the password demo-password, or with a '
                f'<a href="{SERVICE}/docs/testing.html">test player</a> whose sign-in fails.</p>'
                '<p class="actions"><a class="button" href="/sign-in">Sign in</a></p>',
            )

    def sign_in(self) -> None:
        secret = secrets.token_urlsafe(32)
        visit = visits[secret] = {"state": secrets.token_urlsafe(16), "nonce": secrets.token_urlsafe(16)}
        parameters = {
            "response_type": "code",
            "response_mode": "query",
            "client_id": CLIENT_ID,
            "redirect_uri": REDIRECT_URI,
            "scope": "openid offline_access email profile trust",
            "state": visit["state"],
            "nonce": visit["nonce"],
        }
        self.redirect(
            f"{SERVICE}/proxy/oauth/authorize?{urllib.parse.urlencode(parameters)}",
            cookie=f"{COOKIE}={secret}; HttpOnly; SameSite=Lax; Path=/",
        )

    def callback(self) -> None:
        if not self.visit or not secrets.compare_digest(self.query.get("state", ""), self.visit["state"]):
            self.show_error("The state parameter is not the one that this browser was sent away with.")
        elif "code" not in self.query:
            error = {name: self.query.get(name) for name in ("error", "error_description")}
            self.show_error("The service refused the sign-in.", error)
        else:
            tokens = request_tokens(grant_type="authorization_code", code=self.query["code"])
            if "error" in tokens:
                self.show_error("The service refused the code.", tokens)
            elif read_claims(tokens["id_token"]).get("nonce") != self.visit["nonce"]:
                self.show_error("The nonce of the id_token is not the one that was sent.")
            else:
                self.visit["tokens"] = tokens
                self.redirect("/")

    def refresh(self) -> None:
        if "tokens" in self.visit:
            answer = request_tokens(
                grant_type="refresh_token", refresh_token=self.visit["tokens"].get("refresh_token", "")
            )
            if "error" not in answer:
                self.visit["tokens"] = answer
            self.visit["answer"] = answer
        self.redirect("/")

    def userinfo(self) -> None:
        if "tokens" in self.visit:
            self.visit["answer"] = call_service("/proxy/oauth/userinfo", bearer=self.visit["tokens"]["access_token"])
        self.redirect("/")

    def sign_out(self) -> None:
        visit = visits.pop(self.cookie, {})
        parameters = {"post_logout_redirect_uri": f"{SITE}/"}
        if "tokens" in visit:
            parameters["id_token_hint"] = visit["tokens"]["id_token"]
        else:
            parameters["client_id"] = CLIENT_ID
        self.redirect(f"{SERVICE}/proxy/oauth/logout?{urllib.parse.urlencode(parameters)}")

    def show_tokens(self, tokens: Json) -> None:
        claims, answer = read_claims(tokens["id_token"]), self.visit.pop("answer", None)
        sections = [("The service answered", answer), ("The tokens", tokens), ("Claims of the id_token", claims)]
        if "refresh_token" in tokens:
            sections.append(("Claims of the refresh_token", read_claims(tokens["refresh_token"])))
        self.show(
            f"Hello, {html.escape(claims.get('nickname') or claims['sub'])}",
            "<p>You are signed in.</p>"
            '<p class="actions"><a class="button" href="/userinfo">Request userinfo</a> '
            '<a class="button" href="/refresh">Refresh the tokens</a> '
            '<a class="button quiet" href="/sign-out">Sign out</a></p>'
            + "".join(f"<h2>{title}</h2>{as_block(value)}" for title, value in sections if value is not None),
        )

    def show_error(self, reason: str, details: Json | None = None) -> None:
        body = f'<p role="alert">{reason}</p>{as_block(details) if details else ""}'
        self.show(
            "Sign-in failed", body + '<p class="actions"><a class="button" href="/">Start again</a></p>', status=400
        )

    def show(self, title: str, body: str, status: int = 200) -> None:
        page = PAGE.format(title=title, style=STYLE, body=body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(page)

    def redirect(self, address: str, cookie: str = "") -> None:
        self.send_response(303)
        self.send_header("Location", address)
        if cookie:
            self.send_header("Set-Cookie", cookie)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Keeps the terminal for the service's own log."""


def as_block(value: Json) -> str:
    return f'<pre tabindex="0">{html.escape(json.dumps(value, indent=2))}</pre>'


def main() -> None:
    ThreadingHTTPServer(("127.0.0.1", PORT), Site).serve_forever()


if __name__ == "__main__":
    main()
