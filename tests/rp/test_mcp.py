"""A client of the Model Context Protocol, with its unmodified SDK, signs in from the address of a server alone."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.kit import postgres
from tests.kit.browser import user_id_of
from tests.kit.document_host import DocumentHost, document_host
from tests.kit.node_modules import NODE_MODULES
from tests.kit.oauth import Browser, close_all, new_browser
from tests.kit.registration_of_clients import RegistrationService, registration_service
from tests.kit.tls_proxy import make_certificate

pytestmark = pytest.mark.skipif(
    not (NODE_MODULES / "@modelcontextprotocol").is_dir() or not shutil.which("node"),
    reason="@modelcontextprotocol/sdk: run scripts/rp",
)
SECRET = "the secret of the resource server"
CALLBACK = "http://127.0.0.1:9/callback"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("certificate") / "host.pem")


@pytest.fixture(scope="module")
def service(
    postgres_server: postgres.Postgres, certificate: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RegistrationService]:
    settings = {"SSO_BACKCHANNEL_CA_FILE": str(certificate)}
    with registration_service(postgres_server, tmp_path_factory.mktemp("mcp"), **settings) as service:
        yield service
        close_all()


@pytest.fixture
def host(certificate: Path) -> Iterator[DocumentHost]:
    with document_host(certificate) as host:
        yield host


@pytest.mark.parametrize("way", ["registration", "document"])
def test_sdk_connects_from_the_address_of_a_server(
    service: RegistrationService, host: DocumentHost, tmp_path: Path, way: str
) -> None:
    browser = new_browser(service.server).sign_in()
    metadata_url = host.url("/agent.json") if way == "document" else None
    host.put(
        "/agent.json",
        {"client_id": metadata_url, "client_name": "Agent of a vendor", "redirect_uris": [CALLBACK]},
    )
    script = tmp_path / "mcp.mjs"
    script.write_text((Path(__file__).parent / "mcp.mjs").read_text())
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    settings = {
        "issuer": service.server.base_url,
        "resource_client": f"mcp-{way}",
        "resource_secret": SECRET,
        "metadata_url": metadata_url,
    }
    with subprocess.Popen(
        ["node", str(script), json.dumps(settings)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        add_resource_server(service, f"mcp-{way}", process.stdout.readline().strip())
        process.stdin.write("registered\n")
        process.stdin.flush()
        redirect = authorize(service, browser, process.stdout.readline().strip())
        process.stdin.write(f"{redirect}\n")
        process.stdin.close()
        output = json.loads(process.stdout.read())
        assert process.wait(60) == 0
    assert output["caller"] == {"sub": user_id_of(service.server, browser.login), "client_id": output["client_id"]}
    assert output["client_id"] == metadata_url or (way == "registration" and output["client_id"].startswith("r-"))


def add_resource_server(service: RegistrationService, client_id: str, address: str) -> None:
    fields = {"profile": "oidc", "resource_server": True, "application_id": 1, "redirect_uris": [address]}
    service.server.apply({"clients": [{"client_id": client_id, "client_secret": SECRET, **fields}]})


def authorize(service: RegistrationService, browser: Browser, url: str) -> str:
    """Opens the page, which waits for an administrator at first, and allows the client. Returns the redirect URL."""
    [client_id] = parse_qs(urlsplit(url).query)["client_id"]
    page = browser.http.get(url)
    assert page.status_code == 400, page.text
    assert "not approved yet" in page.text
    service.approve(client_id)
    page = browser.http.get(url)
    assert page.status_code == 200, page.text
    assert "third-party" in page.text
    answer = browser.submit(page, {"decision": "allow"}, form=0)
    assert answer.status_code == 303, answer.text
    location: str = answer.headers["Location"]
    return location
