"""Real reverse proxies before a real server, configured by the samples of ``deploy/``."""

import datetime
import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.kit.ports import free_port
from tests.kit.postgres import Postgres
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import QUICK, Server, until

DEPLOY = Path(__file__).parents[2] / "deploy"
HOST = "sso.example.com"
SEARCH_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"


class NamedHost(httpx.HTTPTransport):
    """Names the public host in the TLS handshake, as a client does that has resolved it."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.extensions["sni_hostname"] = HOST
        return super().handle_request(request)


class Proxy:
    def __init__(self, server: Server, port: int) -> None:
        self.server = server
        self.port = port

    def client(self, address: str = "127.0.0.1") -> httpx.Client:
        """An HTTP client whose connections come from this address."""
        transport = NamedHost(local_address=address, verify=False)
        return httpx.Client(
            base_url=f"https://127.0.0.1:{self.port}",
            transport=transport,
            headers={"Host": HOST},
            timeout=40,
        )

    @contextmanager
    def connection(self) -> Iterator[ssl.SSLSocket]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with (
            socket.create_connection(("127.0.0.1", self.port), timeout=60) as plain,
            context.wrap_socket(plain, server_hostname=HOST) as connection,
        ):
            yield connection

    def send(self, request: str) -> bytes:
        """Sends the text on a connection of its own. Returns the first bytes of the response."""
        with self.connection() as connection:
            connection.sendall(request.encode())
            return connection.recv(65536)


def certificate(folder: Path) -> tuple[Path, Path]:
    """The paths of a new certificate and its key."""
    key, name = rsa_key(), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(signed.public_bytes(Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return paths


def adapted(sample: str, replacements: dict[str, str]) -> str:
    """A sample configuration with the ports and files of a test. Each replaced text must occur in it."""
    text = (DEPLOY / sample).read_text()
    for shown, used in replacements.items():
        assert shown in text, f"{sample} does not contain {shown!r}"
        text = text.replace(shown, used)
    return text


def nginx_command(program: str, folder: Path, upstream: str, port: int) -> list[str]:
    pem, key = certificate(folder)
    site = adapted(
        "nginx/sso.conf",
        {
            "server 127.0.0.1:8000;": f"server {upstream};",
            "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
            "listen 80;": f"listen 127.0.0.1:{free_port()};",
            "/etc/ssl/sso.example.com.pem": str(pem),
            "/etc/ssl/private/sso.example.com.key": str(key),
        },
    )
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "".join(f"{kind}_temp_path {folder / kind};\n" for kind in kinds)
    account = "user root;\n" if os.geteuid() == 0 else ""
    main = f"{account}daemon off;\npid {folder / 'pid'};\nerror_log stderr;\nevents {{}}\n"
    path = folder / "nginx.conf"
    path.write_text(f"{main}http {{\naccess_log off;\n{folders}{site}}}\n")
    return [program, "-p", str(folder), "-e", "stderr", "-c", str(path)]


def haproxy_command(program: str, folder: Path, upstream: str, port: int) -> list[str]:
    pem, key = certificate(folder)
    both = folder / "both.pem"
    both.write_bytes(pem.read_bytes() + key.read_bytes())
    path = folder / "haproxy.cfg"
    path.write_text(
        adapted(
            "haproxy/haproxy.cfg",
            {
                "bind :443": f"bind 127.0.0.1:{port}",
                "/etc/haproxy/sso.example.com.pem": str(both),
                "127.0.0.1:8000": upstream,
                "maxconn 20000": "maxconn 200",
            },
        )
    )
    return [program, "-db", "-f", str(path)]


def caddy_command(program: str, folder: Path, upstream: str, port: int) -> list[str]:
    pem, key = certificate(folder)
    # Not an address of the network: no certificate is asked for, no port but ours is opened.
    options = "{\n\tadmin off\n\tauto_https off\n\tdefault_bind 127.0.0.1\n}\n"
    path = folder / "Caddyfile"
    path.write_text(
        options
        + adapted(
            "caddy/Caddyfile",
            {
                "sso.example.com {": f"https://sso.example.com:{port} {{\n\ttls {pem} {key}",
                "127.0.0.1:8000": upstream,
            },
        )
    )
    return [program, "run", "--config", str(path), "--adapter", "caddyfile"]


COMMANDS: dict[str, Callable[[str, Path, str, int], list[str]]] = {
    "nginx": nginx_command,
    "haproxy": haproxy_command,
    "caddy": caddy_command,
}


def installed(program: str) -> str | None:
    return shutil.which(program, path=SEARCH_PATH)


@contextmanager
def proxied(program: str, postgres_server: Postgres, folder: Path, **settings: str) -> Iterator[Proxy]:
    """The service with its public address, and the proxy before it."""
    upstream = f"127.0.0.1:{free_port()}"
    settings |= {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_LOG_FORMAT": "json", "SSO_BIND": upstream}
    server = Server(folder, QUICK | settings | {"SSO_BASE_URL": f"https://{HOST}", "SSO_INFO_ALLOW": "127.0.0.1/32"})
    server.start()
    server.settings["SSO_BIND"] = upstream
    try:
        with running_proxy(program, folder, server) as proxy:
            yield proxy
    finally:
        server.stop()


@contextmanager
def running_proxy(program: str, folder: Path, server: Server) -> Iterator[Proxy]:
    path = installed(program)
    assert path
    port = free_port()
    proxy = Proxy(server, port)
    environment = os.environ | {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "HOME": str(folder)}
    log_path = folder / f"{program}.log"
    with log_path.open("w") as log:
        command = COMMANDS[program](path, folder, server.settings["SSO_BIND"], port)
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            assert until(lambda: answers(proxy) or process.poll() is not None), log_path.read_text()
            assert process.poll() is None, log_path.read_text()
            yield proxy
        finally:
            process.terminate()
            process.wait(60)


def answers(proxy: Proxy) -> bool:
    try:
        with proxy.client() as client:
            return client.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False
