"""The content of a mail, and its two forms: plain text and HTML.

Both are written from the same parts, so they say the same. The HTML form contains no images and nothing that the mail
program would have to load.
"""

from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, select_autoescape

from sso.core.language import Text, current_language, in_language

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=select_autoescape(),
    trim_blocks=True,
    lstrip_blocks=True,
)


@dataclass(frozen=True)
class MailContent:
    """A subject and paragraphs; between ``before`` and ``after``, a code or a link with its label, if there is one.

    A code ends the sentence before it ("Your sign-in code is").
    """

    subject: Text
    before: tuple[Text, ...]
    after: tuple[Text, ...] = ()
    code: str = ""
    link: str = ""
    link_label: Text | None = None


@dataclass(frozen=True)
class RenderedMail:
    subject: str
    text: str
    html: str


def render(content: MailContent, language: str, service_name: str) -> RenderedMail:
    """Renders the mail in this language, or in English if there is no translation."""
    with in_language(language):
        subject = content.subject.translated()
        before = [paragraph.translated() for paragraph in content.before]
        after = [paragraph.translated() for paragraph in content.after]
        html = _TEMPLATES.get_template("mail.html").render(
            lang=current_language.get(),
            service_name=service_name,
            subject=subject,
            before=before,
            after=after,
            code=content.code,
            link=content.link,
            link_label=content.link_label.translated() if content.link_label else content.link,
        )
    lead = "\n\n".join(before)
    paragraphs = [f"{lead} {content.code}".rstrip(), *([content.link] if content.link else []), *after]
    return RenderedMail(subject, "\n\n".join(paragraphs) + "\n", html)
