"""An operation that changes a record in every way that the service offers, and the records that operations need."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.adapters.world import Case, CommandPlace, Way
from tests.kit.long_tests import usual_part

REDIRECT = "https://shop.example.com/done"
PASSWORD = "correct horse battery"
SECRET = "a secret of at least 32 characters."


@dataclass(frozen=True)
class Operation:
    name: str
    effect: Way  # returns the record as it is stored
    prepare: Way = lambda _: None
    endpoint: Way | None = None
    api: Way | None = None
    document: Way | None = None
    command: Callable[[Case], str] | None = None
    console: Way | None = None
    stdin: str = ""

    def ways(self) -> dict[str, Way]:
        ways = {
            "specification": self.endpoint,
            "management API": self.api,
            "document": self.document,
            "console": self.console,
        }
        return {name: way for name, way in ways.items() if way is not None} | self._commands()

    def _commands(self) -> dict[str, Way]:
        """Commands in their three ways; in a usual run in one of them, which differs between the operations."""
        if self.command is None:
            return {}
        return {place: partial(self._run_command, place) for place in usual_part(CommandPlace, 1, len(self.name))}

    def _run_command(self, place: CommandPlace, case: Case) -> str:
        assert self.command is not None
        return case.command(self.command(case), place, self.stdin)


def user_of(case: Case) -> Any:
    found = case.api("GET", f"/users?search={case.login}")
    for user in found:
        case.chosen_ids[user["user_id"]] = "70000"
    return found


def get(path: Callable[[Case], str]) -> Way:
    """Reads a record. None means that there is no such record."""

    def effect(case: Case) -> Any:
        response = case.world.root.get(path(case))
        return None if response.status_code == 404 else response.json()["data"]

    return effect


def groups_of(case: Case) -> Any:
    found = case.api("GET", f"/groups?project_id={case.project_id}")
    for group in found:
        case.chosen_ids[group["group_id"]] = "GROUP"
    return found


client = get(lambda case: f"/clients/{case.client_id}")
provider = get(lambda case: f"/identity-providers/{case.provider_id}")
project = get(lambda case: f"/projects/{case.project_id}")
group = get(lambda case: f"/groups/{case.group_id}")
members = get(lambda case: f"/projects/{case.project_id}/members")
role = get(lambda case: f"/roles/{case.application_id}/scout")
application = get(lambda case: f"/applications/{case.application_id}")
permissions = get(lambda case: f"/users/{case.user_id}/permissions?application_id={case.application_id}")


def member(case: Case) -> None:
    case.user()
    case.project()


def user_and_group(case: Case) -> None:
    case.user()
    case.group()


def joined(case: Case) -> None:
    member(case)
    case.api("POST", f"/projects/{case.project_id}/members", user_id=case.user_id, roles={"project": ["viewer"]})


def assignable(case: Case) -> None:
    case.user()
    case.role()


def assigned(case: Case) -> None:
    assignable(case)
    case.api("PATCH", f"/users/{case.user_id}/permissions", application_id=case.application_id, roles=["scout"])


def saved_client(case: Case) -> None:
    case.apply(
        clients=[
            {
                "client_id": case.client_id,
                "name": "Shop",
                "profile": "strict",
                "redirect_uris": [REDIRECT],
                "client_secret": SECRET,
            }
        ]
    )


def saved_provider(case: Case) -> None:
    case.apply(identity_providers=[{"id": case.provider_id, "kind": "steam"}])


def of_user(case: Case) -> str:
    return f"/console/users/{case.user_id}"


def membership(case: Case, roles: dict[str, Any]) -> list[dict[str, Any]]:
    """The members of the project with other roles of the user."""
    keeper = {"user_id": case.world.studio.keeper.user_id, "roles": {"project": ["admin"]}}
    return [keeper, {"user_id": case.user_id, "roles": roles}] if roles else [keeper]
