"""`sso perm test FILE`: assertions of a document are checked without a database, and agree with the service."""

from typing import Any

import pytest

from sso.core.field_errors import FieldError
from sso.perm.changes.assertion_check import check_application
from sso.services import Services
from sso.state.document import parse
from sso.state.offline import check_document
from sso.state.position import find_position, located, located_text
from sso.web.body import InvalidBody, parse_body
from tests.state.studio import apply, studio

NOW = 1_795_000_000  # a Wednesday
ASSERTIONS = {
    "ann@example.com may chat.mute": True,  # through the group
    "bob@example.com may chat.mute": True,
    "bob@example.com may chat.ban": True,
    "ann@example.com may chat.ban": False,
    "bob@example.com may not chat.ban": False,
    "only moderator may chat.mute": True,
    "only nobody may chat.ban": False,
    "zoe@example.com may chat.mute": False,
    "zoe@example.com may not chat.mute": True,
    "ann@example.com may chat.mute in red_dawn": True,
    "ann@example.com may chat.mute in blue": False,
}
CENTRAL = {
    "ann@example.com may project.can_manage_project in red_dawn": True,
    "bob@example.com may project.can_manage_project in red_dawn": False,
    "bob@example.com may project.can_view_project in red_dawn": True,
}


def with_assertions(document: dict[str, Any]) -> dict[str, Any]:
    document["applications"][0]["assertions"] = list(ASSERTIONS)
    document["applications"].append({"application_id": 1, "assertions": list(CENTRAL)})
    return document


def failing(document: dict[str, Any], now: int = NOW) -> dict[str, str]:
    return {item.statement: item.reason for _, item in check_document(parse(document), now).failed}


async def test_offline_check_agrees_with_the_service(services: Services) -> None:
    document = with_assertions(studio())
    failed = failing(document)
    assert {text: text not in failed for text in (*ASSERTIONS, *CENTRAL)} == ASSERTIONS | CENTRAL
    assert failed["ann@example.com may chat.ban"] == (
        "ann@example.com may not (neither the schema nor a role of the application has this rule)"
    )
    assert failed["bob@example.com may not chat.ban"] == "bob@example.com may (the user's own data with a,b)"
    await apply(services, studio())
    found: set[str] = set()
    for application_id, statements in ((40, ASSERTIONS), (1, CENTRAL)):
        arguments = services.permissions.facts.stored, application_id, list(statements), NOW
        failures, _ = await services.database.transaction(check_application, *arguments)
        found |= {item.statement for item in failures}
    assert found == set(failed)


def test_time_windows_are_those_of_the_moment() -> None:
    time = {"weekly": [{"days": ["sat"], "from": "10:00", "to": "22:00"}], "zone": "Europe/Berlin"}
    document = {
        "users": [{"login": "ann@example.com"}],
        "applications": [{"application_id": 40, "name": "Tanks", "assertions": ["ann@example.com may chat.mute"]}],
        "roles": {"40": [{"name": "weekend", "condition": {"time": time}, "meta": {"private_data": RULE}}]},
    }
    assert failing(document, 1_795_255_200) == {}
    assert failing(document)["ann@example.com may chat.mute"].endswith(
        "(outside Saturday 10:00-22:00 Europe/Berlin; next begins 2026-11-21 09:00:00Z))"
    )


RULE = {"chat": {"mute": {"value": True}}}
TEXT = """{
  "users": [
    {"login": "ann@example.com"},
    {"login": "bob@example.com",
     "tags": "beta"}
  ],
  "roles": {"40": [{"name": "a", "meta": {}}, {"name": "b",
      "conditon": {}}]}
}
"""


@pytest.mark.parametrize(
    ("path", "position"),
    [
        ((), (1, 1)),
        (("users",), (2, 3)),
        (("users", 1), (4, 5)),
        (("users", 1, "tags"), (5, 6)),
        (("users", 1, "tags", 0), (5, 6)),  # the part that exists
        (("users", 7), (2, 3)),
        (("roles", "40", 1, "conditon"), (8, 7)),
        (("other",), (1, 1)),
    ],
)
def test_position_of_a_path(path: tuple[str | int, ...], position: tuple[int, int]) -> None:
    assert find_position(TEXT, path) == position


def test_errors_begin_with_file_line_and_column() -> None:
    def message(text: str) -> str:
        try:
            parse(parse_body(text.encode(), "application/json").fields)
        except (FieldError, InvalidBody) as error:
            return located("state.json", text, error)
        return ""

    assert message(TEXT) == "state.json:5:6: users[1].tags: must be an array"
    assert message(TEXT.replace('"beta"', '["beta"]')) == "state.json:8:7: roles.40[1].conditon: unknown field"
    assert message(TEXT.replace('"tags"', "tags")) == "state.json:5:6: this is not valid JSON"
    assert message("[]").startswith("state.json:1:1: ")
    assert located_text("s", TEXT, "users[1].tags: no") == "s:5:6: users[1].tags: no"
    assert located_text("s", TEXT, "it is late") == "s:1:1: it is late"
