"""The content of a mail, and its two forms: plain text and HTML.

Both are written from the same parts, so they say the same. The HTML form contains nothing that the mail program would
have to load: the logo is a part of the message.
"""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, select_autoescape
from msgspec import Struct

from sso.core.brand import DEFAULT_ACCENT, Brand
from sso.core.language import Text, current_language, in_language
from sso.core.logo import Logo

LOGO_CID = "logo@sso"
_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=select_autoescape(),
    trim_blocks=True,
    lstrip_blocks=True,
)
HELP = Text("Do you need help?")


class MailContent(Struct, frozen=True):
    """A subject and paragraphs; between ``before`` and ``after``, a code or a link with its label, if there is one.

    A code ends the sentence before it ("Your sign-in code is").
    """

    subject: Text
    before: tuple[Text, ...]
    after: tuple[Text, ...] = ()
    code: str = ""
    link: str = ""
    link_label: Text | None = None


class RenderedMail(Struct, frozen=True):
    subject: str
    text: str
    html: str


def render(content: MailContent, language: str, brand: Brand) -> RenderedMail:
    """Renders the mail in this language, or in English if there is no translation."""
    with in_language(language):
        subject = content.subject.translated()
        before = [paragraph.translated() for paragraph in content.before]
        after = [paragraph.translated() for paragraph in content.after]
        help_question = HELP.translated()
        html = _TEMPLATES.get_template("mail.html").render(
            lang=current_language.get(),
            brand=brand,
            logo_cid=LOGO_CID if mail_logo(brand) else "",
            accent=(brand.accent or DEFAULT_ACCENT).rgb,
            subject=subject,
            before=before,
            after=after,
            code=content.code,
            link=content.link,
            link_label=content.link_label.translated() if content.link_label else content.link,
            help_question=help_question,
            support_label=_shown(brand.support_url),
        )
    lead = "\n\n".join(before)
    paragraphs = [f"{lead} {content.code}".rstrip(), *([content.link] if content.link else []), *after]
    if brand.support_url:
        paragraphs.append(f"{brand.name}\n{help_question} {_shown(brand.support_url)}")
    return RenderedMail(subject, "\n\n".join(paragraphs) + "\n", html)


def mail_logo(brand: Brand) -> Logo | None:
    """Returns the logo if mail programs can show it: most of them know no SVG and WebP."""
    return brand.logo if brand.logo and brand.logo.kind == "png" else None


def _shown(url: str) -> str:
    """Returns the URL as people read it."""
    return url.removeprefix("mailto:")
