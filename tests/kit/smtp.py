"""A mail server that accepts every mail: in plain text, with STARTTLS, or with TLS from the first byte."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Certificate(NamedTuple):
    ca_file: Path  # the CA, or for a self-signed certificate the certificate itself
    chain_file: Path  # certificate and private key


def make_certificate(folder: Path, host: str = "localhost") -> Certificate:
    """Creates a CA and a certificate for ``host``."""
    folder.mkdir(parents=True, exist_ok=True)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test CA")])
    ca = (
        _builder(ca_name, ca_name, ca_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .add_extension(_signs_certificates(), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    certificate = (
        _builder(name, ca_name, key)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    ca_file, chain_file = folder / "ca.pem", folder / "chain.pem"
    ca_file.write_bytes(ca.public_bytes(pem))
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    chain_file.write_bytes(certificate.public_bytes(pem) + private)
    return Certificate(ca_file, chain_file)


def _signs_certificates() -> x509.KeyUsage:
    """Newer Pythons require this of a CA."""
    return x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - timedelta(days=1),
        not_valid_after=now + timedelta(days=1),
    )


class MailServer:
    def __init__(self, scheme: str, certificate: Certificate | None) -> None:
        self.mails: list[str] = []
        self.passwords: list[str] = []  # credentials that clients sent
        self.goodbye = b"221 bye\r\n"
        self.accepts = threading.Event()  # a mail is accepted when this is set
        self.accepts.set()
        self._scheme = scheme
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        if certificate:
            self._context.load_cert_chain(certificate.chain_file)
        self._listener = socket.create_server(("localhost", 0))
        self.port = self._listener.getsockname()[1]

    def run(self) -> None:
        with suppress(OSError):  # closed
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve_connection, args=(connection,), daemon=True).start()

    def close(self) -> None:
        self.accepts.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve_connection(self, connection: socket.socket) -> None:
        with ExitStack() as stack, suppress(OSError, EOFError):
            stack.callback(connection.close)
            if self._scheme == "smtps":
                connection = stack.enter_context(self._context.wrap_socket(connection, server_side=True))
            self._dialogue(connection, stack)

    def _dialogue(self, connection: socket.socket, stack: ExitStack) -> None:
        connection.sendall(b"220 ready\r\n")
        while True:
            verb, _, rest = _line(connection).partition(" ")
            match verb.upper():
                case "EHLO":
                    offers = b"250-STARTTLS\r\n" if self._scheme == "smtp+starttls" else b""
                    connection.sendall(b"250-localhost\r\n" + offers + b"250-AUTH PLAIN\r\n250 SMTPUTF8\r\n")
                case "STARTTLS":
                    connection.sendall(b"220 go ahead\r\n")
                    connection = stack.enter_context(self._context.wrap_socket(connection, server_side=True))
                case "AUTH":
                    self.passwords.append(rest)
                    connection.sendall(b"235 welcome\r\n")
                case "DATA":
                    connection.sendall(b"354 go on\r\n")
                    self.mails.append(_until_dot(connection))
                    self.accepts.wait()
                    connection.sendall(b"250 taken\r\n")
                case "QUIT":
                    connection.sendall(self.goodbye)
                    return
                case _:
                    connection.sendall(b"250 fine\r\n")


def _line(connection: socket.socket) -> str:
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte:
            raise EOFError
        line += byte
    return line.decode().rstrip("\r\n")


def _until_dot(connection: socket.socket) -> str:
    lines: list[str] = []
    while (line := _line(connection)) != ".":
        lines.append(line)
    return "\n".join(lines)


@contextmanager
def mail_server(scheme: str, certificate: Certificate | None = None) -> Iterator[MailServer]:
    server = MailServer(scheme, certificate)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join(5)
