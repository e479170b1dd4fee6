"""The quickstarts of the documentation, with the libraries that they name; scripts/rp installs those."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt as pyjwt
import pytest
import yaml

from tests.kit.browser import Browser as PageBrowser
from tests.kit.device import type_code
from tests.kit.oauth import Browser, close_all, query_of
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running
from tests.rp.quickstart import INSTALLED, ROOT, Quickstart

PYTHON, NODE = INSTALLED / "python", INSTALLED / "express/node_modules"
with_python = pytest.mark.skipif(not PYTHON.is_dir(), reason="Python libraries: run scripts/rp")
with_node = pytest.mark.skipif(not NODE.is_dir() or not shutil.which("node"), reason="Node libraries: run scripts/rp")
NEXT = INSTALLED / "nextjs/node_modules"
with_apache = pytest.mark.skipif(
    not Path("/usr/lib/apache2/modules/mod_auth_openidc.so").exists(), reason="mod_auth_openidc: run scripts/rp"
)
LOGIN = {"login": "demo@example.com", "password": "demo-password"}
DEMO_USER = {"name": "Demo", "email": "demo@example.com"}


@pytest.fixture(scope="module")
def demo(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The service with the data of scripts/run."""
    dsn = postgres_server.fresh()
    with running(tmp_path_factory.mktemp("demo"), **QUICK, SSO_DATABASE_URL=dsn) as server:
        server.apply(json.loads((ROOT / "scripts/demo.json").read_text()))
        yield server
        close_all()
    postgres_server.drop(dsn)


@pytest.fixture
def browser(demo: Server) -> Browser:
    """A browser in which nobody is signed in."""
    return Browser(demo, LOGIN["login"])


def sign_in(browser: Browser, sign_in_form: httpx.Response) -> httpx.Response:
    """Fills in the sign-in form, and returns the page of the site that follows."""
    assert str(sign_in_form.url).startswith(browser.server.base_url), sign_in_form.text
    return browser.submit(sign_in_form, LOGIN, follow_redirects=True)


@with_python
def test_flask(demo: Server, browser: Browser, tmp_path: Path) -> None:
    with Quickstart(demo, tmp_path, "flask", "5000", PYTHON).running() as site:
        assert 'href="/login"' in browser.http.get(site.url).text
        page = sign_in(browser, browser.http.get(f"{site.url}/login", follow_redirects=True))
        assert page.url.path == "/"
        assert "Signed in as Demo (demo@example.com)." in page.text
        page = browser.http.post(f"{site.url}/logout", follow_redirects=True)
        assert (page.url.port, "Sign in" in page.text) == (site.port, True)
        assert browser.http.get("/account").status_code == 303


@with_python
def test_fastapi(demo: Server, browser: Browser, tmp_path: Path) -> None:
    with Quickstart(demo, tmp_path, "fastapi", "8003", PYTHON).running() as site:
        assert browser.http.get(site.url).status_code == 401
        page = sign_in(browser, browser.http.get(f"{site.url}/login", follow_redirects=True))
        assert page.json() == {"user_id": "1000", **DEMO_USER}
        assert browser.http.get(f"{site.url}/logout").status_code == 200
        assert browser.http.get(site.url).status_code == 401


@with_python
def test_django(demo: Server, browser: Browser, tmp_path: Path) -> None:
    with Quickstart(demo, tmp_path, "django", "8002", PYTHON).running() as site:
        for _ in range(2):  # the second time, Django finds the user that it created
            page = browser.http.get(site.url)
            token = page.text.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
            form = {"csrfmiddlewaretoken": token}
            page = browser.http.post(f"{site.url}/accounts/oidc/sso/login/", data=form, follow_redirects=True)
            page = page if page.url.port == site.port else sign_in(browser, page)
            assert "Signed in as Demo (demo@example.com)." in page.text
            token = page.text.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
            form = {"csrfmiddlewaretoken": token}
            page = browser.http.post(f"{site.url}/accounts/logout/", data=form, follow_redirects=True)
            assert "Sign in" in page.text


@with_node
def test_express(demo: Server, browser: Browser, tmp_path: Path) -> None:
    with Quickstart(demo, tmp_path, "express", "3000", NODE).running() as site:
        assert browser.http.get(site.url).json() == {"sign_in": f"{site.url}/login"}
        page = sign_in(browser, browser.http.get(f"{site.url}/login", follow_redirects=True))
        assert page.json() == {"user_id": "1000", **DEMO_USER}
        page = browser.http.get(f"{site.url}/logout", follow_redirects=True)
        assert page.json() == {"sign_in": f"{site.url}/login"}
        assert browser.http.get("/account").status_code == 303


@pytest.mark.skipif(not NEXT.is_dir() or not shutil.which("node"), reason="Next.js and Auth.js: run scripts/rp")
def test_nextjs(demo: Server, browser: Browser, tmp_path: Path) -> None:
    with Quickstart(demo, tmp_path, "nextjs", "3002", NEXT).running() as site:
        url = f"http://localhost:{site.port}"  # Next.js calls itself so, whatever the browser does
        token = browser.http.get(f"{url}/api/auth/csrf", timeout=300).json()["csrfToken"]  # compiled at first
        form = {"csrfToken": token, "callbackUrl": f"{url}/"}
        page = browser.http.post(f"{url}/api/auth/signin/sso", data=form, follow_redirects=True, timeout=300)
        page = sign_in(browser, page)
        assert browser.http.get(f"{url}/api/auth/session", timeout=300).json()["user"] == DEMO_USER
        assert "Signed in as Demo (demo@example.com)." in browser.http.get(url, timeout=300).text


@pytest.mark.skipif(not shutil.which("go"), reason="Go: run scripts/rp")
def test_go(demo: Server, browser: Browser, tmp_path: Path) -> None:
    with Quickstart(demo, tmp_path, "go", "3001").running() as site:
        check_plain_site(site, browser)


@pytest.mark.skipif(not shutil.which("php"), reason="PHP: run scripts/rp")
def test_php(demo: Server, browser: Browser, tmp_path: Path) -> None:
    with Quickstart(demo, tmp_path, "php", "8005").running() as site:
        check_plain_site(site, browser)


@pytest.mark.skipif(not shutil.which("mcs") or not shutil.which("mono"), reason="Mono: run scripts/rp")
def test_dotnet(demo: Server, browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "sdk").symlink_to(ROOT / "sdk")
    with Quickstart(demo, tmp_path / "examples", "dotnet", "3003").running() as site:
        check_plain_site(site, browser)
        # A signature that Mono cannot verify.
        demo.apply({"clients": [{"client_id": "csharp-site", "id_alg": "ES256"}]})
        page = browser.http.get(f"{site.url}/login", follow_redirects=True)
        assert (page.status_code, "cannot verify ES256" in page.text) == (400, True), page.text
        assert "Signed in" not in browser.http.get(site.url).text


def check_plain_site(site: Quickstart, browser: Browser) -> None:
    """A site without a library: it signs in, refuses the answer of a sign-in that it did not begin, and signs out."""
    assert "Signed in" not in browser.http.get(site.url).text
    assert browser.http.get(f"{site.url}/callback?code=x&state=y").status_code == 400
    page = sign_in(browser, browser.http.get(f"{site.url}/login", follow_redirects=True))
    assert (page.url.path, "Signed in as Demo (demo@example.com)." in page.text) == ("/", True), page.text
    assert browser.http.get(f"{site.url}/callback?code=x&state=y").status_code == 400
    page = browser.http.get(f"{site.url}/logout", follow_redirects=True)
    assert str(page.url).startswith(browser.server.base_url)  # the question whether to sign out there as well
    assert "Signed in" not in browser.http.get(site.url).text


@pytest.fixture
def readable_folder() -> Iterator[Path]:
    """A folder that other users may read: started by root, Apache changes its user."""
    with tempfile.TemporaryDirectory(prefix="sso-rp-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@with_apache
def test_apache(demo: Server, browser: Browser, readable_folder: Path) -> None:
    with Quickstart(demo, readable_folder, "apache", "8004").running() as site:
        assert 'href="/protected/"' in browser.http.get(site.url).text
        page = sign_in(browser, browser.http.get(f"{site.url}/protected/", follow_redirects=True))
        assert "Signed in as Demo (demo@example.com)." in page.text


def test_spring(demo: Server, browser: Browser, tmp_path: Path) -> None:
    """The configuration and the requests of Spring Security: there is no registry with it to install it from."""
    site = Quickstart(demo, tmp_path, "spring", "8080")
    client = yaml.safe_load((site.folder / "application.yml").read_text())["spring"]["security"]["oauth2"]["client"]
    registration, issuer = client["registration"]["sso"], client["provider"]["sso"]["issuer-uri"]
    metadata = browser.http.get(f"{issuer}/.well-known/openid-configuration").json()
    assert metadata["issuer"] == issuer
    assert registration["client-authentication-method"] in metadata["token_endpoint_auth_methods_supported"]
    redirect_uri = registration["redirect-uri"].format(baseUrl=site.url, registrationId="sso")
    query = {
        "response_type": "code",
        "client_id": registration["client-id"],
        "scope": registration["scope"].replace(",", ""),
        "state": "a-state=",
        "redirect_uri": redirect_uri,
        "nonce": "a-nonce",
    }
    form = browser.http.get(metadata["authorization_endpoint"], params=query)
    answer = query_of(browser.submit(form, LOGIN))
    assert answer["state"] == query["state"]
    code = {"grant_type": registration["authorization-grant-type"], "code": answer["code"]}
    credentials = (registration["client-id"], site.secret)
    token_request = code | {"redirect_uri": redirect_uri}
    tokens = browser.http.post(metadata["token_endpoint"], data=token_request, auth=credentials).json()
    claims = _verified(browser, metadata, tokens["id_token"], registration["client-id"])
    assert (claims["iss"], claims["nonce"]) == (issuer, "a-nonce")
    bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
    user = browser.http.get(metadata["userinfo_endpoint"], headers=bearer).json()
    assert {name: user[name] for name in ("sub", *DEMO_USER)} == {"sub": claims["sub"], **DEMO_USER}


def _verified(browser: Browser, metadata: dict[str, Any], id_token: str, client_id: str) -> dict[str, Any]:
    keys = pyjwt.PyJWKSet.from_dict(browser.http.get(metadata["jwks_uri"]).json())
    key = keys[pyjwt.get_unverified_header(id_token)["kid"]]
    claims: dict[str, Any] = pyjwt.decode(id_token, key, algorithms=["RS256"], audience=client_id)
    return claims


def test_service(demo: Server, tmp_path: Path) -> None:
    service = Quickstart(demo, tmp_path, "service", packages=Path(sys.prefix))
    fetch, program = service.commands
    assert fetch.startswith("curl ")
    token = json.loads(service.run(fetch))
    assert (token["token_type"], token["expires_in"]) == ("Bearer", 3600)
    assert token["access_token"].startswith("app10.")
    printed = (ROOT / "docs/quickstarts/service.rst").read_text().partition("It prints::\n\n")[2].partition("\n\n")[0]
    assert service.run(program) == printed.replace("    ", "") + "\n"


@pytest.mark.skipif(
    not shutil.which("curl") or not shutil.which("jq"), reason="curl or jq is not installed: apt-get install curl jq"
)
def test_device(demo: Server, tmp_path: Path) -> None:
    device = Quickstart(demo, tmp_path, "device")
    (command,) = device.commands
    with (
        PageBrowser(demo) as browser,
        subprocess.Popen(
            device.command(command.replace("examples/device/", "./")),
            cwd=device.folder,
            env=device.environment,
            stdout=subprocess.PIPE,
            text=True,
        ) as program,
    ):
        assert program.stdout
        shown = re.fullmatch(r"Open (\S+) and type (\S+)\.\n", program.stdout.readline())
        words = program.stdout.readline().strip().removeprefix("The page must show: ")
        assert shown
        assert shown[1] == f"{demo.base_url}/device"
        browser.sign_in(**LOGIN)
        page = type_code(browser, shown[2])
        assert words in page.text
        browser.follow(browser.submit(f"{page.url.path}/continue"))
        assert program.stdout.read() == "Signed in as Demo (demo@example.com).\n"
        assert program.wait(60) == 0
