"""What the pages of a project have in common: its record, tabs and paths."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from sso.console.lists import read_all
from sso.console.sections import PROJECTS
from sso.console.visit import ConsoleVisit

PROJECT = "/projects/<project_id>"
MAX_CHOICES = 200  # in a list to choose from: a page of the management API
MAX_GROUPS = 1000  # in a project


def path_of(project_id: str) -> str:
    return f"{PROJECTS.path}/{quote(project_id, safe='')}"


def name_of(project: Mapping[str, Any]) -> str:
    """Returns the name of a project for people."""
    return str(project["display_name"] or project["title"])


def own_page(variables: Mapping[str, str]) -> str:
    return path_of(variables["project_id"])


def project_page(project: dict[str, Any], tab: str, title: str = "", *above: tuple[str, str]) -> dict[str, Any]:
    """Returns the template values of a page of a project. A page below a tab has a title of its own."""
    base = path_of(project["id"])
    name = name_of(project)
    crumbs = [(base, name), *above] if title else []
    return {"title": title or name, "crumbs": crumbs, "project": project, "base": base, "tab": tab}


def group_page(
    project: dict[str, Any], project_id: str, tab: str, title: str = "", *above: tuple[str, str]
) -> dict[str, Any]:
    """Like `project_page`, also for a project that `find_project` hides."""
    if project:
        return project_page(project, tab, title, *above)
    title = title or {"groups": "Groups", "tester": "Condition tester"}[tab]
    return {"title": title, "crumbs": above, "project": project, "base": path_of(project_id), "tab": tab}


async def read_project(visit: ConsoleVisit, project_id: str) -> dict[str, Any]:
    project: dict[str, Any] = await visit.data("GET", PROJECT, project_id=project_id)
    return project


async def find_project(visit: ConsoleVisit, project_id: str) -> dict[str, Any]:
    """Returns {} to those who may manage groups of the project and not see the project itself.

    Raises NotFound or Forbidden.
    """
    if visit.own.groups and not visit.may("GET", PROJECT):
        query = {"project_id": project_id, "limit": "1"}
        if await visit.data("GET", "/groups", query=query):
            return {}
    return await read_project(visit, project_id)


async def groups_of(visit: ConsoleVisit, project_id: str) -> list[dict[str, Any]]:
    return await read_all(visit, "/groups", {"project_id": project_id}, MAX_CHOICES, MAX_GROUPS)


async def group_choices(visit: ConsoleVisit, project_id: str) -> list[tuple[str, str]]:
    """Returns the ids and titles of the groups."""
    return [(group["group_id"], group["title"]) for group in await groups_of(visit, project_id)]


async def applications_of(visit: ConsoleVisit, project_id: str) -> list[dict[str, Any]]:
    """Returns the applications of the project that the administrator may see."""
    if not visit.may("GET", "/applications"):
        return []
    query = {"project_id": project_id, "limit": str(MAX_CHOICES)}
    applications: list[dict[str, Any]] = await visit.data("GET", "/applications", query=query)
    return applications
