"""The parameters of a link to a game's sign-in. They fill fields that getGsid left empty, and override none (§4.3).

Opening a link stores nothing: the parameters travel with the pages, and the confirmation by the person who saw them
stores them. A wrong value is an error if the field is empty, and ignored otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sso.accounts.login_options import ShortText
from sso.core.language import TAG
from sso.gsid.errors import BadLink
from sso.gsid.model import Filled, GameSessionData
from sso.web.body import InvalidBody, ParsedBody, read_body
from sso.web.models import AppId, Flag, RequestModel, validate

NAMES = ("app_id", "gapp_id", "distr", "meta", "lang")
_FORM = "application/x-www-form-urlencoded"


class _Fields(RequestModel):
    app_id: AppId = 0
    gapp_id: AppId = 0
    distr: ShortText = ""
    meta: Flag = False


@dataclass(frozen=True)
class Link:
    """What the browser sent, not checked yet. None: it was sent more than once, or is no text."""

    sent: Mapping[str, str | None]

    @classmethod
    def from_query(cls, query: str) -> "Link":
        sent: dict[str, str | None] = {}
        for pair in query.split("&"):
            name = pair.partition("=")[0]
            if name in NAMES:
                sent[name] = None if name in sent else _decoded(pair, name)
        return cls(sent)

    @classmethod
    def from_form(cls, form: Mapping[str, str]) -> "Link":
        return cls({name: form[name] for name in NAMES if name in form})

    @property
    def lang(self) -> str:
        """The language of the pages; a wrong one is ignored."""
        text = self.sent.get("lang") or ""
        return text if TAG.fullmatch(text) else ""

    @property
    def unchecked(self) -> dict[str, str]:
        """For the next page, which checks them."""
        return {name: text for name, text in self.sent.items() if text is not None}

    def fill(self, facts: GameSessionData) -> Filled:
        """Returns the values for fields that the session left empty. Raises BadLink for a wrong one."""
        empty = {
            "app_id": not facts.app_id,
            "gapp_id": not facts.gapp_id,
            "distr": not facts.distr,
            "meta": not (facts.with_meta or facts.meta_given),
        }
        values = {name: _checked(name, text) for name, text in self.sent.items() if empty.get(name)}
        return Filled(**values)

    def parameters(self, filled: Filled) -> dict[str, str]:
        """What the next page needs in order to show and confirm the same."""
        kept = {"app_id": filled.app_id, "gapp_id": filled.gapp_id, "distr": filled.distr, "meta": int(filled.meta)}
        return {name: str(value) for name, value in {**kept, "lang": self.lang}.items() if value}


EMPTY = Link({})


def _decoded(pair: str, name: str) -> str | None:
    try:
        text = read_body(pair.encode(), _FORM).fields.get(name)
    except (InvalidBody, UnicodeEncodeError):
        return None
    return text if isinstance(text, str) else None


def _checked(name: str, text: str | None) -> Any:
    if text is None:
        raise BadLink(name)
    try:
        return getattr(validate(_Fields, ParsedBody({name: text}, is_form=True)), name)
    except InvalidBody:
        raise BadLink(name) from None
