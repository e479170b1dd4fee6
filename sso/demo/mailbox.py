"""The mails of the demo, which are files in its data directory."""

import base64
import email
import re
from datetime import UTC, datetime
from email import policy
from email.message import EmailMessage
from pathlib import Path

from msgspec import Struct

from sso.mail.content import LOGO_CID

MAX_SHOWN = 50
_NAME = re.compile(r"[0-9a-f]{16}")


class DemoMail(Struct, frozen=True):
    name: str
    recipient: str
    subject: str
    written: datetime
    html: str


class DemoMailbox:
    """Blocking; call it in a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def newest(self) -> list[DemoMail]:
        files = sorted(self._folder.glob("*.eml"), key=lambda path: path.stat().st_mtime, reverse=True)
        return [_read(path) for path in files[:MAX_SHOWN]]

    def find(self, name: str) -> DemoMail | None:
        path = self._folder / f"{name}.eml"
        return _read(path) if _NAME.fullmatch(name) and path.is_file() else None


def _read(path: Path) -> DemoMail:
    message = email.message_from_bytes(path.read_bytes(), policy=policy.default)
    assert isinstance(message, EmailMessage)
    html = message.get_body(("html", "plain"))
    written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    content = str(html.get_content()) if html else ""
    return DemoMail(path.stem, str(message["To"]), str(message["Subject"]), written, _with_logo(message, content))


def _with_logo(message: EmailMessage, html: str) -> str:
    """Puts the logo, which is another part of the message, into the page."""
    for part in message.walk():
        if part.get("Content-ID") == f"<{LOGO_CID}>":
            image = base64.b64encode(part.get_content()).decode()
            return html.replace(f"cid:{LOGO_CID}", f"data:{part.get_content_type()};base64,{image}")
    return html
