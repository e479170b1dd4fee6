"""The mails that a server has written to its folder, as their recipients read them."""

import functools
import re
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from urllib.parse import urlsplit

from tests.kit.browser import mail_text
from tests.kit.server import Server, until


def mails(server: Server, login: str, subject: str = "") -> list[str]:
    """Returns the texts of the mails to this address whose subject contains this text, oldest first."""
    folder = server.folder / "data" / "mail"
    paths = sorted(folder.glob("*.eml"), key=lambda path: path.stat().st_mtime_ns)
    found = [_parsed(content) for content in (path.read_bytes() for path in paths) if content]
    return [mail_text(mail) for mail in found if mail["To"] == login and subject in str(mail["Subject"])]


@functools.lru_cache(2000)  # those who wait for a mail read all mails again and again
def _parsed(content: bytes) -> EmailMessage:
    return message_from_bytes(content, policy=default)


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
