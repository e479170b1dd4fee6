"""Mail: delivery over verified TLS, and mails that cannot be delivered."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from sso.bus.wiring import build_bus
from sso.core.brand import Brand
from sso.core.encryption import Keyring
from sso.core.language import Text
from sso.db.database import Database
from sso.db.statement import Statement
from sso.log import current_request_id
from sso.mail.content import MailContent
from sso.mail.outbox import MAX_TRIES, MailSender, Outbox
from sso.mail.smtp import Delivery
from tests.kit.smtp import Certificate, MailServer, mail_server, make_certificate

SENDER = "sso@example.com"
CONTENT = MailContent(Text("Your code"), (Text("It is"),), code="123456")
TLS = ["smtps", "smtp+starttls"]
_COUNT = Statement("SELECT count(*) FROM outbox")
_DUE = Statement("UPDATE outbox SET next_try = now()")
_POISON = Statement(
    "UPDATE outbox SET recipient = :recipient, subject = :subject, body_sealed = coalesce(:body, body_sealed)"
)
_SET_TRIES = Statement("UPDATE outbox SET tries = :tries")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def plain() -> Iterator[MailServer]:
    with mail_server("smtp") as server:
        yield server


def mail_sender(
    database: Database, keyring: Keyring, url: str | None, folder: Path, ca: Path | None = None
) -> MailSender:
    return MailSender(database, keyring, SENDER, Delivery(url, folder, ca))


async def put(database: Database, keyring: Keyring, recipient: str = "ann@example.com") -> None:
    await database.transaction(
        lambda tx: Outbox(keyring, build_bus(database), Brand()).put(tx, recipient, CONTENT, "en")
    )


async def deliver(mail_sender: MailSender) -> list[Any]:
    """Delivers the mails that are due and returns the log entries."""
    with capture_logs() as logs:
        while await mail_sender._deliver_one():
            pass
    return logs


@pytest.mark.parametrize("scheme", TLS)
async def test_smtp_server_with_certificate_of_unknown_ca_is_rejected(
    database: Database, keyring: Keyring, tmp_path: Path, certificate: Certificate, scheme: str
) -> None:
    with mail_server(scheme, certificate) as server:
        url = f"{scheme}://user:hunter2@localhost:{server.port}"
        await put(database, keyring)
        (failure,) = await deliver(mail_sender(database, keyring, url, tmp_path))
        assert failure["event"] == "mail.delivery_failed"
        assert failure["reason"].startswith("SSLCertVerificationError: ")
        assert (server.mails, server.passwords) == ([], [])
    assert await database.value(_COUNT) == 1  # it is retried later


@pytest.mark.parametrize("scheme", TLS)
async def test_smtp_server_with_certificate_of_the_ca_file_is_accepted(
    database: Database, keyring: Keyring, tmp_path: Path, certificate: Certificate, scheme: str
) -> None:
    with mail_server(scheme, certificate) as server:
        url = f"{scheme}://user:hunter2@localhost:{server.port}"
        await put(database, keyring)
        logs = await deliver(mail_sender(database, keyring, url, tmp_path, certificate.ca_file))
        assert [entry["event"] for entry in logs] == ["mail.delivered"]
        (mail,) = server.mails
        assert "To: ann@example.com" in mail
        assert "It is 123456\n" in mail.replace("\r\n", "\n")
        assert len(server.passwords) == 1
    assert await database.value(_COUNT) == 0


@pytest.mark.parametrize("scheme", TLS)
async def test_smtp_server_with_certificate_for_another_host_is_rejected(
    database: Database, keyring: Keyring, tmp_path: Path, scheme: str
) -> None:
    other = make_certificate(tmp_path / "other", "mail.example.com")
    with mail_server(scheme, other) as server:
        await put(database, keyring)
        url = f"{scheme}://localhost:{server.port}"
        (failure,) = await deliver(mail_sender(database, keyring, url, tmp_path, other.ca_file))
        assert "Hostname mismatch" in failure["reason"]
        assert server.mails == []


async def test_smtp_server_without_starttls_is_not_used_in_plain_text(
    database: Database, keyring: Keyring, tmp_path: Path, plain: MailServer
) -> None:
    await put(database, keyring)
    url = f"smtp+starttls://user:hunter2@localhost:{plain.port}"
    (failure,) = await deliver(mail_sender(database, keyring, url, tmp_path))
    assert failure["reason"] == "SMTPNotSupportedError"
    assert (plain.mails, plain.passwords) == ([], [])


POISONED: list[dict[str, str | None]] = [
    {"recipient": "grp:;@example.com"},
    {"recipient": "a@[1.2.3.4"},
    {"recipient": "a@example.com\nBcc: b@example.com"},
    {"recipient": "nobody"},
    {"recipient": "\N{PILE OF POO}"},
    {"subject": "two\nlines"},
    {"body": "v1.0.0"},
    {"body": "nonsense"},
    {"body": ""},
]


@pytest.mark.parametrize("part", POISONED, ids=str)
async def test_invalid_mail_is_abandoned_and_the_next_one_is_sent(
    database: Database, keyring: Keyring, tmp_path: Path, plain: MailServer, part: dict[str, str | None]
) -> None:
    sender = mail_sender(database, keyring, f"smtp://localhost:{plain.port}", tmp_path)
    await put(database, keyring)
    await database.value(_POISON, **({"recipient": "ann@example.com", "subject": "x", "body": None} | part))
    await put(database, keyring, "bob@example.com")
    logs = await deliver(sender)
    assert [entry["event"] for entry in logs] == ["mail.delivery_failed", "mail.delivered"]
    (mail,) = plain.mails
    assert "To: bob@example.com" in mail
    for _ in range(MAX_TRIES - 1):
        await database.value(_DUE)
        logs = await deliver(sender)
    assert [entry["event"] for entry in logs] == ["mail.delivery_failed", "mail.delivery_abandoned"]
    assert await database.value(_COUNT) == 0
    assert "123456" not in str(logs)


@pytest.mark.parametrize("tries", [MAX_TRIES, 2**31 - 1])
async def test_mail_whose_attempts_were_interrupted_is_abandoned(
    database: Database, keyring: Keyring, tmp_path: Path, plain: MailServer, tries: int
) -> None:
    await put(database, keyring)
    await database.value(_SET_TRIES, tries=tries)
    (logged,) = await deliver(mail_sender(database, keyring, f"smtp://localhost:{plain.port}", tmp_path))
    assert logged["event"] == "mail.delivery_abandoned"
    assert plain.mails == []
    assert await database.value(_COUNT) == 0


async def test_mail_of_a_cancelled_worker_is_not_abandoned(
    database: Database, keyring: Keyring, tmp_path: Path, certificate: Certificate
) -> None:
    await put(database, keyring)
    with trio.CancelScope() as scope:
        scope.cancel()
        await mail_sender(database, keyring, None, tmp_path)._deliver_one()
    assert await database.value(_COUNT) == 1


async def test_mail_to_an_international_address_is_sent(
    database: Database, keyring: Keyring, tmp_path: Path, plain: MailServer
) -> None:
    await put(database, keyring, "ünï@exämple.de")
    await deliver(mail_sender(database, keyring, f"smtp://localhost:{plain.port}", tmp_path))
    assert "To: ünï@xn--exmple-cua.de" in plain.mails[0]


async def test_log_lines_of_a_mail_have_the_request_that_queued_it(
    database: Database, keyring: Keyring, tmp_path: Path, plain: MailServer
) -> None:
    sender = mail_sender(database, keyring, f"smtp://localhost:{plain.port}", tmp_path)
    token = current_request_id.set("0123456789abcdef")
    await put(database, keyring)
    current_request_id.reset(token)
    await put(database, keyring)  # by a command, for example
    await database.value(_SET_TRIES, tries=MAX_TRIES)
    abandoned = await deliver(sender)
    assert sorted(str(entry.get("request")) for entry in abandoned) == ["0123456789abcdef", "None"]


async def test_mail_of_the_previous_release_is_sent(
    database: Database, keyring: Keyring, tmp_path: Path, plain: MailServer
) -> None:
    """It inserts rows without the columns for the log."""
    await put(database, keyring)
    await database.value(Statement("UPDATE outbox SET request_id = NULL, trace_id = NULL"))
    (delivered,) = await deliver(mail_sender(database, keyring, f"smtp://localhost:{plain.port}", tmp_path))
    assert (delivered["event"], "request" in delivered, "trace" in delivered) == ("mail.delivered", False, False)
