"""The nginx configuration of docs/operations.rst works."""

import datetime
import os
import re
import shutil
import socket
import ssl
import subprocess
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.kit.browser import new_user, query
from tests.kit.builders import PASSWORD
from tests.kit.game import BASE, rsa_key
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, until

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
PAGE = (Path(__file__).parents[2] / "docs" / "operations.rst").read_text()
HOST = "sso.example.com"

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")


class Proxy:
    def __init__(self, server: Server, port: int) -> None:
        self.server = server
        self.port = port

    def client(self, address: str = "127.0.0.1") -> httpx.Client:
        transport = httpx.HTTPTransport(local_address=address, verify=False)
        return httpx.Client(base_url=f"https://127.0.0.1:{self.port}", transport=transport, headers={"Host": HOST})

    def send(self, request: str, address: str = "127.0.0.1") -> bytes:
        """Sends a raw request and returns the first bytes of the response."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with (
            socket.create_connection(("127.0.0.1", self.port), timeout=20, source_address=(address, 0)) as plain,
            context.wrap_socket(plain, server_hostname=HOST) as connection,
        ):
            connection.sendall(request.encode())
            return connection.recv(65536)


def certificate(folder: Path) -> tuple[Path, Path]:
    key, name = rsa_key(), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    paths = folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return paths


def documented() -> str:
    found = re.search(r"code-block:: nginx\n\n((?:    .*\n|\n)+)", PAGE)
    assert found
    return textwrap.dedent(found[1])


def configuration(folder: Path, server: Server, port: int) -> Path:
    """Writes the documented configuration with the ports and files of this test."""
    pem, key = certificate(folder)
    site = documented()
    for shown, real in (
        ("server 127.0.0.1:8000;", f"server {server.settings['SSO_BIND']};"),
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        ("/etc/ssl/sso.example.com.pem", str(pem)),
        ("/etc/ssl/private/sso.example.com.key", str(key)),
    ):
        assert shown in site
        site = site.replace(shown, real)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{kind}_temp_path {folder / kind};\n" for kind in kinds)
    account = "user root;\n" if os.geteuid() == 0 else ""
    main = f"{account}daemon off;\npid {folder / 'pid'};\nerror_log stderr;\nevents {{}}\n"
    path = folder / "nginx.conf"
    path.write_text(f"{main}http {{\naccess_log off;\n{places}{site}}}\n")
    return path


@contextmanager
def nginx(folder: Path, server: Server) -> Iterator[Proxy]:
    assert NGINX
    port = free_port()
    with (folder / "nginx.log").open("w") as log:
        command = [NGINX, "-p", str(folder), "-e", "stderr", "-c", str(configuration(folder, server, port))]
        process = subprocess.Popen(command, stderr=log)
        try:
            proxy = Proxy(server, port)
            assert until(lambda: answers(proxy) or process.poll() is not None), "nginx did not start"
            assert process.poll() is None, (folder / "nginx.log").read_text()
            yield proxy
        finally:
            process.terminate()
            process.wait(20)


def answers(proxy: Proxy) -> bool:
    try:
        with proxy.client() as client:
            return client.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False


@contextmanager
def site(postgres_server: Postgres, folder: Path, **settings: str) -> Iterator[Proxy]:
    """Runs the service with its public address, behind nginx."""
    bind = f"127.0.0.1:{free_port()}"
    settings |= {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_LOG_FORMAT": "json", "SSO_BIND": bind}
    server = Server(folder, QUICK | settings | {"SSO_BASE_URL": f"https://{HOST}", "SSO_INFO_ALLOW": "127.0.0.1/32"})
    server.start()
    server.settings["SSO_BIND"] = bind
    try:
        with nginx(folder, server) as proxy:
            yield proxy
    finally:
        server.stop()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module", params=["builtin", "hypercorn"])
def proxy(
    request: pytest.FixtureRequest, postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("nginx")
    with site(postgres_server, folder, SSO_HTTP=request.param, SSO_TRUSTED_PROXIES="127.0.0.1") as proxy:
        yield proxy


def register(client: httpx.Client, **headers: str) -> str:
    answer = client.post(f"{BASE}/getGsid", json={}, headers=headers)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["gsid"])


def address_of(proxy: Proxy, gsid: str) -> str:
    (row,) = query(proxy.server, "SELECT address FROM game_sessions WHERE gsid = $1", gsid)
    return str(row["address"])


def test_client_address_is_known_behind_the_proxy_and_cannot_be_forged(proxy: Proxy) -> None:
    with proxy.client("127.0.0.9") as client:
        assert address_of(proxy, register(client)) == "127.0.0.9"
        forged = {"X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1", "X-Real-IP": "127.0.0.1"}
        gsid = register(client, **forged)
        assert address_of(proxy, gsid) == "127.0.0.9"
        assert client.post(f"{BASE}/info", json={"gsid": gsid}, headers=forged).status_code == 403
    assert proxy.server.log_events("proxy.forwarding_header_ignored") == []


def test_user_signs_in_behind_the_proxy(proxy: Proxy) -> None:
    login = new_user(proxy.server)
    with proxy.client() as client:
        page = client.get("/login")
        token = re.search(r'name="csrf" value="([^"]+)"', page.text)
        assert token
        cookies = {"Cookie": page.headers["Set-Cookie"].partition(";")[0], "Origin": f"https://{HOST}"}
        form = {"csrf": token[1], "login": login, "password": PASSWORD}
        entered = client.post("/login", data=form, headers=cookies)
        assert (entered.status_code, entered.headers["Location"]) == (303, "/account")


def test_websocket_opens_behind_the_proxy(proxy: Proxy) -> None:
    with proxy.client() as client:
        gsid = register(client)
    key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    upgrade = f"Connection: Upgrade\r\nUpgrade: websocket\r\n{key}"
    path = f"/ws/gameSession/refresh/{gsid}"
    assert proxy.send(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n{upgrade}\r\n").startswith(b"HTTP/1.1 101 ")


@pytest.mark.parametrize("path", ["/login", "/ws/gameSession/refresh/x"])
def test_client_gets_no_tunnel_through_the_proxy(proxy: Proxy, path: str) -> None:
    upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
    answer = proxy.send(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n{upgrade}\r\n")
    assert answer.startswith(b"HTTP/1.1 ")
    assert not answer.startswith(b"HTTP/1.1 101")


def test_other_paths_and_hosts_are_refused_behind_the_proxy(proxy: Proxy) -> None:
    with proxy.client() as client:
        assert client.get("/login", headers={"Host": "evil.example"}).status_code == 400
    for path in ("//login", "/%2flogin", "/%6cogin"):
        answer = proxy.send(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 404"), path


def test_forgotten_trusted_proxies_setting_does_not_open_info(postgres_server: Postgres, tmp_path: Path) -> None:
    with site(postgres_server, tmp_path) as proxy, proxy.client("127.0.0.9") as client:
        gsid = register(client)
        assert address_of(proxy, gsid) == "127.0.0.1"
        assert client.post(f"{BASE}/info", json={"gsid": gsid}).status_code == 403
        (event,) = until(lambda: proxy.server.log_events("proxy.forwarding_header_ignored"))
        assert event["peer"] == "127.0.0.1"
        assert "SSO_TRUSTED_PROXIES" in event["advice"]
