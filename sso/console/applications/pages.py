"""Applications: the list, the page of an application, and its access keys."""

from typing import Any
from urllib.parse import quote

from quart import Blueprint, Response, request

from sso.console.deletion_pages import (
    MAX_COUNTED,
    Consequences,
    DeletionPage,
    StoredRecord,
    add_deletion,
    count_records,
    count_text,
    day_text,
)
from sso.console.form_pages import Form, FormPage, add_form, on_list
from sso.console.list_pages import ListPage, Record, Variables, add_list
from sso.console.sections import APPLICATIONS
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit

APPLICATION, KEY = "/applications/<application_id>", "/access-keys/<key_id>"
MAX_PROJECT_CHOICES = 50
CSV_COLUMNS = ("application_id", "name", "project_id", "description")


def application_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(APPLICATIONS)
    applications = ListPage(
        APPLICATIONS,
        "/applications",
        "applications",
        "applications/list.html",
        CSV_COLUMNS,
        page=_list_values,
        needs_right=False,  # otherwise there is none yet
    )
    show_list = add_list(console, routes, applications)

    create = FormPage(
        APPLICATIONS,
        "",
        "POST",
        "/applications",
        lambda form, _: {name: form.get(name, "").strip() for name in ("name", "description", "project_id")},
        on_list(show_list),
        "application-created",
        lambda application, _: path_of(application["application_id"]),
    )
    add_form(console, routes, create)

    @routes.get("/<application_id>")
    async def show_application(application_id: str) -> Response:
        return await application_page(await console.open(APPLICATIONS), application_id)

    async def application_page(visit: ConsoleVisit, application_id: str, **context: Any) -> Response:
        application = await visit.data("GET", APPLICATION, application_id=application_id)
        query = {"application_id": application_id}
        roles = await visit.data("GET", "/roles", query={**query, "limit": "200"}) if visit.may("GET", "/roles") else []
        keys = await visit.data("GET", "/access-keys", query=query) if visit.may("GET", "/access-keys") else []
        return await console.show(
            visit,
            "applications/application.html",
            title=application["name"],
            application=application,
            base=path_of(application_id),
            roles=roles,
            keys=keys,
            **context,
        )

    async def show_refused_role(
        visit: ConsoleVisit, variables: Variables, form: Form | None, /, **problem: Any
    ) -> Response:
        name = _new_role(form or {}, variables)["name"]
        return await application_page(visit, variables["application_id"], role_name=name, **problem)

    create_role = FormPage(
        APPLICATIONS,
        "/<application_id>/roles",
        "POST",
        "/roles",
        _new_role,
        show_refused_role,
        "role-created",
        lambda role, variables: f"{path_of(variables['application_id'])}/roles/{quote(role['name'])}",
    )
    add_form(console, routes, create_role)

    @routes.post("/<application_id>/keys")
    async def create_key(application_id: str) -> Response:
        """The value of the key is shown once."""
        visit, form = await console.submitted(APPLICATIONS, "POST", "/access-keys")
        body = {"application_id": application_id, "comment": form.get("comment", "").strip()}
        key = await visit.data("POST", "/access-keys", body=body)
        return await application_page(visit, application_id, new_key=key)

    for deletion in (DELETION, KEY_DELETION):
        add_deletion(console, routes, deletion)
    return routes


async def _consequences(visit: ConsoleVisit, stored: StoredRecord, variables: Variables) -> Consequences:
    name, path = stored.data["name"], own_page(variables)
    roles = await count_records(visit, "/roles", variables)
    keys = await count_records(visit, "/access-keys", variables)
    holders = await count_records(visit, f"{APPLICATION}/holders", **variables)
    ends = ["Nobody has permissions there any more, and game servers get none from it."]
    if roles:
        assigned = f", with {count_text(holders, 'assignment')} to users" if holders else ""
        ends.append(f"{count_text(roles, 'role').capitalize()}{assigned}.")
    if keys:
        ends.append(f"{count_text(keys, 'access key').capitalize()}.")
    if project_id := stored.data["project_id"]:
        project = (await visit.names({"project": [project_id]})).of("project", project_id)
        ends.append(f"The roles that the project {project.text.removeprefix('project ')} gives to groups there.")
    undo = "An administrator with the role root can undo this in the audit trail: everything that it has comes back."
    return Consequences(
        name, ends, undo, path, [(path, name)], asks_name=True, shows_effect=(holders or 0) <= MAX_COUNTED
    )


async def _key_consequences(visit: ConsoleVisit, stored: StoredRecord, variables: Variables) -> Consequences:
    key, path = stored.data, own_page(variables)
    application = await visit.data("GET", APPLICATION, application_id=variables["application_id"])
    used = f"was last used on {day_text(key['last_used'])}" if key.get("last_used") else "was never used"
    ends = [f"Servers that use the key get no permissions any more. It {used}."]
    undo = "This cannot be undone: create a new key, and enter it where the server runs."
    return Consequences(key["comment"] or key["id"], ends, undo, path, [(path, application["name"])])


DELETION = DeletionPage(
    APPLICATIONS,
    "/<application_id>/delete",
    APPLICATION,
    "application",
    "application-deleted",
    lambda _: APPLICATIONS.path,
    _consequences,
    has_dry_run=True,
)
KEY_DELETION = DeletionPage(
    APPLICATIONS,
    "/<application_id>/keys/<key_id>/delete",
    KEY,
    "access key",
    "key-deleted",
    lambda variables: own_page(variables),
    _key_consequences,
)


def _new_role(form: Form, variables: Variables) -> Record:
    return {"application_id": variables["application_id"], "name": form.get("name", "").strip()}


async def _list_values(visit: ConsoleVisit, _: Variables) -> Record:
    chosen = request.args.get("project_id", "").strip()
    return {"projects": await _project_choices(visit), "values": {"project_id": chosen}}


async def _project_choices(visit: ConsoleVisit) -> list[dict[str, Any]]:
    """Returns the projects that the form of a new application suggests."""
    if not (visit.may("GET", "/projects") and visit.may("POST", "/applications")):
        return []
    projects: list[dict[str, Any]] = await visit.data("GET", "/projects", query={"limit": str(MAX_PROJECT_CHOICES)})
    return projects


def path_of(application_id: int | str) -> str:
    return f"{APPLICATIONS.path}/{application_id}"


def own_page(variables: Variables) -> str:
    return path_of(variables["application_id"])
