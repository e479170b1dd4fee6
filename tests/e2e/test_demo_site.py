"""The demo site that scripts/run starts beside the service, and the examples of docs/connect_site.rst."""

import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.kit.oauth import Browser, Site, close_all, new_browser, new_site
from tests.kit.server import Server, clean_environment, until

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def _closed_afterwards() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture
def demo_site(server: Server) -> Iterator[str]:
    server.apply(json.loads((ROOT / "scripts/demo.json").read_text()))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = clean_environment(SSO_BASE_URL=server.base_url, DEMO_SITE_PORT=str(port))
    with subprocess.Popen([sys.executable, str(ROOT / "scripts/demo_site.py")], env=environment) as process:
        url = f"http://127.0.0.1:{port}"
        try:
            assert until(lambda: _answers(url))
            yield url
        finally:
            process.terminate()


def _answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.TransportError:
        return False


def test_demo_site_signs_in_refreshes_and_signs_out(server: Server, demo_site: str) -> None:
    visitor = Browser(server, "demo@example.com")
    http = visitor.http
    http.follow_redirects = True
    assert "You are not signed in" in http.get(demo_site).text
    page = http.get(f"{demo_site}/sign-in")
    assert "to continue to" in page.text
    page = visitor.submit(page, {"login": "demo@example.com", "password": "demo-password"})
    assert "The site will know" in page.text
    page = visitor.submit(page, {"decision": "allow"})
    assert str(page.url) == f"{demo_site}/"
    assert "Hello, Demo" in page.text
    assert "refresh_token" in page.text
    assert "demo@example.com" in http.get(f"{demo_site}/userinfo").text
    assert "The service answered" in http.get(f"{demo_site}/refresh").text
    assert "You are not signed in" in http.get(f"{demo_site}/sign-out").text
    assert "Sign in" in http.get("/account").text


def example(language: str, server: Server, site: Site) -> str:
    """Returns the documented example with the values of this server and site."""
    text = (ROOT / "docs/connect_site.rst").read_text()
    text = text[text.index("The profile ``strict``") :]
    found = re.search(rf"\.\. code-block:: {language}\n\n((?:    .*\n|\n)+)", text)
    assert found
    lines = [line.removeprefix("    ") for line in found[1].splitlines()]
    code = "\n".join(lines).replace("https://sso.example.com", server.base_url)
    return code.replace("https://shop.example.com/callback", site.redirect_uri).replace("5nJ…", site.secret or "")


@pytest.fixture(scope="module")
def site(server: Server) -> Site:
    return new_site(server, redirect_uri="https://shop.example.com/callback")


def test_python_example_works(server: Server, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "requests", httpx)  # both have the same call
    names: dict[str, Any] = {"code": new_browser(server).sign_in().code(site)}
    exec(example("python", server, site), names)
    assert site.claims(names["tokens"]["id_token"])


@pytest.mark.skipif(not shutil.which("node"), reason="Node is not installed: apt-get install nodejs")
def test_node_example_works(server: Server, site: Site) -> None:
    code = new_browser(server).sign_in().code(site)
    variables = f"const [redirectUri, secret, code] = {json.dumps([site.redirect_uri, site.secret, code])};\n"
    script = (
        f"(async () => {{ {variables}{example('javascript', server, site)}\nconsole.log(JSON.stringify(tokens)); }})()"
    )
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True, timeout=60)
    assert site.claims(json.loads(done.stdout)["id_token"])


@pytest.mark.skipif(not shutil.which("php"), reason="PHP is not installed: apt-get install php-cli php-curl")
def test_php_example_works(server: Server, site: Site) -> None:
    code = new_browser(server).sign_in().code(site)
    variables = f"[$redirect_uri, $secret, $code] = {json.dumps([site.redirect_uri, site.secret, code])};\n"
    script = variables + example("php", server, site) + "\necho $tokens['id_token'];"
    done = subprocess.run(["php", "-r", script], capture_output=True, text=True, check=True, timeout=60)
    assert site.claims(done.stdout)
