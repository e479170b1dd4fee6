"""Permissions with projects, groups and moves: what each user may do is what the reference evaluator says."""

import itertools
from copy import deepcopy
from typing import Any

import httpx
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from tests.kit.server import Server
from tests.models.machine import ServiceMachine, administrator, check_model
from tests.perm.random_scenarios import EMPTY_SCENARIO
from tests.perm.reference_evaluator import ReferenceEvaluator

CENTRAL = 1
TAG = "model_gold"
ROLES = ("crew", "captain")
RULES = ("chat", "kick")
MEMBER_ROLES = ("viewer", "app_admin")
_numbers = itertools.count(1)

user_numbers = st.integers(0, 2)
project_numbers = st.integers(0, 1)
role_names = st.sampled_from(ROLES)
conditions = st.sampled_from([{}, {"tag": TAG}, {"and": [{"everyone": True}, {"tag": TAG}]}])


class Permissions(ServiceMachine):
    def __init__(self) -> None:
        super().__init__()
        number = next(_numbers)
        self.http = httpx.Client(
            base_url=f"{self.server.base_url}/api/admin", headers=administrator(self.server), timeout=60
        )
        self.users = [str(50_000 + 10 * number + offset) for offset in range(3)]
        self.tags = dict(zip(self.users, ([TAG], [], []), strict=True))
        keeper = f"keeper{number}@example.com"
        people = [{"user_id": user_id, "login": f"m{user_id}@example.com"} for user_id in self.users]
        self.server.apply({"users": [*people, {"login": keeper}]})
        for user_id, tags in self.tags.items():
            self._send("PATCH", f"/users/{user_id}", tags=tags)
        self.projects = [self._new_project(f"Model {number} {letter}", keeper) for letter in "AB"]
        self.home: dict[str, Any] | None = self.projects[0]
        created = self._send("POST", "/applications", name=f"Model {number}", project_id=self.projects[0]["id"])
        self.application_id: int = created["application_id"]
        self.roles = {name: self._new_role(name) for name in ROLES}
        self.assigned: dict[str, list[str]] = {user_id: [] for user_id in self.users}
        self.central_roles = [
            {"params": "", **role} for role in self._get("/roles", application_id=CENTRAL, limit=1000)["data"]
        ]

    @rule(name=role_names, rule_name=st.sampled_from(RULES), value=st.booleans(), condition=conditions)
    def change_role(self, name: str, rule_name: str, value: bool, condition: dict[str, Any]) -> None:
        role = self.roles[name]
        role["meta"] = {"private_data": {rule_name: {"value": value}}}
        role["condition"] = condition
        self._send("PATCH", f"/roles/{self.application_id}/{name}", meta=role["meta"], condition=condition)

    @rule(number=user_numbers, names=st.lists(role_names, unique=True))
    def assign(self, number: int, names: list[str]) -> None:
        user_id = self.users[number]
        self._send("PATCH", f"/users/{user_id}/permissions", application_id=self.application_id, roles=names)
        self.assigned[user_id] = names

    @rule(number=user_numbers, has_tag=st.booleans())
    def tag(self, number: int, has_tag: bool) -> None:
        self.tags[self.users[number]] = [TAG] if has_tag else []
        self._send("PATCH", f"/users/{self.users[number]}", tags=self.tags[self.users[number]])

    @rule(project=project_numbers, numbers=st.sets(user_numbers), condition=conditions)
    def change_group(self, project: int, numbers: set[int], condition: dict[str, Any]) -> None:
        (group,) = self.projects[project]["groups"]
        group["users"] = [self.users[number] for number in sorted(numbers)]
        group["conditions"] = [{"title": "c", "condition": condition}] if condition else []
        self._send("PATCH", f"/groups/{group['id']}", users=group["users"], conditions=group["conditions"])

    @rule(name=role_names, action=st.sampled_from(["grant", "revoke", "none"]))
    def change_services(self, name: str, action: str) -> None:
        """The group of the project grants or revokes a role of the application."""
        if self.home is None:
            return
        (group,) = self.home["groups"]
        actions = [{"group_id": group["id"], "role": name, "action": action}] if action != "none" else []
        services = {str(self.application_id): {"groups": actions}}
        self._send("PATCH", f"/projects/{self.home['id']}", settings={"services": services})
        self.home["settings"]["services"] = services

    @rule(project=project_numbers, list_name=st.sampled_from(["allow", "disallow"]), is_listed=st.booleans())
    def change_admission(self, project: int, list_name: str, is_listed: bool) -> None:
        chosen = self.projects[project]
        groups = [group["id"] for group in chosen["groups"] if is_listed]
        other = "disallow" if list_name == "allow" else "allow"
        answer = self.http.patch(f"/projects/{chosen['id']}", json={list_name: groups, other: []})
        if answer.status_code == 200:
            chosen[list_name], chosen[other] = groups, []
        else:  # the only administrator would be excluded
            assert answer.status_code == 409, answer.text

    @rule(
        project=project_numbers, number=user_numbers, at_application=st.booleans(), name=st.sampled_from(MEMBER_ROLES)
    )
    def join(self, project: int, number: int, at_application: bool, name: str) -> None:
        chosen, user_id = self.projects[project], self.users[number]
        if at_application and chosen is self.home:
            roles: dict[str, Any] = {"applications": {str(self.application_id): [name]}}
        else:
            roles = {"project": [name]}
        path = f"/projects/{chosen['id']}/members"
        if user_id in chosen["members"]:
            self._send("PATCH", f"{path}/{user_id}", roles=roles)
        else:
            self._send("POST", path, user_id=user_id, roles=roles)
        chosen["members"][user_id] = roles

    @rule(project=project_numbers, number=user_numbers)
    def leave(self, project: int, number: int) -> None:
        chosen, user_id = self.projects[project], self.users[number]
        answer = self.http.delete(f"/projects/{chosen['id']}/members/{user_id}")
        assert answer.status_code == (200 if chosen["members"].pop(user_id, None) else 404), answer.text

    @rule(destination=st.sampled_from([0, 1, None]))
    def move(self, destination: int | None) -> None:
        """What the project has granted at the application ends, also after a way back."""
        new = None if destination is None else self.projects[destination]
        self._send("PATCH", f"/applications/{self.application_id}", project_id=new and new["id"])
        if new is self.home:
            return
        if self.home:
            self.home["settings"]["services"] = {}
            for user_id, roles in list(self.home["members"].items()):
                if roles.pop("applications", None) and not roles:
                    del self.home["members"][user_id]
        self.home = new

    @invariant()
    def permissions_are_as_expected(self) -> None:
        for user_id in self.users:
            for application_id in (self.application_id, CENTRAL):
                query = {"application_id": application_id, "type": "list"}
                found = self._get(f"/users/{user_id}/permissions", **query)["data"]
                assert found == ReferenceEvaluator(self._parts(user_id, application_id)).full(), (user_id, query)

    def teardown(self) -> None:
        self.http.close()

    def _parts(self, user_id: str, application_id: int) -> dict[str, Any]:
        is_central = application_id == CENTRAL
        user = {"user_id": user_id, "login": f"m{user_id}@example.com", "tags": self.tags[user_id]}
        own = {"roles": [] if is_central else self.assigned[user_id]}
        return EMPTY_SCENARIO | {
            "application_id": application_id,
            "roles": self.central_roles if is_central else list(self.roles.values()),
            "user": {**user, "purchases": [], "ip": None},
            "own": own,
            "home": None if is_central or self.home is None else self._facts(self.home, user_id),
            "projects": [self._facts(project, user_id) for project in self.projects if is_central],
        }

    def _facts(self, project: dict[str, Any], user_id: str) -> dict[str, Any]:
        """Returns the project as the evaluator reads it."""
        application = {"id": self.application_id, "removed": False, "is_service": False}
        facts = deepcopy({name: value for name, value in project.items() if name != "members"})
        facts["applications"] = [application] if project is self.home else []
        return {**facts, "member": project["members"].get(user_id, {})}

    def _new_project(self, title: str, keeper: str) -> dict[str, Any]:
        project_id = self._send("POST", "/projects", title=title, admins=[keeper])["id"]
        group = self._send("POST", "/groups", project_id=project_id, title="Group", tags=["project"])
        return {
            "id": project_id,
            "aliases": [],
            "removed": False,
            "settings": {"services": {}},
            "allow": [],
            "disallow": [],
            "groups": [{"id": group["group_id"], "users": [], "conditions": []}],
            "members": {},
        }

    def _new_role(self, name: str) -> dict[str, Any]:
        meta = {"private_data": {"chat": {"value": True}}}
        self._send("POST", "/roles", application_id=self.application_id, name=name, meta=meta)
        return {"name": name, "meta": meta, "condition": {}, "protected": False, "default": False, "params": ""}

    def _send(self, method: str, path: str, **body: Any) -> Any:
        answer = self.http.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json().get("data")

    def _get(self, path: str, **query: Any) -> Any:
        answer = self.http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()


def test_permissions(server: Server) -> None:
    check_model(Permissions, server)
