"""The search for actions: which rules a subject has at a resource, page by page."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, NamedTuple

from sso.core.field_errors import FieldError
from sso.perm.authzen.evaluations import Evaluation, read_about
from sso.perm.input.validators import read_object, read_text

DEFAULT_LIMIT = 100
MAX_LIMIT = 1000


class ActionPage(NamedTuple):
    limit: int = DEFAULT_LIMIT
    after: str = ""  # the last name of the page before; names are sorted


class ActionSearch(NamedTuple):
    evaluation: Evaluation
    page: ActionPage


def read_action_search(fields: dict[str, Any]) -> ActionSearch:
    return ActionSearch(read_about(fields, (), ""), _read_page(fields.get("page", {})))


def actions_page(rules: Mapping[str, tuple[str, ...]], page: ActionPage) -> dict[str, Any]:
    """Returns the response: the actions, each with the parameters that it is limited to, and the next page's token."""
    names = sorted(name for name in rules if name > page.after)
    shown = names[: page.limit]
    token = _token(shown[-1]) if len(names) > len(shown) else ""
    return {
        "page": {"next_token": token, "count": len(shown)},
        "results": [_action(name, rules[name]) for name in shown],
    }


def _action(name: str, params: tuple[str, ...]) -> dict[str, Any]:
    return {"name": name, "properties": {"params": list(params)}} if params else {"name": name}


def _read_page(value: object) -> ActionPage:
    page = read_object(value, ("page",))
    limit = page.get("limit", DEFAULT_LIMIT)
    if type(limit) is not int or not 1 <= limit <= MAX_LIMIT:
        raise FieldError(("page", "limit"), f"must be an integer from 1 to {MAX_LIMIT}")
    token = read_text(page.get("token", ""), ("page", "token"), 2048)
    try:
        return ActionPage(limit, base64.b64decode(token.encode(), altchars=b"-_", validate=True).decode())
    except (binascii.Error, UnicodeError):
        raise FieldError(("page", "token"), "must be the next_token of the page before") from None


def _token(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()
