"""Ids, titles and aliases of projects share one namespace, compared without regard to case, dashes and underscores."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from sso.perm.stores.projects import MAX_REMOVED_PROJECTS
from tests.kit.browser import query
from tests.perm.endpoints.conftest import ApiResponse, ApiUser, Studio
from tests.perm.endpoints.connections import Connection, run_concurrently

pytestmark = pytest.mark.two_workers

COPY = """INSERT INTO projects SELECT (jsonb_populate_record(p, jsonb_build_object('id', p.id || '_' || number))).*
    FROM projects p, generate_series(2, CAST($2 AS int)) number WHERE p.id = $1"""
_numbers = itertools.count(1)


def name() -> str:
    return f"red_dawn_{next(_numbers)}"


def spellings(text: str) -> tuple[str, ...]:
    return text.title(), text.upper(), text.replace("_", "-"), text.title().replace("_", "-", 1)


def publish(studio: Studio, title: str) -> ApiResponse:
    return studio.root.call("publish", project=title)


def save(studio: Studio, project: str, **data: Any) -> ApiResponse:
    return studio.root.call("project", action="save", data={"id": project, **data})


def test_alias_that_equals_the_id_of_another_project_is_a_conflict(studio: Studio) -> None:
    taken, project = name(), studio.project()
    assert publish(studio, taken).status == 200
    for alias in (taken, *spellings(taken)):
        response = save(studio, project, aliases=[alias])
        assert (response.status, response.body["status"]) == (409, "ERROR"), alias


def test_title_whose_id_equals_an_alias_is_a_conflict(studio: Studio) -> None:
    taken, owner, other = name(), studio.project(), studio.project()
    for alias in spellings(taken):
        assert save(studio, owner, aliases=[alias]).status == 200
        assert publish(studio, taken).status == 409
        assert save(studio, other, title=taken.upper().replace("_", " ")).status == 409


def test_aliases_of_two_projects_are_compared_by_their_key(studio: Studio) -> None:
    taken, one, two = name(), studio.project(), studio.project()
    assert save(studio, one, aliases=[taken]).status == 200
    for alias in spellings(taken):
        assert save(studio, two, aliases=[alias]).status == 409, alias
    assert save(studio, one, aliases=[]).status == 200
    assert save(studio, two, aliases=[taken.upper()]).status == 200


def test_spellings_of_one_alias_are_merged_and_spellings_of_the_own_id_rejected(studio: Studio) -> None:
    project, alias = studio.project(), name()
    saved = save(studio, project, aliases=[alias.upper(), *spellings(alias)])
    assert saved.data["aliases"] == [alias.upper()]
    for own in spellings(project):
        assert save(studio, project, aliases=[own]).status == 400


def test_project_is_found_by_every_spelling_of_its_names(studio: Studio) -> None:
    ann, alias = studio.user(), name()
    project = studio.project(ann)
    assert save(studio, project, aliases=[alias]).status == 200
    rules = studio.rules_of(ann, 1, project_id=project)
    assert rules
    for spelling in (*spellings(project), *spellings(alias)):
        assert ann.call("project", action="get", data={"id": spelling}).data["id"] == project
        assert studio.rules_of(ann, 1, project_id=spelling) == rules
        explained = ann.call(
            "meta/data",
            action="get",
            application_id=1,
            data={},
            options={"explain": f"{spelling}/project.can_view_project"},
        )
        assert explained.body["explain"]["held"] is True, spelling


def test_one_project_gets_an_alias_that_many_save_concurrently(studio: Studio) -> None:
    projects = [studio.project() for _ in range(5)]

    def take(project: str, alias: str) -> Callable[[Connection], ApiResponse]:
        return lambda connection: connection.call("project", action="save", data={"id": project, "aliases": [alias]})

    for _ in range(2):
        alias = name()
        names = zip(projects, (alias, *spellings(alias)), strict=True)
        responses = run_concurrently(studio.server, [(studio.root, take(*item)) for item in names])
        assert sorted(response.status for response in responses) == [200] + [409] * 4


@pytest.fixture(scope="module")
def author(studio: Studio) -> ApiUser:
    """A user who may have one project and has removed the maximum number of projects."""
    author = studio.user()
    studio.give_rules(author, can_create_projects="1")
    project_id = author.call("publish", project=name()).data["id"]
    assert author.call("project", action="delete", data={"id": project_id}).status == 200
    query(studio.server, COPY, project_id, MAX_REMOVED_PROJECTS)
    return author


def test_removed_projects_of_an_author_are_limited(studio: Studio, author: ApiUser) -> None:
    response = author.call("publish", project=name())
    assert (response.status, response.body["status"]) == (409, "ERROR")
    assert "removed" in response.body["error"]
    assert author.call("user/info").body["projects"] == 0
    others = studio.user(second_factor=True)
    assert studio.root.call("publish", project=name(), user=others.login).status == 200


def test_name_of_a_removed_project_stays_taken(studio: Studio) -> None:
    project, alias = studio.project(), name()
    assert save(studio, project, aliases=[alias]).status == 200
    assert studio.root.call("project", action="delete", data={"id": project}).status == 200
    assert publish(studio, alias).status == 409
    assert save(studio, studio.project(), aliases=[alias.upper()]).status == 409
