"""The questions of a check: whether a user has a rule at an application."""

from typing import Any

from msgspec import Struct

from sso.core.field_errors import FieldError, FieldPath
from sso.core.ids import is_user_id
from sso.perm.input.names import read_application_id
from sso.perm.input.options import MAX_RULE_NAME
from sso.perm.input.validators import read_array, read_flag, read_object, read_text, unknown_field_warnings

MAX_QUESTIONS = 100
MAX_QUESTIONS_WITH_REASON = 20  # an explanation looks at every role of the application
_FIELDS = frozenset(("user_id", "application_id", "rule", "param", "project_id"))


class Question(Struct, frozen=True):
    user_id: str  # empty if it is not an id that a user can have
    application_id: int
    rule: str  # in the notation of ``list`` or ``list_short``
    param: str | None = None  # the rule must cover it
    project_id: str | None = None  # or an alias
    with_reason: bool = False
    at: int | None = None  # a moment of the past
    at_path: FieldPath = ()

    @property
    def pair(self) -> tuple[str, int]:
        return self.user_id, self.application_id


def read_questions(
    data: dict[str, Any], default_user_id: str, default_application_id: object, *, with_reason: bool
) -> tuple[list[Question], list[str]]:
    """The questions in ``data``, and warnings. Both defaults apply to questions without that field."""
    warnings = unknown_field_warnings(data, ("questions",), ("data",))
    questions = []
    items = read_array(data.get("questions"), ("data", "questions"), MAX_QUESTIONS)
    if with_reason and len(items) > MAX_QUESTIONS_WITH_REASON:
        raise FieldError(
            ("data", "questions"), f"must have at most {MAX_QUESTIONS_WITH_REASON} items with options.reason"
        )
    for index, value in enumerate(items):
        path: FieldPath = ("data", "questions", index)
        item = read_object(value, path)
        if item.keys() - _FIELDS:
            warnings += unknown_field_warnings(item, _FIELDS, path)
        questions.append(_read_question(item, path, default_user_id, default_application_id, with_reason=with_reason))
    return questions, warnings


def _read_question(
    item: dict[str, Any], path: FieldPath, default_user_id: str, default_application_id: object, *, with_reason: bool
) -> Question:
    user_id = item.get("user_id", default_user_id)
    if not isinstance(user_id, str):
        raise FieldError((*path, "user_id"), "must be a string")
    application_id = item.get("application_id", default_application_id)
    rule, param, project_id = item.get("rule"), item.get("param"), item.get("project_id")
    return Question(
        user_id if is_user_id(user_id) else "",
        read_application_id(application_id, (*path, "application_id")),
        read_text(rule, (*path, "rule"), MAX_RULE_NAME, min_length=1),
        None if param is None else read_text(param, (*path, "param")),
        None if project_id is None else read_text(project_id, (*path, "project_id"), 64, min_length=1),
        with_reason,
    )


def read_check_options(value: object) -> tuple[bool, list[str]]:
    """``options.reason``, and warnings."""
    options = read_object(value, ("options",))
    warnings = unknown_field_warnings(options, ("reason",), ("options",))
    return read_flag(options.get("reason", False), ("options", "reason")), warnings
