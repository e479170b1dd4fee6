"""Reads evaluations: a subject, an action, a resource and a context become a question of `check`."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from sso.core.errors import ApiError, NotFound
from sso.core.field_errors import FieldError, FieldPath
from sso.core.ids import is_user_id
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.input.names import read_application_key
from sso.perm.input.options import MAX_RULE_NAME
from sso.perm.input.questions import MAX_QUESTIONS, MAX_QUESTIONS_WITH_REASON, Question
from sso.perm.input.validators import check_number, read, read_array, read_flag, read_object, read_text

# What each semantic stops after: the first answer with this decision.
SEMANTICS: Mapping[str, bool | None] = {
    "execute_all": None,
    "deny_on_first_deny": False,
    "permit_on_first_permit": True,
}
_PARTS = ("subject", "action", "resource", "context")


class MissingPart(FieldError):
    """A question has no subject, action or resource."""


class Evaluation(Struct, frozen=True):
    question: Question | None  # None if a part is missing, or of a type that nothing has
    login: str = ""  # of the subject, if it is not named by its user id
    error: ApiError | None = None


class EvaluationRequest(Struct, frozen=True):
    evaluations: tuple[Evaluation, ...]
    stop_after: bool | None
    is_single: bool  # the response is one decision, not a list
    is_search: bool = False

    @property
    def questions(self) -> list[Question]:
        return [item.question for item in self.evaluations if item.question is not None]

    def check_fields(self) -> dict[str, Any]:
        """Returns the body of a ``check`` with the same questions, by which the credentials are judged."""
        questions = [
            {"user_id": item.question.user_id or item.login, "application_id": item.question.application_id}
            for item in self.evaluations
            if item.question is not None
        ]
        asks_more = any(question.with_reason or question.at is not None for question in self.questions)
        is_expensive = self.is_search or asks_more
        return {"data": {"questions": questions}, "options": {"reason": is_expensive}}


def read_evaluation(fields: dict[str, Any]) -> EvaluationRequest:
    return EvaluationRequest((_read_item(fields, ()),), None, is_single=True)


def read_evaluations(fields: dict[str, Any]) -> EvaluationRequest:
    """Reads several evaluations. What one of them lacks is taken from the request itself."""
    items = read_array(fields.get("evaluations", []), ("evaluations",), MAX_QUESTIONS)
    stop_after = _read_semantic(fields.get("options", {}))
    if not items:
        return read_evaluation(fields)
    defaults = {name: fields[name] for name in _PARTS if name in fields}
    evaluations = []
    for index, item in enumerate(items):
        path: FieldPath = ("evaluations", index)
        try:
            evaluations.append(_read_item(defaults | read_object(item, path), path))
        except MissingPart as error:  # the others are answered all the same
            evaluations.append(Evaluation(None, error=error))
    request = EvaluationRequest(tuple(evaluations), stop_after, is_single=False)
    if sum(question.with_reason for question in request.questions) > MAX_QUESTIONS_WITH_REASON:
        raise FieldError(("evaluations",), f"must have at most {MAX_QUESTIONS_WITH_REASON} items with context.reason")
    return request


def _read_semantic(value: object) -> bool | None:
    options = read_object(value, ("options",))
    semantic = options.get("evaluations_semantic", "execute_all")
    if not isinstance(semantic, str) or semantic not in SEMANTICS:
        raise FieldError(("options", "evaluations_semantic"), f"must be one of {', '.join(SEMANTICS)}")
    return SEMANTICS[semantic]


def _read_item(fields: dict[str, Any], path: FieldPath) -> Evaluation:
    return read_about(fields, path, *read_action(fields, path))


def read_action(fields: dict[str, Any], path: FieldPath = ()) -> tuple[str, str | None]:
    """Returns the rule, and the parameter that it must cover."""
    action = _required(fields, "action", path)
    rule = read_text(action.get("name"), (*path, "action", "name"), MAX_RULE_NAME, min_length=1)
    param = _properties(action, (*path, "action")).get("param")
    if param is not None:
        param = read_text(param, (*path, "action", "properties", "param"))
    return rule, param


def read_type(fields: dict[str, Any], name: str) -> str:
    """Returns the type of the subject or resource that is searched for. It needs no id."""
    return read_text(_required(fields, name, ()).get("type"), (name, "type"), min_length=1)


def read_about(fields: dict[str, Any], path: FieldPath, rule: str, param: str | None = None) -> Evaluation:
    """Reads the subject, the resource and the context of a question about ``rule``."""
    subject, resource = _required(fields, "subject", path), _required(fields, "resource", path)
    subject_type, subject_id = _read_name(subject, (*path, "subject"))
    resource_type, resource_id = _read_name(resource, (*path, "resource"))
    project_id = _properties(resource, (*path, "resource")).get("project_id")
    if project_id is not None:
        project_id = read_text(project_id, (*path, "resource", "properties", "project_id"), 64, min_length=1)
    with_reason, at, at_path = _read_context(fields.get("context", {}), (*path, "context"))
    if subject_type != "user":
        return Evaluation(None, error=NotFound("subject not found: its type must be user"))
    try:
        application_id, project_id = _target(resource_type, resource_id, project_id)
    except NotFound as error:
        return Evaluation(None, error=error)
    user_id = subject_id if is_user_id(subject_id) else ""
    question = Question(user_id, application_id, rule, param, project_id, with_reason, at, at_path)
    return Evaluation(question, "" if user_id else subject_id)


def _target(resource_type: str, resource_id: str, project_id: str | None) -> tuple[int, str | None]:
    """Returns the application and the project of a resource. Raises NotFound."""
    if resource_type == "project":
        return CENTRAL_APPLICATION_ID, resource_id
    if resource_type != "application":
        raise NotFound("resource not found: its type must be application or project")
    try:
        return read_application_key(resource_id, ()), project_id
    except FieldError:
        raise NotFound("resource not found: the id of an application is a number") from None


def _required(fields: dict[str, Any], name: str, path: FieldPath) -> dict[str, Any]:
    if name not in fields:
        raise MissingPart((*path, name), "is required")
    return read_object(fields[name], (*path, name))


def _read_name(entity: dict[str, Any], path: FieldPath) -> tuple[str, str]:
    return (
        read_text(entity.get("type"), (*path, "type"), min_length=1),
        read_text(entity.get("id"), (*path, "id"), min_length=1),
    )


def _properties(entity: dict[str, Any], path: FieldPath) -> dict[str, Any]:
    return read_object(entity.get("properties", {}), (*path, "properties"))


def _read_context(value: object, path: FieldPath) -> tuple[bool, int | None, FieldPath]:
    context = read_object(value, path)
    with_reason = read_flag(context.get("reason", False), (*path, "reason"))
    at_path = (*path, "at")
    at = read(check_number, context["at"], at_path) if "at" in context else None
    return with_reason, at, at_path
