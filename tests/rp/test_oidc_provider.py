"""Sign-in with an unmodified third-party OpenID provider, oidc-provider, which ``scripts/rp`` installs."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.kit.browser import Forms
from tests.kit.node_modules import NODE_MODULES
from tests.kit.oauth import Browser, close_all, new_site, query_of
from tests.kit.server import Server
from tests.upstream.player import follow, is_signed_in, link, player, sign_out, to_provider

SECRET = "the secret of this service at the provider"
pytestmark = pytest.mark.skipif(
    not (NODE_MODULES / "oidc-provider").is_dir() or not shutil.which("node"), reason="oidc-provider: run scripts/rp"
)


@pytest.fixture(scope="module", autouse=True)
def _closed_afterwards() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture(scope="module")
def issuer(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The issuer of the provider, which is registered as ``node``."""
    folder = tmp_path_factory.mktemp("oidc-provider")
    script = folder / "provider.mjs"
    script.write_text((Path(__file__).parent / "oidc_provider.mjs").read_text())
    (folder / "node_modules").symlink_to(NODE_MODULES)
    client = {
        "client_id": "sso",
        "client_secret": SECRET,
        "redirect_uris": [f"{server.base_url}/login/upstream/node/callback"],
    }
    with subprocess.Popen(
        ["node", str(script), json.dumps(client)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            issuer = process.stdout.readline().strip()
            options = ("--kind", "oidc", "--name", "Node", "--issuer", issuer, "--client-id", "sso")
            server.sso("idp", "add", "node", *options, "--client-secret-stdin", stdin=f"{SECRET}\n")
            yield issuer
        finally:
            process.terminate()
            server.sso("idp", "delete", "node", "--yes")


def answer_of(browser: Browser, url: str, name: str) -> tuple[str, list[str]]:
    """Answers the questions of the provider. Returns the address of the callback, and what was asked."""
    asked: list[str] = []
    for _ in range(20):
        answer = browser.http.get(url)
        if answer.status_code == 200:
            answer = submit(browser, answer, name, asked)
        url = str(httpx.URL(url).join(answer.headers["Location"]))
        if url.startswith(browser.server.base_url):
            return url, asked
    raise AssertionError(f"the provider does not come to an end: {url}")


def submit(browser: Browser, page: httpx.Response, name: str, asked: list[str]) -> httpx.Response:
    [(action, [form])] = Forms(page.text).by_action.items()
    asked.append(form["prompt"])
    answer = browser.http.post(action, data=form | ({"login": name, "password": "any"} if "login" in form else {}))
    assert answer.status_code in (302, 303), answer.text
    return answer


def sign_in_at_provider(browser: Browser, name: str, next_path: str = "") -> tuple[httpx.Response, list[str]]:
    callback, asked = answer_of(browser, to_provider(browser, "node", next_path), name)
    return follow(browser, browser.http.get(callback)), asked


def test_oidc_provider_signs_in(server: Server, issuer: str) -> None:
    browser = player(server)
    page, asked = sign_in_at_provider(browser, "gordon")
    assert asked == ["login", "consent"]
    assert "No account yet" in page.text
    assert "gordon" in page.text
    link(browser, "node")
    browser.http.cookies.delete("sso_session", domain="127.0.0.1")
    assert not is_signed_in(browser)
    page, asked = sign_in_at_provider(browser, "gordon")
    assert asked == []  # the provider remembers the person
    assert browser.login in page.text
    assert is_signed_in(browser)


def test_site_that_wants_a_new_login_makes_the_provider_ask(server: Server, issuer: str) -> None:
    browser, site = player(server), new_site(server, profile="oidc")
    sign_in_at_provider(browser, "alyx")
    link(browser, "node")
    browser.http.cookies.delete("sso_session", domain="127.0.0.1")
    flow = Forms(browser.authorize(site, prompt="login").text).by_action["/login"][0]["next"]
    answer, asked = sign_in_at_provider(browser, "alyx", flow)
    assert "login" in asked
    assert query_of(answer)["code"]
    sign_out(browser)
