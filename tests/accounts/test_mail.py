"""Mail: delivery over verified TLS, and mails that cannot be delivered."""

import smtplib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from email import message_from_string
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from sso.bus.bus import Bus
from sso.bus.wiring import build_bus
from sso.core.brand import Brand, CurrentBrand
from sso.core.encryption import Keyring
from sso.core.language import Text
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.delivery.due_queue import DueQueue
from sso.log import current_request_id
from sso.mail import sender as sender_module
from sso.mail.content import MailContent
from sso.mail.outbox import TOPIC, Outbox
from sso.mail.sender import MAX_TRIES, build_mail_sender
from sso.mail.smtp import Delivery
from tests.kit.conditions import until_true
from tests.kit.silent_host import silent_host
from tests.kit.smtp import Certificate, MailServer, mail_server, make_certificate

SENDER = "sso@example.com"
BRAND = CurrentBrand(Brand("Iron"))
CONTENT = MailContent(Text("Your code"), (Text("It is"),), code="123456")
TLS = ["smtps", "smtp+starttls"]
_COUNT = Statement("SELECT count(*) FROM outbox")
_NEXT_TRY = Statement("SELECT next_try FROM outbox")
_COUNT_DUE = Statement("SELECT count(*) FROM outbox WHERE next_try <= now()")
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


@dataclass(frozen=True)
class QueueAndBus:
    queue: DueQueue
    bus: Bus


def mail_sender(
    database: Database, keyring: Keyring, url: str | None, folder: Path, ca: Path | None = None
) -> QueueAndBus:
    return QueueAndBus(
        build_mail_sender(database, keyring, SENDER, Delivery(url, folder, ca), BRAND), build_bus(database)
    )


async def put(database: Database, keyring: Keyring, recipient: str = "ann@example.com") -> None:
    await database.transaction(Outbox(keyring, BRAND).put, recipient, CONTENT, "en")


async def test_mail_wakes_the_senders_when_its_transaction_commits(database: Database, keyring: Keyring) -> None:
    async def fail(tx: Transaction) -> None:
        await Outbox(keyring, BRAND).put(tx, "ann@example.com", CONTENT, "en")
        raise KeyError

    published: list[str] = []
    database.publish_topic = published.append
    with pytest.raises(KeyError):
        await database.transaction(fail)
    assert published == []
    await put(database, keyring)
    assert published == [TOPIC]


async def deliver(database: Database, sender: QueueAndBus) -> list[Any]:
    """Delivers the mails that are due and returns the log entries."""
    due = await database.value(_COUNT_DUE)
    with capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            await nursery.start(sender.queue.run, sender.bus)
            await until_true(lambda: len(logs) >= due and not sender.queue.in_flight)
            nursery.cancel_scope.cancel()
    return logs


@pytest.mark.parametrize("scheme", TLS)
async def test_smtp_server_with_certificate_of_unknown_ca_is_rejected(
    database: Database, keyring: Keyring, tmp_path: Path, certificate: Certificate, scheme: str
) -> None:
    with mail_server(scheme, certificate) as server:
        url = f"{scheme}://user:hunter2@localhost:{server.port}"
        await put(database, keyring)
        (failure,) = await deliver(database, mail_sender(database, keyring, url, tmp_path))
        assert failure["event"] == "queue.delivery_failed"
        assert failure["retry_after_s"] == 30.0
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
        logs = await deliver(database, mail_sender(database, keyring, url, tmp_path, certificate.ca_file))
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
        (failure,) = await deliver(database, mail_sender(database, keyring, url, tmp_path, other.ca_file))
        assert "Hostname mismatch" in failure["reason"]
        assert server.mails == []


async def test_smtp_server_without_starttls_is_not_used_in_plain_text(
    database: Database, keyring: Keyring, tmp_path: Path, plain: MailServer
) -> None:
    await put(database, keyring)
    url = f"smtp+starttls://user:hunter2@localhost:{plain.port}"
    (failure,) = await deliver(database, mail_sender(database, keyring, url, tmp_path))
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


async def test_invalid_mail_fails_and_the_next_one_is_sent(
    database: Database, keyring: Keyring, tmp_path: Path, plain: MailServer
) -> None:
    sender = mail_sender(database, keyring, f"smtp://localhost:{plain.port}", tmp_path)
    for number, part in enumerate(POISONED):
        await put(database, keyring)
        await database.value(_POISON, **({"recipient": "ann@example.com", "subject": "x", "body": None} | part))
        await put(database, keyring, "bob@example.com")
        logs = await deliver(database, sender)
        assert [entry["event"] for entry in logs] == ["queue.delivery_failed", "mail.delivered"], part
        assert len(plain.mails) == number + 1
        assert "To: bob@example.com" in plain.mails[-1]
        if number:  # the attempts of the first one are counted
            await database.value(_SET_TRIES, tries=MAX_TRIES - 1)
        for _ in range(1 if number else MAX_TRIES - 1):
            await database.value(_DUE)
            logs = await deliver(database, sender)
        (failed,) = logs
        outcome = (failed["event"], failed["log_level"], failed["retry_after_s"])
        assert outcome == ("queue.delivery_failed", "error", None), part
        assert await database.value(_COUNT) == 0
        assert "123456" not in str(logs)


async def test_mail_whose_attempts_were_interrupted_fails(
    database: Database, keyring: Keyring, tmp_path: Path, plain: MailServer
) -> None:
    sender = mail_sender(database, keyring, f"smtp://localhost:{plain.port}", tmp_path)
    for tries in (MAX_TRIES, 2**31 - 1):
        await put(database, keyring)
        await database.value(_SET_TRIES, tries=tries)
        (logged,) = await deliver(database, sender)
        assert (logged["event"], logged["log_level"]) == ("queue.delivery_failed", "error")
        assert plain.mails == []
        assert await database.value(_COUNT) == 0


async def test_mail_of_a_cancelled_worker_is_sent_by_another_one(
    database: Database, keyring: Keyring, tmp_path: Path, plain: MailServer
) -> None:
    await put(database, keyring)
    with silent_host() as host:
        cancelled = mail_sender(database, keyring, f"smtp://127.0.0.1:{host.port}", tmp_path)
        async with trio.open_nursery() as nursery:
            await nursery.start(cancelled.queue.run, cancelled.bus)
            await until_true(lambda: cancelled.queue.in_flight > 0)
            nursery.cancel_scope.cancel()
    assert await database.value(_COUNT_DUE) == 0  # the lease lasts
    await database.value(_DUE)
    (delivered,) = await deliver(database, mail_sender(database, keyring, f"smtp://localhost:{plain.port}", tmp_path))
    assert (delivered["event"], delivered["tries"]) == ("mail.delivered", 2)


@pytest.mark.parametrize("goodbye", [b"451 busy\r\n", b"", b"what?\r\n"])
async def test_accepted_mail_is_sent_once_whatever_the_server_answers_to_quit(
    database: Database, keyring: Keyring, tmp_path: Path, plain: MailServer, goodbye: bytes
) -> None:
    plain.goodbye = goodbye
    await put(database, keyring)
    logs = await deliver(database, mail_sender(database, keyring, f"smtp://localhost:{plain.port}", tmp_path))
    assert [entry["event"] for entry in logs] == ["mail.delivered"]
    assert len(plain.mails) == 1
    assert await database.value(_COUNT) == 0


async def test_server_has_ten_minutes_to_accept_a_mail(
    database: Database, keyring: Keyring, tmp_path: Path, plain: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RFC 5321 4.5.3.2.6"""
    timeouts: list[float | None] = []
    getreply = smtplib.SMTP.getreply

    def recorded(client: smtplib.SMTP) -> tuple[int, bytes]:
        assert client.sock is not None
        timeouts.append(client.sock.gettimeout())
        return getreply(client)

    monkeypatch.setattr(smtplib.SMTP, "getreply", recorded)
    await put(database, keyring)
    await deliver(database, mail_sender(database, keyring, f"smtp://localhost:{plain.port}", tmp_path))
    assert len(plain.mails) == 1
    greeting, ehlo, mail, rcpt, data, accepted, goodbye = timeouts
    assert {greeting, ehlo, goodbye} == {20.0}
    assert {mail, rcpt, data} == {120.0}, "a server that hangs earlier does not have the mail"
    assert accepted == 600.0


async def test_mail_that_is_accepted_late_delays_only_mails_to_its_recipient(
    database: Database, keyring: Keyring, tmp_path: Path, plain: MailServer
) -> None:
    plain.accepts.clear()
    for recipient in ("ann@example.com", "ann@example.com", "bob@example.com"):
        await put(database, keyring, recipient)
    sender = mail_sender(database, keyring, f"smtp://localhost:{plain.port}", tmp_path)
    async with trio.open_nursery() as nursery:
        await nursery.start(sender.queue.run, sender.bus)
        await until_true(lambda: len(plain.mails) == 2)
        assert sender.queue.in_flight == 2
        plain.accepts.set()
        await until_true(lambda: len(plain.mails) == 3 and not sender.queue.in_flight)
        nursery.cancel_scope.cancel()
    *first, last = ["ann" if "To: ann@" in mail else "bob" for mail in plain.mails]
    assert (sorted(first), last) == (["ann", "bob"], "ann")


async def test_lease_of_a_mail_lasts_as_long_as_the_attempt(
    database: Database, keyring: Keyring, tmp_path: Path, plain: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender_module, "LEASE_S", 3.0)
    plain.accepts.clear()
    await put(database, keyring)
    sender = mail_sender(database, keyring, f"smtp://localhost:{plain.port}", tmp_path)
    async with trio.open_nursery() as nursery:
        await nursery.start(sender.queue.run, sender.bus)
        await until_true(lambda: len(plain.mails) == 1)
        claimed_until = await database.value(_NEXT_TRY)
        with trio.fail_after(60):
            while await database.value(_NEXT_TRY) == claimed_until:  # noqa: ASYNC110 - the database has no event
                await trio.sleep(0.02)
        assert await database.value(_NEXT_TRY) > claimed_until
        plain.accepts.set()
        await until_true(lambda: not sender.queue.in_flight)
        nursery.cancel_scope.cancel()
    assert (len(plain.mails), await database.value(_COUNT)) == (1, 0)


async def test_mail_to_an_international_address_is_sent(
    database: Database, keyring: Keyring, tmp_path: Path, plain: MailServer
) -> None:
    await put(database, keyring, "ünï@exämple.de")
    await deliver(database, mail_sender(database, keyring, f"smtp://localhost:{plain.port}", tmp_path))
    assert "To: ünï@xn--exmple-cua.de" in plain.mails[0]


async def test_mail_has_a_date_and_says_that_no_person_has_written_it(
    database: Database, keyring: Keyring, tmp_path: Path, plain: MailServer
) -> None:
    await put(database, keyring)
    await deliver(database, mail_sender(database, keyring, f"smtp://localhost:{plain.port}", tmp_path))
    mail = message_from_string(plain.mails[0])
    assert parsedate_to_datetime(mail["Date"]).utcoffset() == timedelta()
    assert mail["Auto-Submitted"] == "auto-generated"


async def test_log_lines_of_a_mail_have_the_request_that_queued_it(
    database: Database, keyring: Keyring, tmp_path: Path, plain: MailServer
) -> None:
    sender = mail_sender(database, keyring, f"smtp://localhost:{plain.port}", tmp_path)
    token = current_request_id.set("0123456789abcdef")
    await put(database, keyring)
    current_request_id.reset(token)
    await put(database, keyring)  # by a command, for example
    await database.value(_SET_TRIES, tries=MAX_TRIES)
    failed = await deliver(database, sender)
    assert sorted(str(entry.get("request")) for entry in failed) == ["0123456789abcdef", "None"]


async def test_mail_of_the_previous_release_is_sent(
    database: Database, keyring: Keyring, tmp_path: Path, plain: MailServer
) -> None:
    """It inserts rows without the columns for the log."""
    await put(database, keyring)
    await database.value(Statement("UPDATE outbox SET request_id = NULL, trace_id = NULL"))
    (delivered,) = await deliver(database, mail_sender(database, keyring, f"smtp://localhost:{plain.port}", tmp_path))
    assert (delivered["event"], "request" in delivered, "trace" in delivered) == ("mail.delivered", False, False)
