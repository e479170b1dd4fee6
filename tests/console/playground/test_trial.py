"""The playground refuses what is wrong with the field and the line, and adds records that the service would take."""

from contextlib import suppress
from typing import Any

import pytest

from sso.console.playground.additions import ADDITIONS, add, as_text
from sso.console.playground.trial import MAX_PEOPLE, DocumentQuestion, try_document
from sso.core.field_errors import FieldError

NOW = 1_795_000_000
DOCUMENT: dict[str, Any] = {
    "users": [{"login": "ann@example.com"}],
    "applications": [{"application_id": 10, "name": "Tanks"}, {"application_id": 11, "name": "Ships"}],
    "roles": {"10": [{"name": "moderator", "meta": {"private_data": {"chat": {"mute": {"value": True}}}}}]},
}


TEXT = as_text(DOCUMENT)
CROWD = as_text({"users": [{"login": f"u{number}@example.com"} for number in range(MAX_PEOPLE + 1)]})
NO_APPLICATION = "application_id: expected one of 10, 11"


@pytest.mark.parametrize(
    ("text", "question", "error"),
    [
        ("{", (), "document: is not valid JSON (line 1, column 2)"),
        ("[]", (), "document: must be one JSON object"),
        ('{"users": [{"login": "a@b.c"},\n  {"nick": ""}]}', (), "document: line 2, column 3: users[1].login: is r"),
        (TEXT, ("", "", "chat.mute"), NO_APPLICATION),
        (TEXT, ("", "12", "chat.mute"), NO_APPLICATION),
        (TEXT, ("bob@example.com", "10", "a"), "user: there is no user bob@example.com in the document"),
        (TEXT, ("", "10", "a" * 300), "rule: expected at most 200 letters"),
        (TEXT, ("", "", "", "yesterday"), "at: expected a date and time in UTC such as"),
        (CROWD, (), "document: users: expected at most 200"),
        (
            as_text({"roles": {"10": [{"name": f"r{number}"} for number in range(201)]}}),
            (),
            "document: roles: expected",
        ),
        (" " * 70_000, (), "document: is larger than"),
    ],
)
def test_wrong_input_is_refused(text: str, question: tuple[str, ...], error: str) -> None:
    with pytest.raises(FieldError) as refused:
        try_document(text, DocumentQuestion(*question), NOW)
    assert str(refused.value).startswith(error)


def test_documents_are_made_by_additions() -> None:
    document: dict[str, Any] = {}
    chosen = {"application_id": "10"}
    steps = {
        "person": {"new_login": "ann@example.com", "new_tags": "beta, staff"},
        "rule": {"new_rule": "chat.mute"},
        "role": {"new_role": "moderator", "new_role_rules": "chat.mute chat.ban"},
        "assignment": {"given_to": "ann@example.com", "given_role": "moderator"},
        "assertion": {"statement": "only moderator may chat.ban"},
        "group": {"group_title": "Testers", "group_tag": "beta", "group_role": "moderator"},
    }
    assert steps.keys() == ADDITIONS.keys()
    for kind, fields in steps.items():
        add(document, kind, chosen | fields)
        with pytest.raises(FieldError):  # a second time
            add(document, kind, chosen | fields)
    trial = try_document(as_text(document), DocumentQuestion("ann@example.com", "10", "chat.ban"), NOW)
    [answer] = trial.answers
    assert (answer.allowed, trial.assertions, trial.failed) == (True, 1, [])
    assert {line.text.partition(" ")[0] for line in answer.reasons} == {"role", "assigned", "granted"}
    add(document, "person", {"new_login": "bob@example.com"})
    add(document, "assertion", {"statement": "bob@example.com may chat.mute"})
    trial = try_document(as_text(document), DocumentQuestion(), NOW)
    assert [item.failure.statement for item in trial.failed] == ["bob@example.com may chat.mute"]


@pytest.mark.parametrize("kind", ADDITIONS)
@pytest.mark.parametrize("section", ["users", "applications", "permissions", "schemas", "roles", "projects", "groups"])
def test_additions_to_a_wrong_document_are_refused(kind: str, section: str) -> None:
    names = "new_login new_rule new_role new_role_rules given_to given_role group_title group_tag group_role statement"
    for wrong in (7, [7], {"10": 7}):
        with suppress(FieldError):  # or the section is of no concern
            add({section: wrong}, kind, dict.fromkeys(names.split(), "x"))


def test_names_of_rules_are_not_deep() -> None:
    for kind, field in (("rule", "new_rule"), ("role", "new_role_rules")):
        with pytest.raises(FieldError, match=f"{field}: expected at most 32 parts"):
            add({}, kind, {"new_role": "deep", field: ".".join("a" * 300)})


def test_answers_about_everybody_stay_short() -> None:
    document = {
        "users": [{"login": f"u{number}@example.com", "tags": ["t"]} for number in range(60)],
        "applications": [{"application_id": 10, "name": "Tanks"}],
        "roles": {
            "10": [
                {"name": f"r{number}", "condition": {"tag": "t"}, "meta": {"private_data": {"a": {"value": True}}}}
                for number in range(100)
            ]
        },
    }
    trial = try_document(as_text(document), DocumentQuestion(rule="a"), NOW)
    assert [len(answer.reasons) for answer in trial.answers] == [30] * 20 + [0] * 40
    assert all(answer.allowed for answer in trial.answers)
