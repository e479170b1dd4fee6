"""Tests with unmodified third-party relying parties, which ``scripts/rp`` installs; missing ones are skipped."""

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from authlib.common.security import generate_token
from authlib.oauth2.client import OAuth2Client
from authlib.oauth2.rfc7523 import PrivateKeyJWT
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.jwk import KeySet
from jwt.algorithms import ECAlgorithm

from sso.core.keys import private_pem
from tests.kit.client_assertions import KEYS
from tests.kit.fapi import new_fapi_client
from tests.kit.node_modules import NODE_MODULES
from tests.kit.oauth import PAR, TOKEN, Browser, Site, close_all, new_browser, new_site, query_of
from tests.kit.server import Server, until

MODULES = Path("/usr/lib/apache2/modules")

with_openid_client = pytest.mark.skipif(
    not (NODE_MODULES / "openid-client").is_dir() or not shutil.which("node"), reason="openid-client: run scripts/rp"
)
with_mod_auth_openidc = pytest.mark.skipif(
    not (MODULES / "mod_auth_openidc.so").exists(), reason="mod_auth_openidc: run scripts/rp"
)


@pytest.fixture(scope="module", autouse=True)
def _closed_afterwards() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture(scope="module")
def browser(server: Server) -> Browser:
    return new_browser(server).sign_in()


@contextmanager
def openid_client(server: Server, site: Site, folder: Path, **settings: Any) -> Iterator[subprocess.Popen[str]]:
    """Starts the client. It prints the authorization URL and waits for the redirect URL."""
    script = folder / "site.mjs"
    script.write_text((Path(__file__).parent / "openid_client.mjs").read_text())
    (folder / "node_modules").symlink_to(NODE_MODULES)
    named = {"issuer": server.base_url, "client_id": site.client_id, "secret": site.secret}
    argument = json.dumps({**named, "redirect_uri": site.redirect_uri, **settings})
    pipe = subprocess.PIPE
    with subprocess.Popen(
        ["node", str(script), argument], stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=folder
    ) as process:
        yield process


def answered(process: "subprocess.Popen[str]", browser: Browser, change: Callable[[str], str] = str) -> tuple[str, str]:
    """Signs the user in, sends the redirect URL to the client, and returns what it prints, and its errors."""
    assert process.stdout
    response = browser.http.get(process.stdout.readline().strip())
    assert response.status_code == 302
    return process.communicate(change(response.headers["Location"]) + "\n", timeout=120)


@with_openid_client
@pytest.mark.parametrize(
    ("method", "dpop"),
    [
        ("strict", False),
        ("basic", False),
        ("post", False),
        ("none", False),
        ("basic", True),
        ("none", True),
        ("fapi2", True),
    ],
)
def test_openid_client_signs_in_refreshes_and_revokes(
    server: Server, browser: Browser, tmp_path: Path, method: str, dpop: bool
) -> None:
    """With DPoP, the request is pushed, and the client may neither get other tokens nor send other requests."""
    if method == "fapi2":
        site = new_fapi_client(server).site
        key = {"jwk": json.loads(ECAlgorithm.to_jwk(KEYS["ES256"])), "kid": "key-ES256"}  # type: ignore[arg-type]
    else:
        required = {"dpop_bound_access_tokens": dpop, "require_pushed_authorization_requests": dpop}
        site = new_site(server, profile="strict" if method == "strict" else "oidc", public=method == "none", **required)
        key = {}
    with openid_client(server, site, tmp_path, method=method, dpop=dpop, **key) as process:
        printed, errors = answered(process, browser)
    assert process.returncode == 0, errors
    output = json.loads(printed)
    assert output["claims"]["azp"] == site.client_id
    assert output["userinfo"]["email"] == browser.login
    assert output["refreshed"]["sub"] == output["userinfo"]["sub"] == output["claims"]["sub"]
    assert output["revoked"] is (method != "strict")
    assert output["tokenType"] == ("dpop" if dpop else "bearer")  # the library writes it in lower case


@with_openid_client
@pytest.mark.parametrize("issuer", ["https%3A%2F%2Fevil.example", ""])
def test_openid_client_refuses_the_answer_of_another_issuer(
    server: Server, browser: Browser, tmp_path: Path, issuer: str
) -> None:
    """Mix-up: the answer has another ``iss`` or none, although discovery says that it has one."""
    site = new_site(server, profile="oidc")

    def change(url: str) -> str:
        return re.sub(r"[?&]iss=[^&]*", f"&iss={issuer}" if issuer else "", url)

    with openid_client(server, site, tmp_path, method="basic", dpop=False) as process:
        printed, errors = answered(process, browser, change)
    assert (process.returncode, printed) == (1, "")
    assert "iss" in errors


def test_authlib_signs_in_as_a_client_of_the_profile_fapi2(server: Server, browser: Browser) -> None:
    """Authlib makes the assertions. It knows neither pushed requests nor DPoP, so the test adds these requests."""
    client = new_fapi_client(server)
    signer = PrivateKeyJWT(server.base_url, headers={"kid": "key-RS256"}, alg="PS256")  # the audience is the issuer
    key = private_pem(KEYS["RS256"])
    nonce = ""

    def authorized(path: str, form: dict[str, str]) -> httpx.Response:
        nonlocal nonce
        for _ in range(2):
            session = OAuth2Client(None, client.site.client_id, key, token_endpoint_auth_method=signer)
            uri, headers, body = signer(session, "POST", server.base_url + path, {}, urlencode(form))
            sent = {**headers, **client.key.headers(client.site, path, **({"nonce": nonce} if nonce else {}))}
            sent |= {"Content-Type": "application/x-www-form-urlencoded"}
            answer = client.site.http.post(uri, content=body, headers=sent)
            nonce = answer.headers.get("DPoP-Nonce", nonce)
            if answer.is_success:
                break
        assert answer.is_success, answer.text
        return answer

    verifier = generate_token(48)
    challenge = {"code_challenge": create_s256_code_challenge(verifier), "code_challenge_method": "S256"}
    pushed = authorized(PAR, client.site.query(**challenge))
    code = query_of(client.follow(browser, pushed))["code"]
    tokens = authorized(TOKEN, client.redemption(code, verifier)).json()
    keys = KeySet.import_key_set(client.site.http.get("/proxy/oauth/keys").json())
    claims = jwt.decode(tokens["id_token"], keys, algorithms=["ES256"]).claims
    assert claims["azp"] == client.site.client_id
    again = authorized(TOKEN, {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]})
    assert "refresh_token" not in again.json()


APACHE = """
ServerRoot {folder}
ServerName 127.0.0.1
Listen 127.0.0.1:{port}
PidFile {folder}/pid
ErrorLog {folder}/error.log
DocumentRoot {folder}/pages
User {user}
Group {group}
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authn_core_module {modules}/mod_authn_core.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule authz_user_module {modules}/mod_authz_user.so
LoadModule auth_openidc_module {modules}/mod_auth_openidc.so
OIDCProviderMetadataURL {issuer}/.well-known/openid-configuration
OIDCClientID {client_id}
OIDCClientSecret {secret}
OIDCRedirectURI http://127.0.0.1:{port}/protected/callback
OIDCCryptoPassphrase passphrase-of-a-test
OIDCScope "openid email profile"
OIDCPKCEMethod S256
OIDCRemoteUserClaim sub
<Location /protected>
    AuthType openid-connect
    Require claim email:{login}
</Location>
"""


@pytest.fixture
def apache(server: Server, browser: Browser) -> Iterator[tuple[Site, int]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    callback = f"http://127.0.0.1:{port}/protected/callback"
    logout = f"{callback}?logout=backchannel"
    site = new_site(server, profile="oidc", redirect_uri=callback, backchannel_logout_uri=logout)
    with tempfile.TemporaryDirectory(prefix="sso-rp-") as name:
        folder = Path(name)
        folder.chmod(0o777)  # Apache runs as another user
        (folder / "pages/protected").mkdir(parents=True)
        (folder / "pages/protected/index.html").write_text("a protected page")
        own = os.getuid() != 0
        conf = APACHE.format(
            folder=folder,
            port=port,
            modules=MODULES,
            issuer=server.base_url,
            client_id=site.client_id,
            secret=site.secret,
            login=browser.login,
            user=f"#{os.getuid()}" if own else "www-data",
            group=f"#{os.getgid()}" if own else "www-data",
        )
        (folder / "httpd.conf").write_text(conf)
        with subprocess.Popen(["/usr/sbin/apache2", "-f", str(folder / "httpd.conf"), "-X"]) as process:
            try:
                assert until(lambda: _listens(port)), (folder / "error.log").read_text()
                yield site, port
            finally:
                process.terminate()
                process.wait(60)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@with_mod_auth_openidc
def test_mod_auth_openidc_protects_a_page(server: Server, browser: Browser, apache: tuple[Site, int]) -> None:
    _, port = apache
    page = f"http://127.0.0.1:{port}/protected/index.html"
    with server.client() as anonymous:
        response = anonymous.get(page)
        assert response.status_code == 302
        assert response.headers["Location"].startswith(f"{server.base_url}/proxy/oauth/authorize?")
    response = browser.http.get(page, follow_redirects=True)
    assert response.status_code == 200, response.text
    assert response.text == "a protected page"


@with_mod_auth_openidc
def test_mod_auth_openidc_ends_its_session_when_the_user_signs_out_elsewhere(
    server: Server, browser: Browser, apache: tuple[Site, int]
) -> None:
    """The browser of the site keeps its cookie; the service tells the site that the session has ended."""
    _, port = apache
    page = f"http://127.0.0.1:{port}/protected/index.html"
    visitor = Browser(server, browser.login).sign_in()
    assert visitor.http.get(page, follow_redirects=True).text == "a protected page"
    assert visitor.http.get(page).status_code == 200
    visitor.submit(visitor.http.get("/account"), {}, form=0)  # "Sign out" at the service
    assert until(lambda: visitor.http.get(page).status_code == 302)
