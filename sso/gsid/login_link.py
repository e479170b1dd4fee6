"""The parameters of a link to a game login. They fill fields that getGsid left empty and never override one (§4.3).

Opening a link stores nothing: the pages pass the parameters on, and the confirmation stores them. An invalid value is
an error if the field is empty and is ignored otherwise.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from sso.accounts.login.options import ShortText
from sso.core.field_errors import FieldError
from sso.core.language import TAG
from sso.gsid.errors import BadLink
from sso.gsid.model import GameSessionData, LinkValues
from sso.web.body import InvalidBody, ParsedBody, parse_body
from sso.web.request_model import AppId, Flag, RequestModel, validate

PARAMETER_NAMES = ("app_id", "gapp_id", "distr", "meta", "lang")
_FORM = "application/x-www-form-urlencoded"


class _Fields(RequestModel):
    app_id: AppId = 0
    gapp_id: AppId = 0
    distr: ShortText = ""
    meta: Flag = False


class LoginLink(Struct, frozen=True):
    """The unchecked parameters that the browser sent; None for one that was repeated or is not text."""

    raw: Mapping[str, str | None]

    @classmethod
    def from_query(cls, query: str) -> "LoginLink":
        raw: dict[str, str | None] = {}
        for pair in query.split("&"):
            name = pair.partition("=")[0]
            if name in PARAMETER_NAMES:
                raw[name] = None if name in raw else _decode(pair, name)
        return cls(raw)

    @classmethod
    def from_form(cls, form: Mapping[str, str]) -> "LoginLink":
        return cls({name: form[name] for name in PARAMETER_NAMES if name in form})

    @property
    def lang(self) -> str:
        """The language of the pages, or "" if it is missing or invalid."""
        text = self.raw.get("lang") or ""
        return text if TAG.fullmatch(text) else ""

    @property
    def unchecked(self) -> dict[str, str]:
        """The parameters for a redirect to a page that checks them."""
        return {name: text for name, text in self.raw.items() if text is not None}

    def values_for(self, session: GameSessionData) -> LinkValues:
        """Returns the values for fields that the session left empty. Raises BadLink for an invalid one."""
        is_empty = {
            "app_id": not session.app_id,
            "gapp_id": not session.gapp_id,
            "distr": not session.distr,
            "meta": not (session.with_meta or session.meta_given),
        }
        return LinkValues(**{name: _validated(name, text) for name, text in self.raw.items() if is_empty.get(name)})

    def parameters(self, values: LinkValues) -> dict[str, str]:
        """Returns the parameters that make the next page show and confirm the same values."""
        used = {"app_id": values.app_id, "gapp_id": values.gapp_id, "distr": values.distr, "meta": int(values.meta)}
        return {name: str(value) for name, value in {**used, "lang": self.lang}.items() if value}


EMPTY_LINK = LoginLink({})


def _decode(pair: str, name: str) -> str | None:
    try:
        text = parse_body(pair.encode(), _FORM).fields.get(name)
    except (InvalidBody, UnicodeEncodeError):
        return None
    return text if isinstance(text, str) else None


def _validated(name: str, text: str | None) -> Any:
    if text is None:
        raise BadLink(name)
    try:
        return getattr(validate(_Fields, ParsedBody({name: text}, is_form=True)), name)
    except FieldError:
        raise BadLink(name) from None
