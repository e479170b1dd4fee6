"""Changes with a wrong field, in every way."""

from dataclasses import dataclass

from tests.adapters.operation import Operation, client, group, project, role, user_of
from tests.adapters.world import RULES


@dataclass(frozen=True)
class WrongInput:
    """A change with a wrong field. ``prefixes`` are what a way puts in front of the path of the field."""

    operation: Operation
    field: str
    option: str = ""  # of the command, instead of the field
    document: str = ""  # the record in the document
    endpoint: str = ""  # the prefix of the specification's endpoint
    console: str = ""  # the text at the field, if it is in other words


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
        console="The title can have up to 32 letters, digits and spaces.",
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
