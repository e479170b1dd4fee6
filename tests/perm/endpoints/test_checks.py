"""POST /api/permissions/check."""

from typing import Any

import pytest

from sso.perm.authorization import CallerRights
from sso.perm.engine.rights import Rights
from sso.perm.input.questions import Question
from sso.perm.operations.checks import Reasons
from sso.perm.stores.loaded_facts import LoadedFacts
from tests.perm.endpoints.conftest import FACTOR, ApiResponse, ApiUser, Studio
from tests.perm.endpoints.tokens import ServiceKey
from tests.perm.evaluation import NOW, application_of, evaluate, facts_of


class Shop:
    """An application of a project. Ann has a role with rules there, and a role in the project."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.ann, self.bob = studio.users(2)
        self.project = studio.project()
        saved = studio.root.call("project", action="save", data={"id": self.project, "aliases": [f"{self.project}_x"]})
        assert saved.status == 200
        self.app = studio.application(self.project)
        rules = {"sell": {"value": True}, "price": {"set": {"value": True, "params": "gold,silver"}}}
        meta = {"private_data": rules, "public_data": {"badge": {"value": True}}}
        role = {"name": "seller", "meta": meta}
        assert studio.root.call("roles", action="save", application_id=self.app, data=role).status == 200
        studio.save_data(self.ann, self.app, roles=["seller"])
        studio.join(self.project, self.ann, project=["viewer"])

    def ask(self, caller: ApiUser, *questions: dict[str, Any], **fields: Any) -> ApiResponse:
        return caller.call("check", application_id=self.app, data={"questions": list(questions)}, **fields)

    def answers(self, caller: ApiUser, *questions: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
        answers: list[dict[str, Any]] = self.ask(caller, *questions, **fields).data
        return answers


@pytest.fixture(scope="module")
def shop(studio: Studio) -> Shop:
    return Shop(studio)


def test_answers_have_the_order_of_the_questions(shop: Shop) -> None:
    ann, bob = shop.ann.user_id, shop.bob.user_id
    questions = [{"user_id": user_id, "rule": rule} for rule in ("sell", "steal") for user_id in (ann, bob)]
    assert [answer["allow"] for answer in shop.answers(shop.studio.root, *questions)] == [True, False, False, False]
    assert shop.answers(shop.studio.root) == []


def test_rules_and_parameters(shop: Shop) -> None:
    expected: tuple[tuple[dict[str, Any], bool], ...] = (
        ({"rule": "sell"}, True),
        ({"rule": "private_data.sell"}, True),
        ({"rule": "public_data.sell"}, False),
        ({"rule": "public_data.badge"}, True),
        ({"rule": "badge"}, True),
        ({"rule": "price"}, False),
        ({"rule": "price.set"}, True),
        ({"rule": "price.set", "param": "gold"}, True),
        ({"rule": "price.set", "param": "gol"}, False),
        ({"rule": "price.set", "param": ""}, False),
        ({"rule": "price.set|gold,silver"}, False),
        ({"rule": "sell", "param": "anything"}, True),  # a rule without parameters is unlimited
    )
    answers = shop.answers(shop.ann, *(question for question, _ in expected))
    assert [answer["allow"] for answer in answers] == [allow for _, allow in expected]


def test_project_of_an_application_and_rules_in_a_project(shop: Shop) -> None:
    view = {"application_id": 1, "rule": "project.can_view_project"}
    questions: list[dict[str, Any]] = [
        {"rule": "sell", "project_id": shop.project},
        {"rule": "sell", "project_id": f"{shop.project}_x"},
        {"rule": "sell", "project_id": "another"},
        view,
        {**view, "project_id": shop.project},
        {**view, "project_id": f"{shop.project}_x"},
        {**view, "project_id": "another"},
        {"application_id": 1, "rule": f"{shop.project}/project.can_view_project"},
        {"application_id": 1, "rule": f"applications/{shop.app}/app.can_view_app", "project_id": shop.project},
    ]
    expected = [True, True, False, False, True, True, False, True, True]
    assert [answer["allow"] for answer in shop.answers(shop.ann, *questions)] == expected


def test_reasons_are_those_of_explain(shop: Shop) -> None:
    questions = [{"rule": "sell"}, {"rule": "steal"}, {"rule": "sell", "project_id": "another"}]
    answers = shop.answers(shop.ann, *questions, options={"reason": True})
    for question, answer in zip(questions[:2], answers, strict=False):
        body = {"action": "get", "application_id": shop.app, "data": {}, "options": {"explain": question["rule"]}}
        assert answer["reason"] == shop.ann.call("meta/data", **body).body["explain"]
    assert answers[2]["reason"]["reasons"][0]["reason"] == "other_project"
    assert [answer["allow"] for answer in answers] == [True, False, False]


def test_repeated_question_has_the_reason_of_its_user(shop: Shop) -> None:
    questions = [{"rule": rule, "user_id": user.user_id} for rule in ("sell", "x") for user in (shop.ann, shop.bob)]
    answers = shop.answers(shop.studio.root, *questions * 5, options={"reason": True})
    assert answers == answers[:4] * 5
    assert [answer["reason"]["held"] for answer in answers[:4]] == [True, False, False, False]


def test_questions_with_reasons_are_fewer(shop: Shop) -> None:
    refused = shop.ask(shop.ann, *[{"rule": "sell"}] * 21, options={"reason": True})
    expected = "data.questions: must have at most 20 items with options.reason"
    assert (refused.status, refused.body["error"]) == (400, expected)
    assert len(shop.answers(shop.ann, *[{"rule": "sell"}] * 21)) == 21


def test_rule_is_explained_once_in_a_request() -> None:
    facts = LoadedFacts(application_of({}), facts_of({}), True, "", {})
    reasons, sections = Reasons(), frozenset({"roles", "private_data"})
    rights = CallerRights(Rights(evaluate(application_id=1).effective))

    def reason(user_id: str, application_id: int, rule: str) -> dict[str, Any]:
        return reasons.get(Question(user_id, application_id, rule), rights, facts, sections, NOW)

    first = reason("1", 5, "sell")
    assert reason("1", 5, "sell") is first
    others = [reason("2", 5, "sell"), reason("1", 6, "sell"), reason("1", 5, "buy")]
    assert all(other is not first for other in others)


def test_question_that_the_caller_may_not_ask_has_the_error_of_a_get(shop: Shop) -> None:
    """Other questions of the request are answered. An unknown application looks like a forbidden one."""
    secret, public = {"rule": "sell", "user_id": shop.ann.user_id}, {"rule": "badge", "user_id": shop.ann.user_id}
    own, unknown = {"rule": "sell"}, {"rule": "sell", "application_id": 2**31 - 1}
    answers = shop.answers(shop.bob, secret, public, own, unknown)
    assert answers[0] == {"allow": False, "error": "canRead of private is required"}
    assert answers[1:3] == [{"allow": True}, {"allow": False}]
    get = {"action": "get", "data": {}, "application_id": 2**31 - 1}
    assert answers[3] == {"allow": False, "error": shop.bob.call("meta/data", **get).body["error"]}
    removed = shop.studio.application()
    assert shop.studio.root.call("application", action="delete", data={"application_id": removed}).status == 200
    assert shop.answers(shop.bob, {"rule": "x", "application_id": removed}) == [{"allow": False, "error": "removed"}]


def test_reason_needs_the_right_to_read_roles(shop: Shop) -> None:
    question = {"rule": "badge", "user_id": shop.ann.user_id}
    (answer,) = shop.answers(shop.bob, question, options={"reason": True})
    assert answer["allow"] is True
    assert answer["reason"] == {"error": "canRead of roles, private is required"}


def test_unknown_user_is_an_error_of_the_question(shop: Shop) -> None:
    questions = [{"rule": "sell", "user_id": user_id} for user_id in ("999999999", "x", "", shop.ann.user_id)]
    error = {"allow": False, "error": "user not found"}
    assert shop.answers(shop.studio.root, *questions) == [error, error, error, {"allow": True}]


def test_service_asks_about_all_users_of_the_applications_of_its_project(shop: Shop) -> None:
    studio = shop.studio
    key = ServiceKey().trusted_by(studio, shop.app)
    headers = {"Authorization": f"Bearer {shop.bob.jwt}", "Service-Jwt": key.sign(studio.server, shop.app)}
    stranger = studio.application()
    questions = [
        {"rule": "sell", "user_id": shop.ann.user_id},
        {"rule": "sell", "user_id": shop.ann.user_id, "application_id": studio.application(shop.project)},
        {"rule": "sell", "user_id": shop.ann.user_id, "application_id": stranger},
    ]
    response = studio.client.post("/api/permissions/check", json={"data": {"questions": questions}}, headers=headers)
    answers = response.json()["data"]
    assert answers[:2] == [{"allow": True}, {"allow": False}]
    assert answers[2]["error"] == "the service JWT is valid for its own application and those of its project only"


def test_access_key_or_service_jwt_without_a_user_jwt_is_not_sufficient(shop: Shop) -> None:
    """With them alone, only roles can be read."""
    studio = shop.studio
    key = studio.root.call("accessKey", action="save", application_id=shop.app, data={}).data["hash"]
    service = ServiceKey().trusted_by(studio, shop.app).sign(studio.server, shop.app)
    body = {"data": {"questions": [{"rule": "sell", "user_id": shop.ann.user_id, "application_id": shop.app}]}}
    for headers in ({"Authorization": f"Bearer {key}"}, {"Service-Jwt": service}, {"Factor": FACTOR}):
        assert studio.client.post("/api/permissions/check", json=body, headers=headers).status_code == 401


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ({}, "data.questions: must be an array"),
        ({"questions": {}}, "data.questions: must be an array"),
        ({"questions": [{"rule": "x"}] * 101}, "data.questions: must have at most 100 items"),
        ({"questions": ["x"]}, "data.questions[0]: must be an object"),
        ({"questions": [{"rule": "x"}, {}]}, "data.questions[1].rule: must be a string"),
        ({"questions": [{"rule": ""}]}, "data.questions[0].rule: must not be empty"),
        ({"questions": [{"rule": "x" * 513}]}, "data.questions[0].rule: must be at most 512 characters"),
        ({"questions": [{"rule": "x", "user_id": 1}]}, "data.questions[0].user_id: must be a string"),
        ({"questions": [{"rule": "x", "application_id": -1}]}, "data.questions[0].application_id: must be an appl"),
        ({"questions": [{"rule": "x", "param": 1}]}, "data.questions[0].param: must be a string"),
        ({"questions": [{"rule": "x", "project_id": 1}]}, "data.questions[0].project_id: must be a string"),
    ],
)
def test_wrong_input_is_refused_as_a_whole(shop: Shop, data: Any, error: str) -> None:
    response = shop.ann.call("check", application_id=shop.app, data=data)
    assert response.status == 400
    assert error in response.body["error"]


def test_hundred_questions_are_answered(shop: Shop) -> None:
    assert shop.answers(shop.ann, *[{"rule": "sell"}] * 100) == [{"allow": True}] * 100


def test_wrong_options_are_refused_and_unknown_fields_get_a_warning(shop: Shop) -> None:
    assert shop.ask(shop.ann, {"rule": "x"}, options={"reason": 1}).status == 400
    assert shop.ann.call("check", application_id=shop.app).status == 400
    response = shop.ask(shop.ann, {"rule": "x", "nope": 1})
    assert response.body["warnings"] == ["data.questions[0].nope: unknown field, ignored"]


def test_public_rule_with_the_name_of_a_section_is_no_private_rule(studio: Studio) -> None:
    app, user = studio.application(), studio.user()
    schema = {"private_data": {"can_ban": {"value": False, "protected": True}}}
    assert studio.root.call("meta/schema", action="save", application_id=app, data=schema).status == 200
    meta = {"public_data": {"private_data": {"can_ban": {"value": True}}}}
    role = {"name": "default", "default": True, "meta": meta}
    assert studio.root.call("roles", action="save", application_id=app, data=role).status == 200
    questions = [{"rule": name} for name in ("private_data.can_ban", "can_ban", "public_data.private_data.can_ban")]
    answers = user.call("check", application_id=app, data={"questions": questions}).data
    assert [answer["allow"] for answer in answers] == [False, False, True]
