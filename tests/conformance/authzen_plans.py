"""The test plans of the OpenID Foundation for AuthZEN 1.0, with their modules, the request of each and its answer.

The names are those of the classes of the foundation's suite (``AuthzenPDPEvaluationMissingActionTest`` is
``authzen-pdp-evaluation-missing-action``). The fixtures of the suite, records and their owners, are users and
applications here. Modules whose decisions depend on properties that a caller claims do not apply: decisions are made by
what is stored.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.conformance.plans import Module, Plan

# Parts of a request; each path of a search lacks the part, or the id, that it searches for.
SUBJECT, ACTION, RESOURCE = "subject", "action", "resource"
REMOVED: Any = object()  # in place of a part: the request does not have it
NO_PROPERTIES = "claimed properties decide nothing"
Body = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """The request of a module: the valid one with changes, and the answer."""

    changes: Body = field(default_factory=dict)  # dotted names of members, with their values
    status: int = 200
    decision: Any = None  # the decisions, of an evaluation or of all
    same_as_valid: bool = False  # the answer is that to the valid request
    method: str = "POST"
    raw: str | None = None  # in place of the body
    content_type: str = "application/json"
    headers: Body = field(default_factory=dict)
    results: Literal["some", "none", ""] = ""  # of a search


def _refused(**changes: Any) -> Case:
    return Case({name.replace("__", "."): value for name, value in changes.items()}, 400)


TRANSPORT: Mapping[str, Case] = {
    "reject-get-method": Case(status=405, method="GET"),
    "reject-put-method": Case(status=405, method="PUT"),
    "reject-top-level-array": Case(status=400, raw="[{}]"),
    "reject-non-json-content-type": Case(status=415, content_type="text/plain"),
    "accept-content-type-with-charset": Case(content_type="application/json; charset=utf-8", same_as_valid=True),
    "reject-malformed-json": Case(status=400, raw='{"subject": '),
    "reject-empty-body": Case(status=400, raw=""),
    "x-request-id-echoed": Case(headers={"X-Request-ID": "conformance-1"}, same_as_valid=True),
    "idempotency": Case(same_as_valid=True),
    "unknown-top-level-fields": Case({"foo": "bar", "futureField": {"a": 1}}, same_as_valid=True),
}
_MISSING_PARTS = {
    "missing-subject": _refused(subject=REMOVED),
    "missing-action": _refused(action=REMOVED),
    "missing-resource": _refused(resource=REMOVED),
}
EVALUATION: Mapping[str, Case] = {
    "fixture-request-permit-decision": Case(decision=True),
    "fixture-request-deny-decision": Case({"action.name": "steal"}, decision=False),
    "fixture-request-permit-based-on-action-properties": Case(
        {"action": {"name": "price.set", "properties": {"param": "gold"}}}, decision=True
    ),
    "fixture-request-deny-based-on-action-properties": Case(
        {"action": {"name": "price.set", "properties": {"param": "tin"}}}, decision=False
    ),
    "request-with-optional-context": Case({"context": {"time": "2026-01-31T18:00Z"}}, decision=True),
    "request-with-additional-properties": Case({"subject.properties": {"department": "sales"}}, decision=True),
    "request-with-unknown-fields": Case({"subject.x": 1, "resource.y": [2], "z": 3}, decision=True),
    "unknown-subject-fields": Case({"subject.extra": "x"}, decision=True),
    "unknown-action-fields": Case({"action.extra": "x"}, decision=True),
    "unknown-resource-fields": Case({"resource.extra": "x"}, decision=True),
    **_MISSING_PARTS,
    "subject-missing-type": _refused(subject__type=REMOVED),
    "subject-missing-id": _refused(subject__id=REMOVED),
    "subject-is-string": _refused(subject="ann"),
    "action-missing-name": _refused(action__name=REMOVED),
    "action-name-is-number": _refused(action__name=1),
    "resource-missing-type": _refused(resource__type=REMOVED),
    "resource-missing-id": _refused(resource__id=REMOVED),
    "missing-credentials-returns401": Case(status=401, headers={"Authorization": ""}),
    "invalid-credentials-returns401": Case(status=401, headers={"Authorization": "Bearer unknown"}),
    **TRANSPORT,
}
_ALLOWED: Body = {"action": {"name": "sell"}}
_DENIED: Body = {"action": {"name": "steal"}}
_THREE = [_ALLOWED, _DENIED, _ALLOWED]


def _semantic(name: str | None, decisions: list[bool], status: int = 200) -> Case:
    options = {} if name is None else {"options": {"evaluations_semantic": name}}
    return Case({"evaluations": _THREE, **options}, status, decisions if status == 200 else None)


EVALUATIONS: Mapping[str, Case] = {
    "batch-request-with-evaluations-array": Case({"evaluations": [_ALLOWED, _DENIED]}, decision=[True, False]),
    "batch-with-fixture-decisions-validated": Case({"evaluations": [_DENIED, _ALLOWED]}, decision=[False, True]),
    "batch-with-fully-specified-evaluations": Case(
        {"evaluations": ["valid", "valid"], "subject": REMOVED, "action": REMOVED, "resource": REMOVED},
        decision=[True, True],
    ),
    "batch-with-context-inheritance": Case(
        {"evaluations": [{}, {"context": {"reason": False}}], "context": {"reason": True}}, decision=[True, True]
    ),
    "batch-with-default-value-merging": Case({"evaluations": [{}, {}]}, decision=[True, True]),
    "per-eval-overrides-default": Case({"evaluations": [{}, _DENIED]}, decision=[True, False]),
    "evaluation-level-errors": Case(
        {"evaluations": [{"resource": "valid"}, {}], "resource": REMOVED}, decision=[True, False]
    ),
    "missing-subject-returns-decision-false": Case({"evaluations": [{}], "subject": REMOVED}, decision=[False]),
    "default-semantic-is-execute-all": _semantic(None, [True, False, True]),
    "execute-all-explicit": _semantic("execute_all", [True, False, True]),
    "deny-on-first-deny": _semantic("deny_on_first_deny", [True, False]),
    "permit-on-first-permit": _semantic("permit_on_first_permit", [True]),
    "unknown-semantic-value": _semantic("bogus_value", [], 400),
    "missing-evaluations-array-backward-compat": Case(decision=True),
    "empty-evaluations-array-backward-compat": Case({"evaluations": []}, decision=True),
    **TRANSPORT,
}
_FOUND = Case(results="some")
SUBJECT_SEARCH: Mapping[str, Case] = {
    "valid-subject-search-request-with-non-empty-results": _FOUND,
    "subject-search-with-subject-id-omitted": _FOUND,
    "subject-search-with-context": Case({"context": {"reason": False}}, results="some"),
    "subject-search-with-resource-properties": Case({"resource.properties": {"project_id": "valid"}}, results="some"),
    "extra-subject-id-ignored": Case({"subject.id": "4711"}, same_as_valid=True),
    "request-with-page-limit": Case({"page": {"limit": 1}}, results="some"),
    "paginated-subject-search": Case({"page": {"limit": 1}}, results="some"),
    "unknown-page-fields": Case({"page": {"limit": 100, "foo": 1}}, same_as_valid=True),
    "unknown-entity-type": Case({"subject.type": "robot"}, results="none"),
    **_MISSING_PARTS,
    "subject-missing-type": _refused(subject__type=REMOVED),
    "action-missing-name": _refused(action__name=REMOVED),
    "action-is-string": _refused(action="sell"),
    "resource-missing-type": _refused(resource__type=REMOVED),
    "resource-missing-id": _refused(resource__id=REMOVED),
    **TRANSPORT,
}
RESOURCE_SEARCH: Mapping[str, Case] = {
    "valid-resource-search-request-with-non-empty-results": _FOUND,
    "resource-search-with-resource-id-omitted": _FOUND,
    "resource-search-with-subject-properties": Case({"subject.properties": {"a": 1}}, same_as_valid=True),
    "extra-resource-id-ignored": Case({"resource.id": "4711"}, same_as_valid=True),
    **_MISSING_PARTS,
    "subject-missing-id": _refused(subject__id=REMOVED),
    "action-missing-name": _refused(action__name=REMOVED),
    "resource-missing-type": _refused(resource__type=REMOVED),
    **TRANSPORT,
}
ACTION_SEARCH: Mapping[str, Case] = {
    "valid-action-search-request-with-non-empty-results": _FOUND,
    "action-search-with-context": Case({"context": {"reason": False}}, same_as_valid=True),
    "action-search-with-properties": Case({"subject.properties": {"a": 1}}, same_as_valid=True),
    "extra-action-ignored": Case({"action": {"name": "steal"}}, same_as_valid=True),
    "unknown-entity-identifier": Case({"subject.id": "999999999"}, results="none"),
    **{name: case for name, case in _MISSING_PARTS.items() if name != "missing-action"},
    "subject-is-string": _refused(subject="ann"),
    "subject-missing-type": _refused(subject__type=REMOVED),
    "subject-missing-id": _refused(subject__id=REMOVED),
    "resource-missing-type": _refused(resource__type=REMOVED),
    "resource-missing-id": _refused(resource__id=REMOVED),
    **TRANSPORT,
}
PATHS: Mapping[str, tuple[str, Mapping[str, Case]]] = {
    "evaluation": ("evaluation", EVALUATION),
    "evaluations": ("evaluations", EVALUATIONS),
    "subject-search": ("search/subject", SUBJECT_SEARCH),
    "resource-search": ("search/resource", RESOURCE_SEARCH),
    "action-search": ("search/action", ACTION_SEARCH),
}
_NOT_APPLICABLE = {
    "evaluation": (
        "fixture-request-permit-based-on-subject-properties",
        "fixture-request-deny-based-on-properties",
    ),
    "evaluations": ("batch-with-properties-validated", "batch-with-subject-properties-validated"),
}
_TITLES = {
    "evaluation": "AuthZEN Evaluation",
    "evaluations": "AuthZEN Evaluations",
    "subject-search": "AuthZEN Subject Search",
    "resource-search": "AuthZEN Resource Search",
    "action-search": "AuthZEN Action Search",
}


def _plan(kind: str) -> Plan:
    modules = [Module(f"authzen-pdp-{kind}-{name}") for name in PATHS[kind][1]]
    modules += [
        Module(f"authzen-pdp-{kind}-{name}", NO_PROPERTIES, ("properties", True))
        for name in _NOT_APPLICABLE.get(kind, ())
    ]
    return Plan(f"authzen-pdp-{kind}-test-plan", _TITLES[kind], tuple(modules))


AUTHZEN_PLANS = tuple(map(_plan, PATHS))
