"""The reasons of a rule, each with the page on which it can be changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from sso.console.sections import APPLICATIONS, PROJECTS
from sso.console.visit import ConsoleVisit
from sso.perm.engine.explanation.text import explanation_lines


@dataclass(frozen=True)
class ReasonLine:
    """Reasons of two users are the same if their texts are: the page of an assignment is another for each user."""

    level: int
    text: str
    page: str = field(default="", compare=False)  # "" if there is none, or the administrator may not open it


class ReasonPages(Struct, frozen=True):
    """The pages of the reasons at an application for a user, as far as the administrator may open them."""

    application: str  # its path; "" if the administrator may not see it
    project: str  # the path of all projects
    user_id: str

    @classmethod
    def of(cls, visit: ConsoleVisit, application_id: str, user_id: str) -> "ReasonPages":
        sees_applications, sees_projects = visit.may("GET", "/applications"), visit.may("GET", "/projects")
        return cls(
            f"{APPLICATIONS.path}/{application_id}" if sees_applications else "",
            PROJECTS.path if sees_projects else "",
            user_id,
        )

    def lines(self, explained: dict[str, Any]) -> tuple[ReasonLine, ...]:
        return tuple(ReasonLine(line.level, line.text, self._page(line.about)) for line in explanation_lines(explained))

    def _page(self, about: Mapping[str, Any]) -> str:
        """``about``: the source, grant or reason of the line, with the role that it is about."""
        match about.get("kind") or about.get("layer") or about.get("reason"):
            case "assignment" | "not_assigned" | "expired" if "project_id" not in about:
                return self._at_application(f"users/{self.user_id}")
            case "schema" | "schema_value" | "unknown":
                return self._at_application("schema")
            case "group" | "not_in_group" | "project_closed" if "group_id" in about:
                return self._at_project(about, f"groups/{quote(about['group_id'], safe='')}")
            case "no_membership":
                return self._at_project(about, "")
        if "project_id" in about:
            return self._at_project(about, f"members/{self.user_id}")
        return self._at_application(f"roles/{quote(about['role'], safe='')}") if "role" in about else ""

    def _at_application(self, path: str) -> str:
        return f"{self.application}/{path}" if self.application else ""

    def _at_project(self, about: Mapping[str, Any], path: str) -> str:
        project = f"{self.project}/{quote(about['project_id'], safe='')}"
        return f"{project}/{path}".rstrip("/") if self.project else ""
