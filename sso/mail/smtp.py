"""Delivers mail by SMTP or, if no server is configured, as files in a directory."""

import os
import smtplib
import ssl
from contextlib import closing, suppress
from email import policy
from email.headerregistry import Address
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sso.core.ids import record_id
from sso.core.logo import Logo
from sso.core.mail_address import ascii_domain, check_mail_address
from sso.mail.content import LOGO_CID

SMTP_TIMEOUT_S = 20  # to connect, sign in and quit
COMMAND_TIMEOUT_S = 120  # a server may ask others about the sender and the recipient
# RFC 5321 4.5.3.2.6: a server may answer late that it has the mail, and a client that gives up sends it twice.
ACCEPT_TIMEOUT_S = 600
MAIL_FOLDER = "mail"  # in the data directory


def build_message(
    sender: str, recipient: str, subject: str, text: str, html: str | None = None, logo: Logo | None = None
) -> EmailMessage:
    """``logo`` becomes a part of the message if the HTML shows it.

    Raises ValueError if the recipient is not a mail address. Its domain is written in ASCII form.
    """
    local, _, domain = check_mail_address(recipient).rpartition("@")
    address = Address(username=local, domain=ascii_domain(domain))
    message = EmailMessage(policy.default.clone(utf8=not local.isascii()))
    message["From"], message["To"], message["Subject"] = sender, address, subject
    message["Message-ID"] = f"<{record_id()}{record_id()}@{sender.rpartition('@')[2].rstrip('>')}>"
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: mail programs then send no notice of absence
    message.set_content(text)
    if html:
        message.add_alternative(html, subtype="html")
        if logo and f"cid:{LOGO_CID}" in html:
            _embed(message, logo)
    return message


def _embed(message: EmailMessage, logo: Logo) -> None:
    *_, html = message.iter_parts()
    assert isinstance(html, EmailMessage)
    html.add_related(logo.content, "image", logo.kind, cid=f"<{LOGO_CID}>", disposition="inline")


class _SmtpClient(smtplib.SMTP):
    """Waits longest for the reply to a message: without an earlier reply, the server does not have the mail."""

    def send(self, s: Any) -> None:
        if isinstance(s, bytes):  # the message; commands are strings
            _set_timeout(self, ACCEPT_TIMEOUT_S)
        super().send(s)


class _SmtpsClient(_SmtpClient, smtplib.SMTP_SSL):
    """Uses TLS from the first byte."""


class Delivery:
    """Blocking; call it in a thread. The server's certificate is verified with the CA file or else the system's."""

    def __init__(self, smtp_url: str | None, folder: Path, ca_file: Path | None = None) -> None:
        self._url = urlsplit(smtp_url) if smtp_url is not None else None
        self._folder = folder
        self._ca_file = ca_file
        self.has_server = smtp_url is not None

    def send(self, message: EmailMessage) -> Path | None:
        """Returns the file of a message that was written because there is no server."""
        if self._url is None:
            return self._write(message)
        with closing(self._connect()) as server:
            try:
                if self._url.scheme == "smtp+starttls":
                    server.starttls(context=self._context())
                if self._url.username:
                    server.login(unquote(self._url.username), unquote(self._url.password or ""))
                server.ehlo_or_helo_if_needed()
                _set_timeout(server, COMMAND_TIMEOUT_S)
                server.send_message(message)
            finally:
                _quit(server)
        return None

    def _connect(self) -> smtplib.SMTP:
        assert self._url is not None
        host, port = self._url.hostname or "localhost", self._url.port or 0
        if self._url.scheme == "smtps":
            return _SmtpsClient(host, port, timeout=SMTP_TIMEOUT_S, context=self._context())
        return _SmtpClient(host, port, timeout=SMTP_TIMEOUT_S)

    def _context(self) -> ssl.SSLContext:
        """Reads the CA file for each connection, so that a renewed file is used at once."""
        return ssl.create_default_context(cafile=str(self._ca_file) if self._ca_file else None)

    def _write(self, message: EmailMessage) -> Path:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{record_id()}.eml"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(message.as_bytes())
        return path


def _set_timeout(server: smtplib.SMTP, seconds: float) -> None:
    if server.sock is not None:  # connected
        server.sock.settimeout(seconds)


def _quit(server: smtplib.SMTP) -> None:
    """Whatever the server answers, it was decided before whether the mail is accepted."""
    with suppress(smtplib.SMTPException, OSError):
        _set_timeout(server, SMTP_TIMEOUT_S)
        server.quit()
