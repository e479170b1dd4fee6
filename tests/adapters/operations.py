"""The operations that change records, and how each is done in every way that the service offers.

A way that an operation does not have is missing: a document deletes nothing, and the specification has no clients.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.adapters.world import RULES, Case, CommandPlace, Way
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


USERS = (
    Operation(
        "create a user",
        user_of,
        api=lambda case: case.api(
            "POST", "/users", login=case.login, nick="Ann", password=PASSWORD, email_verified=True
        ),
        document=lambda case: case.apply(
            users=[{"login": case.login, "nick": "Ann", "password": PASSWORD, "email_verified": True}]
        ),
        command=lambda case: f"user add {case.login} --nick Ann --verified --password-stdin",
        console=lambda case: case.form(
            "/console/users/new",
            "/console/users/new",
            login=case.login,
            nick="Ann",
            password=PASSWORD,
            email_verified="1",
        ),
        stdin=f"{PASSWORD}\n",
    ),
    Operation(
        "change a user",
        user_of,
        lambda case: case.user(nick="Ann"),
        api=lambda case: case.api("PATCH", f"/users/{case.user_id}", nick="Eve", tags=["beta"]),
        document=lambda case: case.user(nick="Eve", tags=["beta"]),
        console=lambda case: case.form(of_user(case), of_user(case), nick="Eve", tags="beta"),
    ),
    Operation(
        "disable a user",
        user_of,
        lambda case: case.user(nick="Ann"),
        api=lambda case: case.api("PATCH", f"/users/{case.user_id}", disabled=True),
        document=lambda case: case.user(disabled=True),
        command=lambda case: f"user disable {case.login}",
        console=lambda case: case.form(of_user(case), f"{of_user(case)}/disable"),
    ),
    Operation(
        "enable a user",
        user_of,
        lambda case: case.user(nick="Ann", disabled=True),
        api=lambda case: case.api("PATCH", f"/users/{case.user_id}", disabled=False),
        document=lambda case: case.user(disabled=False),
        command=lambda case: f"user enable {case.login}",
        console=lambda case: case.form(of_user(case), f"{of_user(case)}/enable"),
    ),
    Operation(
        "set a password",
        user_of,
        lambda case: case.user(nick="Ann", password="an old password"),
        api=lambda case: case.api("PATCH", f"/users/{case.user_id}", password=PASSWORD),
        document=lambda case: case.user(password=PASSWORD),
        command=lambda case: f"user set-password {case.login} --password-stdin",
        console=lambda case: case.form(f"{of_user(case)}/security", f"{of_user(case)}/password", password=PASSWORD),
        stdin=f"{PASSWORD}\n",
    ),
    Operation(
        "end the sessions of a user",
        user_of,
        lambda case: case.user(nick="Ann"),
        api=lambda case: case.api("DELETE", f"/users/{case.user_id}/sessions"),
        command=lambda case: f"user end-sessions {case.login}",
        console=lambda case: case.form(f"{of_user(case)}/sign-ins", f"{of_user(case)}/sessions/end"),
    ),
    Operation(
        "reset the second factors of a user",
        user_of,
        lambda case: case.user(nick="Ann", email_2fa=True, email_verified=True),
        api=lambda case: case.api("DELETE", f"/users/{case.user_id}/factors"),
        command=lambda case: f"user reset-2fa {case.login}",
        console=lambda case: case.form(f"{of_user(case)}/security", f"{of_user(case)}/factors/reset"),
    ),
    Operation(
        "delete a user",
        user_of,
        lambda case: case.user(nick="Ann"),
        api=lambda case: case.api("DELETE", f"/users/{case.user_id}"),
        command=lambda case: f"user delete {case.login} --yes",
        console=lambda case: case.form(of_user(case), f"{of_user(case)}/delete"),
    ),
)

SERVICE = (
    Operation(
        "create a client",
        client,
        api=lambda case: case.api(
            "POST",
            "/clients",
            client_id=case.client_id,
            name="Shop",
            profile="strict",
            redirect_uris=[REDIRECT],
            client_secret=SECRET,
        ),
        document=saved_client,
        command=lambda case: (
            f"client add {case.client_id} --name Shop --profile strict --redirect-uri {REDIRECT} --secret-stdin"
        ),
        stdin=f"{SECRET}\n",
    ),
    Operation(
        "change a client",
        client,
        saved_client,
        api=lambda case: case.api("PATCH", f"/clients/{case.client_id}", redirect_uris=[REDIRECT, f"{REDIRECT}/2"]),
        document=lambda case: case.apply(
            clients=[{"client_id": case.client_id, "redirect_uris": [REDIRECT, f"{REDIRECT}/2"]}]
        ),
        command=lambda case: f"client set {case.client_id} --redirect-uri {REDIRECT} --redirect-uri {REDIRECT}/2",
        console=lambda case: case.form(
            f"/console/clients/{case.client_id}",
            f"/console/clients/{case.client_id}",
            redirect_uris=f"{REDIRECT}\n{REDIRECT}/2",
        ),
    ),
    Operation(
        "disable a client",
        client,
        saved_client,
        api=lambda case: case.api("PATCH", f"/clients/{case.client_id}", disabled=True),
        command=lambda case: f"client disable {case.client_id}",
        console=lambda case: case.form(
            f"/console/clients/{case.client_id}", f"/console/clients/{case.client_id}/disable"
        ),
    ),
    Operation(
        "create an identity provider",
        provider,
        api=lambda case: case.api("POST", "/identity-providers", id=case.provider_id, kind="steam"),
        document=saved_provider,
        command=lambda case: f"idp add {case.provider_id} --kind steam",
    ),
    Operation(
        "delete an identity provider",
        provider,
        saved_provider,
        api=lambda case: case.api("DELETE", f"/identity-providers/{case.provider_id}"),
        command=lambda case: f"idp delete {case.provider_id} --yes",
        console=lambda case: case.form(
            f"/console/identity-providers/{case.provider_id}",
            f"/console/identity-providers/{case.provider_id}/delete",
        ),
    ),
)

PROJECTS = (
    Operation(
        "create a project",
        project,
        api=lambda case: case.api(
            "POST", "/projects", title=case.project_id, admins=[case.world.studio.keeper.user_id]
        ),
        document=lambda case: case.project(),
        command=lambda case: f"project add {case.project_id} --admin {case.world.studio.keeper.user_id}",
    ),
    Operation(
        "change a project",
        project,
        lambda case: case.project(),
        endpoint=lambda case: case.endpoint(
            "project",
            action="save",
            data={"id": case.project_id, "description": "A game", "aliases": [f"a{case.number}"]},
        ),
        api=lambda case: case.api(
            "PATCH", f"/projects/{case.project_id}", description="A game", aliases=[f"a{case.number}"]
        ),
        document=lambda case: case.apply(
            projects=[{"title": case.project_id, "description": "A game", "aliases": [f"a{case.number}"]}]
        ),
        command=lambda case: f"project change {case.project_id} --description 'A game' --alias a{case.number}",
    ),
    Operation(
        "delete a project",
        project,
        lambda case: case.project(),
        endpoint=lambda case: case.endpoint("project", action="delete", data={"id": case.project_id}),
        api=lambda case: case.api("DELETE", f"/projects/{case.project_id}"),
        command=lambda case: f"project delete {case.project_id} --yes",
        console=lambda case: case.form(
            f"/console/projects/{case.project_id}", f"/console/projects/{case.project_id}/delete"
        ),
    ),
    Operation(
        "add a member",
        members,
        member,
        endpoint=lambda case: case.endpoint(
            "project/membership",
            action="save",
            data={"id": case.project_id, "users": membership(case, {"project": ["viewer"]})},
        ),
        api=lambda case: case.api(
            "POST", f"/projects/{case.project_id}/members", user_id=case.user_id, roles={"project": ["viewer"]}
        ),
        document=lambda case: case.apply(
            memberships=[{"id": case.project_id, "users": membership(case, {"project": ["viewer"]})}]
        ),
        command=lambda case: f"project member add {case.project_id} {case.user_id} viewer",
        console=lambda case: case.form(
            f"/console/projects/{case.project_id}",
            f"/console/projects/{case.project_id}/members",
            user=case.user_id,
            role="viewer",
        ),
    ),
    Operation(
        "remove a member",
        members,
        joined,
        endpoint=lambda case: case.endpoint(
            "project/membership", action="save", data={"id": case.project_id, "users": membership(case, {})}
        ),
        api=lambda case: case.api("DELETE", f"/projects/{case.project_id}/members/{case.user_id}"),
        document=lambda case: case.apply(memberships=[{"id": case.project_id, "users": membership(case, {})}]),
        command=lambda case: f"project member delete {case.project_id} {case.user_id}",
        console=lambda case: case.form(
            f"/console/projects/{case.project_id}",
            f"/console/projects/{case.project_id}/members/{case.user_id}/remove",
        ),
    ),
    Operation(
        "create a group",
        groups_of,
        lambda case: case.project(),
        endpoint=lambda case: case.endpoint(
            "group", action="save", data={"project_id": case.project_id, "title": "Testers"}
        ),
        api=lambda case: case.api("POST", "/groups", project_id=case.project_id, title="Testers"),
        document=lambda case: case.apply(
            groups=[{"group_id": case.group_id, "project_id": case.project_id, "title": "Testers"}]
        ),
        command=lambda case: f"group add Testers --project {case.project_id}",
        console=lambda case: case.form(
            f"/console/projects/{case.project_id}/groups",
            f"/console/projects/{case.project_id}/groups",
            title="Testers",
        ),
    ),
    Operation(
        "change a group",
        group,
        lambda case: case.group(),
        endpoint=lambda case: case.endpoint(
            "group", action="save", group_id=case.group_id, data={"title": "Testers", "description": "They test"}
        ),
        api=lambda case: case.api("PATCH", f"/groups/{case.group_id}", title="Testers", description="They test"),
        document=lambda case: case.apply(
            groups=[{"group_id": case.group_id, "title": "Testers", "description": "They test"}]
        ),
        command=lambda case: f"group change {case.group_id} --title Testers --description 'They test'",
        console=lambda case: case.form(
            f"/console/projects/{case.project_id}/groups/{case.group_id}",
            f"/console/projects/{case.project_id}/groups/{case.group_id}",
            title="Testers",
            description="They test",
        ),
    ),
    Operation(
        "add a user to a group",
        group,
        user_and_group,
        endpoint=lambda case: case.endpoint("group/access", group_id=case.group_id, data={"users": [case.user_id]}),
        api=lambda case: case.api("PATCH", f"/groups/{case.group_id}", users=[case.user_id]),
        document=lambda case: case.apply(groups=[{"group_id": case.group_id, "users": [case.user_id]}]),
        command=lambda case: f"group member add {case.group_id} {case.user_id}",
        console=lambda case: case.form(
            f"/console/projects/{case.project_id}/groups/{case.group_id}",
            f"/console/projects/{case.project_id}/groups/{case.group_id}",
            users=case.user_id,
        ),
    ),
    Operation(
        "delete a group",
        group,
        lambda case: case.group(),
        endpoint=lambda case: case.endpoint("group", action="delete", group_id=case.group_id, data={}),
        api=lambda case: case.api("DELETE", f"/groups/{case.group_id}"),
        command=lambda case: f"group delete {case.group_id} --yes",
        console=lambda case: case.form(
            f"/console/projects/{case.project_id}/groups/{case.group_id}",
            f"/console/projects/{case.project_id}/groups/{case.group_id}/delete",
        ),
    ),
)

APPLICATIONS = (
    Operation(
        "change an application",
        application,
        lambda case: case.application(),
        endpoint=lambda case: case.endpoint(
            "application",
            action="save",
            data={"application_id": case.application_id, "name": f"app{case.number}", "description": "A game"},
        ),
        api=lambda case: case.api("PATCH", f"/applications/{case.application_id}", description="A game"),
        document=lambda case: case.apply(
            applications=[{"application_id": case.application_id, "description": "A game"}]
        ),
    ),
    Operation(
        "create a role",
        role,
        lambda case: case.application(),
        endpoint=lambda case: case.endpoint(
            "roles", action="save", application_id=case.application_id, data={"name": "scout", "meta": RULES}
        ),
        api=lambda case: case.api("POST", "/roles", application_id=case.application_id, name="scout", meta=RULES),
        document=lambda case: case.apply(roles={str(case.application_id): [{"name": "scout", "meta": RULES}]}),
        command=lambda case: f"role add scout --app {case.application_id} --rule chat.mute",
    ),
    Operation(
        "change a role",
        role,
        lambda case: case.role(),
        endpoint=lambda case: case.endpoint(
            "roles",
            action="save",
            application_id=case.application_id,
            data={"name": "scout", "meta": RULES, "description": "Looks around"},
        ),
        api=lambda case: case.api("PATCH", f"/roles/{case.application_id}/scout", description="Looks around"),
        document=lambda case: case.apply(
            roles={str(case.application_id): [{"name": "scout", "meta": RULES, "description": "Looks around"}]}
        ),
        command=lambda case: f"role change scout --app {case.application_id} --description 'Looks around'",
        console=lambda case: case.form(
            f"/console/applications/{case.application_id}/roles/scout",
            f"/console/applications/{case.application_id}/roles/scout",
            description="Looks around",
        ),
    ),
    Operation(
        "delete a role",
        role,
        lambda case: case.role(),
        endpoint=lambda case: case.endpoint(
            "roles", action="delete", application_id=case.application_id, data={"name": "scout"}
        ),
        api=lambda case: case.api("DELETE", f"/roles/{case.application_id}/scout"),
        command=lambda case: f"role delete scout --app {case.application_id} --yes",
        console=lambda case: case.form(
            f"/console/applications/{case.application_id}/roles/scout",
            f"/console/applications/{case.application_id}/roles/scout/delete",
        ),
    ),
    Operation(
        "assign a role",
        permissions,
        assignable,
        endpoint=lambda case: case.endpoint(
            "meta/data",
            action="save",
            application_id=case.application_id,
            data={"user_id": case.user_id, "roles": ["scout"]},
        ),
        api=lambda case: case.api(
            "PATCH", f"/users/{case.user_id}/permissions", application_id=case.application_id, roles=["scout"]
        ),
        document=lambda case: case.apply(
            permissions=[{"user_id": case.user_id, "application_id": case.application_id, "data": {"roles": ["scout"]}}]
        ),
        command=lambda case: f"role assign {case.user_id} scout --app {case.application_id}",
    ),
    Operation(
        "unassign a role",
        permissions,
        assigned,
        endpoint=lambda case: case.endpoint(
            "meta/data", action="save", application_id=case.application_id, data={"user_id": case.user_id, "roles": []}
        ),
        api=lambda case: case.api(
            "PATCH", f"/users/{case.user_id}/permissions", application_id=case.application_id, roles=[]
        ),
        document=lambda case: case.apply(
            permissions=[{"user_id": case.user_id, "application_id": case.application_id, "data": {"roles": []}}]
        ),
        command=lambda case: f"role unassign {case.user_id} scout --app {case.application_id}",
    ),
)

OPERATIONS = (*USERS, *SERVICE, *PROJECTS, *APPLICATIONS)


@dataclass(frozen=True)
class WrongInput:
    """A change with a wrong field. ``prefixes`` are what a way puts in front of the path of the field."""

    operation: Operation
    field: str
    option: str = ""  # of the command, instead of the field
    document: str = ""  # the record in the document
    endpoint: str = ""  # the prefix of the specification's endpoint


LONG = "x" * 2000
BAD_URI = "ftp://shop.example.com/x#frag"
WRONG = (
    WrongInput(
        Operation(
            "redirect URI of another scheme",
            client,
            api=lambda case: case.api("POST", "/clients", client_id=case.client_id, redirect_uris=[BAD_URI]),
            document=lambda case: case.apply(clients=[{"client_id": case.client_id, "redirect_uris": [BAD_URI]}]),
            command=lambda case: f"client add {case.client_id} --profile strict --redirect-uri '{BAD_URI}'",
        ),
        "redirect_uris[0]",
        option="--redirect-uri",
        document="clients[0]",
    ),
    WrongInput(
        Operation(
            "login that is no address",
            user_of,
            api=lambda case: case.api("POST", "/users", login="nobody"),
            document=lambda case: case.apply(users=[{"login": "nobody"}]),
            command=lambda _: "user add nobody",
            console=lambda _: _.form("/console/users/new", "/console/users/new", login="nobody"),
        ),
        "login",
        option="LOGIN",
        document="users[0]",
    ),
    WrongInput(
        Operation(
            "title of a group with a slash",
            group,
            lambda case: case.group(),
            endpoint=lambda case: case.endpoint("group", action="save", group_id=case.group_id, data={"title": "a/b"}),
            api=lambda case: case.api("PATCH", f"/groups/{case.group_id}", title="a/b"),
            document=lambda case: case.apply(groups=[{"group_id": case.group_id, "title": "a/b"}]),
            command=lambda case: f"group change {case.group_id} --title a/b",
            console=lambda case: case.form(
                f"/console/projects/{case.project_id}/groups/{case.group_id}",
                f"/console/projects/{case.project_id}/groups/{case.group_id}",
                title="a/b",
            ),
        ),
        "title",
        option="--title",
        document="groups[0]",
    ),
    WrongInput(
        Operation(
            "alias of a project with a dot",
            project,
            lambda case: case.project(),
            endpoint=lambda case: case.endpoint(
                "project", action="save", data={"id": case.project_id, "aliases": ["a.b"]}
            ),
            api=lambda case: case.api("PATCH", f"/projects/{case.project_id}", aliases=["a.b"]),
            document=lambda case: case.apply(projects=[{"title": case.project_id, "aliases": ["a.b"]}]),
            command=lambda case: f"project change {case.project_id} --alias a.b",
        ),
        "aliases[0]",
        option="--alias",
        document="projects[0]",
    ),
    WrongInput(
        Operation(
            "description of a role that is too long",
            role,
            lambda case: case.role(),
            endpoint=lambda case: case.endpoint(
                "roles",
                action="save",
                application_id=case.application_id,
                data={"name": "scout", "meta": RULES, "description": LONG},
            ),
            api=lambda case: case.api("PATCH", f"/roles/{case.application_id}/scout", description=LONG),
            document=lambda case: case.apply(
                roles={str(case.application_id): [{"name": "scout", "meta": RULES, "description": LONG}]}
            ),
            command=lambda case: f"role change scout --app {case.application_id} --description {LONG}",
            console=lambda case: case.form(
                f"/console/applications/{case.application_id}/roles/scout",
                f"/console/applications/{case.application_id}/roles/scout",
                description=LONG,
            ),
        ),
        "description",
        option="--description",
        document="roles.70000[0]",
    ),
)
