"""Applications: the list, and the tabs of an application with its roles and access keys."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from quart import Blueprint, Response, request

from sso.admin.request import AdminResponse
from sso.console.applications.frame import APPLICATION, application_page, own_page, path_of
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
from sso.console.form_pages import Form, FormPage, add_form, new_record
from sso.console.list_pages import ListPage, PageValues, Record, Variables, add_list
from sso.console.listing import FilterChoice
from sso.console.sections import APPLICATIONS
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit
from sso.core.errors import NotFound

KEY = "/access-keys/<key_id>"
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
        choices=(FilterChoice("removed", "Status", (("1", "Removed"),)),),
        default_sort="name",
        needs_right=False,  # otherwise there is none yet
    )
    add_list(console, routes, applications)
    create = FormPage(
        APPLICATIONS,
        "",
        "POST",
        "/applications",
        lambda form, _: {name: form.get(name, "").strip() for name in ("name", "description", "project_id")},
        new_record(console, "applications/new.html", "Add application", "/applications", _form_values),
        "application-created",
        lambda application, _: path_of(application["application_id"]),
        page_path="/new",
    )
    add_form(console, routes, create)
    role_pages(console, routes)
    key_pages(console, routes)
    add_deletion(console, routes, DELETION)
    return routes


def role_pages(console: ConsoleView, routes: Blueprint) -> None:
    roles = ListPage(
        APPLICATIONS,
        "/roles",
        "roles",
        "applications/application.html",
        ("name", "description", "default", "user_limit"),
        path="/<application_id>",
        export="/<application_id>/roles.csv",
        page=_tab("roles"),
        query=_of_application,
        needs_right=False,  # otherwise the page has the application alone
    )
    add_list(console, routes, roles)
    create = FormPage(
        APPLICATIONS,
        "/<application_id>/roles",
        "POST",
        "/roles",
        _new_role,
        new_record(console, "applications/new_role.html", "Add role", "/roles", _tab("roles", "Add role")),
        "role-created",
        lambda role, variables: f"{path_of(variables['application_id'])}/roles/{quote(role['name'])}",
        page_path="/<application_id>/new-role",  # a role may be called "new"
    )
    add_form(console, routes, create)


def key_pages(console: ConsoleView, routes: Blueprint) -> None:
    keys = ListPage(
        APPLICATIONS,
        "/access-keys",
        "keys",
        "applications/keys.html",
        ("id", "comment", "created", "last_used"),
        path="/<application_id>/keys",
        export="/<application_id>/keys.csv",
        page=_tab("keys"),
        query=_of_application,
    )
    show_keys = add_list(console, routes, keys)

    async def show_value(visit: ConsoleVisit, found: AdminResponse, variables: Variables, _: Form) -> Response:
        """The value of the key is shown once."""
        return await show_keys(visit, variables, new_key=found.members["data"])

    form_page = _tab("keys", "Add access key", "Access keys")
    create = FormPage(
        APPLICATIONS,
        "/<application_id>/keys",
        "POST",
        "/access-keys",
        lambda form, variables: {**variables, "comment": form.get("comment", "").strip()},
        new_record(console, "applications/new_key.html", "Add access key", "/access-keys", form_page),
        result=show_value,
        page_path="/<application_id>/keys/new",
    )
    add_form(console, routes, create)
    add_deletion(console, routes, KEY_DELETION)


def _tab(tab: str, title: str = "", tab_title: str = "") -> PageValues:
    async def values(visit: ConsoleVisit, variables: Variables) -> Record:
        application = await visit.data("GET", APPLICATION, application_id=variables["application_id"])
        return application_page(application, tab, title, tab_title)

    return values


async def _of_application(_: ConsoleVisit, filters: Mapping[str, str], variables: Variables) -> Mapping[str, str]:
    application_id = variables["application_id"]
    if not (application_id.isascii() and application_id.isdecimal()):
        raise NotFound("application not found")
    return {**filters, "application_id": application_id}


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
    crumbs = [(path, application["name"]), (f"{path}/keys", "Access keys")]
    return Consequences(key["comment"] or key["id"], ends, undo, f"{path}/keys", crumbs)


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
    lambda variables: f"{own_page(variables)}/keys",
    _key_consequences,
)


def _new_role(form: Form, variables: Variables) -> Record:
    return {"application_id": variables["application_id"], "name": form.get("name", "").strip()}


async def _form_values(visit: ConsoleVisit, _: Variables) -> Record:
    chosen = request.args.get("project_id", "").strip()
    return {"projects": await _project_choices(visit), "values": {"project_id": chosen}}


async def _project_choices(visit: ConsoleVisit) -> list[dict[str, Any]]:
    """Returns the projects that the form of a new application suggests."""
    if not (visit.may("GET", "/projects") and visit.may("POST", "/applications")):
        return []
    projects: list[dict[str, Any]] = await visit.data("GET", "/projects", query={"limit": str(MAX_PROJECT_CHOICES)})
    return projects
