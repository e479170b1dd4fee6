"""The mails that a server has written to its folder, as their recipients read them."""

import functools
import re
from email import message_from_bytes
from email.header import decode_header, make_header
from email.parser import HeaderParser
from email.policy import default
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.kit.browser import mail_text
from tests.kit.server import Server, until


class Mail(NamedTuple):
    path: Path
    size: int
    recipient: str
    subject: str


def mails(server: Server, login: str, subject: str = "") -> list[str]:
    """Returns the texts of the mails to this address whose subject contains this text, oldest first."""
    return [
        _text(mail.path, mail.size) for mail in all_mails(server) if mail.recipient == login and subject in mail.subject
    ]


def all_mails(server: Server) -> list[Mail]:
    """Returns all mails that are written completely, oldest first."""
    stats = [(path.stat(), path) for path in (server.folder / "data" / "mail").glob("*.eml")]
    stats.sort(key=lambda item: item[0].st_mtime_ns)
    return [_read(path, stat.st_size) for stat, path in stats if stat.st_size]


@functools.lru_cache(2000)  # those who wait for a mail look at all mails again and again
def _read(path: Path, size: int) -> Mail:
    """Reads a mail with the old parser of headers, which takes a tenth of the time: most mails are for others."""
    headers = HeaderParser().parsestr(path.read_text(errors="replace"))
    recipient, subject = (
        "".join(str(make_header(decode_header(headers[name]))).splitlines()) for name in ("To", "Subject")
    )
    return Mail(path, size, recipient, subject)


@functools.lru_cache(2000)
def _text(path: Path, size: int) -> str:
    return mail_text(message_from_bytes(path.read_bytes(), policy=default))


def wait_for_mails(server: Server, login: str, subject: str, count: int = 1) -> list[str]:
    """Waits until ``count`` such mails were delivered."""
    until(lambda: len(mails(server, login, subject)) >= count)
    return mails(server, login, subject)


def link_in(mail: str) -> str:
    """Returns the link of a mail."""
    found = re.search(r"^https?://\S+$", mail, re.MULTILINE)
    assert found, mail
    return found[0]


def path_of(link: str) -> str:
    parts = urlsplit(link)
    return f"{parts.path}?{parts.query}"
