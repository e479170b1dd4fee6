"""Tests with unmodified third-party relying parties, which ``scripts/rp`` installs; missing ones are skipped."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.node_modules import NODE_MODULES
from tests.kit.oauth import Browser, Site, close_all, new_browser, new_site
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


@with_openid_client
@pytest.mark.parametrize(
    ("method", "dpop"),
    [("strict", False), ("basic", False), ("post", False), ("none", False), ("basic", True), ("none", True)],
)
def test_openid_client_signs_in_refreshes_and_revokes(
    server: Server, browser: Browser, tmp_path: Path, method: str, dpop: bool
) -> None:
    """With DPoP, the request is pushed, and the client may neither get other tokens nor send other requests."""
    required = {"dpop_bound_access_tokens": dpop, "require_pushed_authorization_requests": dpop}
    site = new_site(server, profile="strict" if method == "strict" else "oidc", public=method == "none", **required)
    script = tmp_path / "site.mjs"
    script.write_text((Path(__file__).parent / "openid_client.mjs").read_text())
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    settings = {
        "issuer": server.base_url,
        "client_id": site.client_id,
        "secret": site.secret,
        "redirect_uri": site.redirect_uri,
        "method": method,
        "dpop": dpop,
    }
    with subprocess.Popen(
        ["node", str(script), json.dumps(settings)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as process:
        assert process.stdin
        assert process.stdout
        response = browser.http.get(process.stdout.readline().strip())
        assert response.status_code == 302
        process.stdin.write(response.headers["Location"] + "\n")
        process.stdin.close()
        output = json.loads(process.stdout.read())
        assert process.wait(60) == 0
    assert output["claims"]["azp"] == site.client_id
    assert output["userinfo"]["email"] == browser.login
    assert output["refreshed"]["sub"] == output["userinfo"]["sub"] == output["claims"]["sub"]
    assert output["revoked"] is (method != "strict")
    assert output["tokenType"] == ("dpop" if dpop else "bearer")  # the library writes it in lower case


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
