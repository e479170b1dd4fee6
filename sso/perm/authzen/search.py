"""The searches, page by page: which actions, subjects and resources make a decision true."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sso.core.field_errors import FieldError
from sso.perm.authzen.evaluations import Evaluation, EvaluationRequest, read_about, read_action, read_type
from sso.perm.input.validators import read_object, read_text

DEFAULT_LIMIT = 100
MAX_LIMIT = 1000
_ANY_SUBJECT = "*"  # no user's id, so a search counts as a question about other users
_ANY_RESOURCE_ID = "1"
_ANY_RESOURCE = {"project": "application"}  # a project is asked for at the central application, which has the id 1


class SearchPage(NamedTuple):
    limit: int = DEFAULT_LIMIT
    after: str = ""  # the last result of the page before; results are sorted


class Search(NamedTuple):
    evaluation: Evaluation  # without what is searched for
    page: SearchPage
    type: str = ""  # of the subjects or resources that are searched for

    @property
    def request(self) -> EvaluationRequest:
        return EvaluationRequest((self.evaluation,), None, is_single=True, is_search=True)


def read_action_search(fields: dict[str, Any]) -> Search:
    return Search(read_about(fields, (), ""), _read_page(fields.get("page", {})))


def read_subject_search(fields: dict[str, Any]) -> Search:
    """The id of the subject, if there is one, is ignored: all subjects of its type are searched."""
    subject_type = read_type(fields, "subject")
    any_subject = {**fields, "subject": {"type": subject_type, "id": _ANY_SUBJECT}}
    evaluation = read_about(any_subject, (), *read_action(fields))
    return Search(evaluation, _read_page(fields.get("page", {})), subject_type)


def read_resource_search(fields: dict[str, Any]) -> Search:
    resource_type = read_type(fields, "resource")
    any_resource = {
        **fields,
        "resource": {"type": _ANY_RESOURCE.get(resource_type, resource_type), "id": _ANY_RESOURCE_ID},
    }
    evaluation = read_about(any_resource, (), *read_action(fields))
    return Search(evaluation, _read_page(fields.get("page", {})), resource_type)


def results_page(entity_type: str, ids: Sequence[str], next_after: str | None) -> dict[str, Any]:
    """Returns the response of a search for subjects or resources."""
    return {
        "page": {"next_token": "" if next_after is None else _token(next_after), "count": len(ids)},
        "results": [{"type": entity_type, "id": entity_id} for entity_id in ids],
    }


def actions_page(rules: Mapping[str, tuple[str, ...]], page: SearchPage) -> dict[str, Any]:
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


def _read_page(value: object) -> SearchPage:
    page = read_object(value, ("page",))
    limit = page.get("limit", DEFAULT_LIMIT)
    if type(limit) is not int or not 1 <= limit <= MAX_LIMIT:
        raise FieldError(("page", "limit"), f"must be an integer from 1 to {MAX_LIMIT}")
    token = read_text(page.get("token", ""), ("page", "token"), 2048)
    try:
        after = base64.b64decode(token.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError):
        raise unknown_token() from None
    if "\0" in after:  # the database has no such texts
        raise unknown_token()
    return SearchPage(limit, after)


def unknown_token() -> FieldError:
    return FieldError(("page", "token"), "must be the next_token of the page before")


def _token(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()
