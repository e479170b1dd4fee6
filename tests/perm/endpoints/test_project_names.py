"""Ids, titles and aliases of projects share one namespace, compared without regard to case, dashes and underscores."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from sso.perm.stores.projects import MAX_REMOVED_PROJECTS
from tests.perm.endpoints.conftest import Answer, Person, Studio
from tests.perm.endpoints.wires import Wire, together

_numbers = itertools.count(1)


def name() -> str:
    return f"red_dawn_{next(_numbers)}"


def spellings(text: str) -> tuple[str, ...]:
    return text.title(), text.upper(), text.replace("_", "-"), text.title().replace("_", "-", 1)


def publish(studio: Studio, title: str) -> Answer:
    return studio.root.call("publish", project=title)


def save(studio: Studio, project: str, **data: Any) -> Answer:
    return studio.root.call("project", action="save", data={"id": project, **data})


def test_an_alias_that_is_spelled_like_another_projects_id_is_a_conflict(studio: Studio) -> None:
    taken, project = name(), studio.project()
    assert publish(studio, taken).status == 200
    for alias in (taken, *spellings(taken)):
        answer = save(studio, project, aliases=[alias])
        assert (answer.status, answer.body["status"]) == (409, "ERROR"), alias


def test_a_title_that_makes_the_name_of_an_alias_is_a_conflict(studio: Studio) -> None:
    for spell in range(4):
        taken = name()
        assert save(studio, studio.project(), aliases=[spellings(taken)[spell]]).status == 200
        assert publish(studio, taken).status == 409
        assert save(studio, studio.project(), title=taken.upper().replace("_", " ")).status == 409


def test_aliases_of_two_projects_are_compared_in_one_form(studio: Studio) -> None:
    taken, one, two = name(), studio.project(), studio.project()
    assert save(studio, one, aliases=[taken]).status == 200
    for alias in spellings(taken):
        assert save(studio, two, aliases=[alias]).status == 409, alias
    assert save(studio, one, aliases=[]).status == 200
    assert save(studio, two, aliases=[taken.upper()]).status == 200


def test_spellings_of_one_alias_are_one_alias_and_no_spelling_of_the_own_id_is(studio: Studio) -> None:
    project, alias = studio.project(), name()
    saved = save(studio, project, aliases=[alias.upper(), *spellings(alias)])
    assert saved.data["aliases"] == [alias.upper()]
    for own in spellings(project):
        assert save(studio, project, aliases=[own]).status == 400


def test_a_project_is_found_by_every_spelling(studio: Studio) -> None:
    ann, alias = studio.person(), name()
    project = studio.project(ann)
    assert save(studio, project, aliases=[alias]).status == 200
    for said in (*spellings(project), *spellings(alias)):
        assert ann.call("project", action="get", data={"id": said}).data["id"] == project
        assert studio.rules_of(ann, 1, project_id=said) == studio.rules_of(ann, 1, project_id=project) != []
        explained = ann.call(
            "meta/data",
            action="get",
            application_id=1,
            data={},
            options={"explain": f"{said}/project.can_view_project"},
        )
        assert explained.body["explain"]["held"] is True, said


def test_of_aliases_in_many_spellings_at_the_same_instant_one_project_gets_it(studio: Studio) -> None:
    for _ in range(3):
        alias = name()
        projects = [studio.project() for _ in range(8)]
        said = itertools.cycle((alias, *spellings(alias)))

        def take(project: str, alias: str) -> Callable[[Wire], Answer]:
            return lambda wire: wire.call("project", action="save", data={"id": project, "aliases": [alias]})

        answers = together(studio.server, [(studio.root, take(project, next(said))) for project in projects])
        assert sorted(answer.status for answer in answers) == [200] + [409] * 7


@pytest.fixture(scope="module")
def author(studio: Studio) -> Person:
    """Somebody who may have one project, and has removed as many as an author may."""
    author = studio.person()
    studio.give_rules(author, can_create_projects="1")
    for _ in range(MAX_REMOVED_PROJECTS):
        made = author.call("publish", project=name()).data["id"]
        assert author.call("project", action="delete", data={"id": made}).status == 200
    return author


def test_removed_projects_of_an_author_are_limited(studio: Studio, author: Person) -> None:
    answer = author.call("publish", project=name())
    assert (answer.status, answer.body["status"]) == (409, "ERROR")
    assert "removed" in answer.body["error"]
    assert author.call("user/info").body["projects"] == 0
    others = studio.person(second_factor=True)
    assert studio.root.call("publish", project=name(), user=others.login).status == 200


def test_the_name_of_a_removed_project_stays_taken(studio: Studio) -> None:
    project, alias = studio.project(), name()
    assert save(studio, project, aliases=[alias]).status == 200
    assert studio.root.call("project", action="delete", data={"id": project}).status == 200
    assert publish(studio, alias).status == 409
    assert save(studio, studio.project(), aliases=[alias.upper()]).status == 409
