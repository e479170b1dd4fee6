"""A demo web site: sign in with the service and look at the tokens. Standard library only; not for real use.

This is all that a site needs: send people to the service with `state` and `nonce`, exchange the code that comes back,
and check what the id_token says. Signatures are checked with the published keys by a library of your choice; here the
token comes straight from the service, so that looking at it is enough (OpenID Connect Core, section 3.1.3.7).

With a process id as argument it ends when that process does.
"""

import base64
import hashlib
import html
import json
import os
import secrets
import signal
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BIND = os.environ.get("SSO_BIND", "127.0.0.1:8000").partition(",")[0]
SERVICE = os.environ.get("SSO_BASE_URL", f"http://{BIND}").rstrip("/")
PORT = int(os.environ.get("DEMO_SITE_PORT", "8001"))
HERE = f"http://127.0.0.1:{PORT}"
CLIENT_ID, CLIENT_SECRET = "demo-site", "demo-site-secret"
REDIRECT_URI = f"{HERE}/callback"

STYLE = """
body { font: 1rem/1.5 system-ui; max-width: 52rem; margin: 2rem auto; padding: 0 1rem }
pre { background: #f3f4f8; padding: 1rem; border-radius: .5rem; white-space: pre-wrap; overflow-wrap: anywhere }
.go { display: inline-block; margin: .25rem 0; padding: .5rem 1rem; border-radius: .5rem; background: #0a7a4b;
  color: #fff; text-decoration: none }
.quiet { background: #555 }
"""

visits: dict[str, dict] = {}  # by the secret in the visitor's cookie


def call(path: str, form: dict | None = None, bearer: str = "") -> dict:
    data = urllib.parse.urlencode(form).encode() if form is not None else None
    request = urllib.request.Request(SERVICE + path, data, {"Authorization": f"Bearer {bearer}"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)


def token(**form: str) -> dict:
    # The one line that is special to this service: SHA1 over redirect_uri immediately followed by client_secret.
    bearer = hashlib.sha1((REDIRECT_URI + CLIENT_SECRET).encode()).hexdigest()
    return call("/proxy/oauth/token", {**form, "redirect_uri": REDIRECT_URI}, bearer)


def claims(jwt: str) -> dict:
    body = jwt.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        self.query = dict(urllib.parse.parse_qsl(url.query))
        self.secret = SimpleCookie(self.headers.get("Cookie", "")).get("demo_site", None)
        self.visit = visits.get(self.secret.value) if self.secret else None
        pages = {
            "/": self.home, "/sign-in": self.sign_in, "/callback": self.callback, "/refresh": self.refresh,
            "/userinfo": self.userinfo, "/sign-out": self.sign_out,
        }  # fmt: skip
        page = pages.get(url.path)
        if page is None:
            self.show("There is no such page.", status=404)
        else:
            page()

    def home(self) -> None:
        if self.visit and "tokens" in self.visit:
            self.show_tokens()
        else:
            self.show('<p>You are not signed in.</p><p><a class="go" href="/sign-in">Sign in</a></p>')

    def sign_in(self) -> None:
        secret = secrets.token_urlsafe(32)
        visit = visits[secret] = {"state": secrets.token_urlsafe(16), "nonce": secrets.token_urlsafe(16)}
        query = {
            "response_type": "code",
            "response_mode": "query",
            "client_id": CLIENT_ID,
            "redirect_uri": REDIRECT_URI,
            "scope": "openid offline_access email profile trust",
            "state": visit["state"],
            "nonce": visit["nonce"],
        }
        address = f"{SERVICE}/proxy/oauth/authorize?{urllib.parse.urlencode(query)}"
        self.go(address, f"demo_site={secret}; HttpOnly; SameSite=Lax; Path=/")

    def callback(self) -> None:
        if not self.visit or not secrets.compare_digest(self.query.get("state", ""), self.visit["state"]):
            self.show("This answer is not for you: the state differs.", status=400)
        elif "code" not in self.query:
            said = f"{self.query.get('error')}: {self.query.get('error_description')}"
            self.show(f"<p>The service said no.</p><pre>{html.escape(said)}</pre>", status=400)
        else:
            tokens = token(grant_type="authorization_code", code=self.query["code"])
            if "error" in tokens or claims(tokens["id_token"]).get("nonce") != self.visit["nonce"]:
                self.show(f"<pre>{html.escape(json.dumps(tokens, indent=2))}</pre>", status=400)
                return
            self.visit["tokens"] = tokens
            self.go("/")

    def refresh(self) -> None:
        if self.visit and "tokens" in self.visit:
            answer = token(grant_type="refresh_token", refresh_token=self.visit["tokens"]["refresh_token"])
            if "error" not in answer:
                self.visit["tokens"] = answer
            self.visit["said"] = answer
        self.go("/")

    def userinfo(self) -> None:
        if self.visit and "tokens" in self.visit:
            self.visit["said"] = call("/proxy/oauth/userinfo", bearer=self.visit["tokens"]["access_token"])
        self.go("/")

    def sign_out(self) -> None:
        visit = visits.pop(self.secret.value, None) if self.secret else None
        query = {"post_logout_redirect_uri": f"{HERE}/"}
        if visit and "tokens" in visit:
            query["id_token_hint"] = visit["tokens"]["id_token"]
        else:
            query["client_id"] = CLIENT_ID
        self.go(f"{SERVICE}/proxy/oauth/logout?{urllib.parse.urlencode(query)}")

    def show_tokens(self) -> None:
        tokens, said = self.visit["tokens"], self.visit.pop("said", None)
        who = claims(tokens["id_token"])
        parts = [
            f"<p>Hello, <b>{html.escape(who.get('nickname', who['sub']))}</b>.</p>",
            '<p><a class="go" href="/userinfo">Ask who I am</a> <a class="go" href="/refresh">Refresh the tokens</a> '
            '<a class="go quiet" href="/sign-out">Sign out</a></p>',
        ]
        if said is not None:
            parts += ["<h2>The service answered</h2>", _pre(said)]
        parts += ["<h2>The tokens</h2>", _pre(tokens), "<h2>What the id_token says</h2>", _pre(who)]
        if "refresh_token" in tokens:
            parts += ["<h2>What the refresh_token says</h2>", _pre(claims(tokens["refresh_token"]))]
        self.show("".join(parts))

    def show(self, body: str, status: int = 200) -> None:
        page = (
            "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'>"
            f"<title>Demo site</title><style>{STYLE}</style><h1>Demo site</h1>{body}"
        ).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(page)

    def go(self, address: str, cookie: str = "") -> None:
        self.send_response(303)
        self.send_header("Location", address)
        if cookie:
            self.send_header("Set-Cookie", cookie)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def _pre(value: dict) -> str:
    return f"<pre>{html.escape(json.dumps(value, indent=2))}</pre>"


def _leave_with(service: int) -> None:
    """The service was started by the same command: when it ends, so does this."""
    try:
        while True:
            os.kill(service, 0)
            time.sleep(0.5)
    except ProcessLookupError:
        os._exit(0)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    try:
        server = ThreadingHTTPServer(("127.0.0.1", PORT), Site)
    except OSError as error:
        sys.exit(f"the demo site is left out: port {PORT}: {error.strerror} (set DEMO_SITE_PORT)")
    if len(sys.argv) > 1:
        threading.Thread(target=_leave_with, args=(int(sys.argv[1]),), daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
