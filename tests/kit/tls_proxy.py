"""A server that negotiates TLS as PostgreSQL does, for tests with a PostgreSQL that was built without TLS."""

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import trio
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

SSL_REQUEST = bytes.fromhex("0000000804d2162f")


async def serve_tls(certificate: Path, target: str, *, task_status: trio.TaskStatus[int]) -> None:
    """Forwards decrypted connections to a Unix socket. ``started`` gets the port on 127.0.0.1."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    task_status.started(listener.socket.getsockname()[1])
    await trio.serve_listeners(partial(_handle, context, target), [listener])


async def _handle(context: ssl.SSLContext, target: str, stream: trio.SocketStream) -> None:
    request = b""
    while len(request) < len(SSL_REQUEST):
        data = await stream.receive_some(len(SSL_REQUEST) - len(request))
        if not data:
            return
        request += data
    assert request == SSL_REQUEST
    await stream.send_all(b"S")
    encrypted = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
    try:
        await encrypted.do_handshake()
        async with encrypted, await trio.open_unix_socket(target) as plain, trio.open_nursery() as nursery:
            nursery.start_soon(_forward, encrypted, plain, nursery.cancel_scope)
            nursery.start_soon(_forward, plain, encrypted, nursery.cancel_scope)
    except* (trio.BrokenResourceError, trio.ClosedResourceError):
        await trio.aclose_forcefully(stream)


async def _forward(source: trio.abc.Stream, target: trio.abc.Stream, scope: trio.CancelScope) -> None:
    while data := await source.receive_some():
        await target.send_all(data)
    scope.cancel()


def make_certificate(path: Path) -> Path:
    """Creates a self-signed certificate for 127.0.0.1 and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, path.stem)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(text + certificate.public_bytes(Encoding.PEM))
    return path
