"""Projects: the list, and the forms that create, edit and delete a project."""

from typing import Any
from urllib.parse import quote

from quart import Blueprint, Response, request

from sso.console.editor_pages import EditedRecord, Form, RecordEditor, Variables, add_editor
from sso.console.export_pages import add_export
from sso.console.form_error import FormError
from sso.console.projects.frame import PROJECT, groups_of, path_of, project_page, read_project
from sso.console.sections import PROJECTS
from sso.console.users.form import split_list
from sso.console.users.pages import problem
from sso.console.view import ConsoleView, done
from sso.console.visit import ConsoleVisit, version_of
from sso.core.errors import ApiError
from sso.web.redirects import see_other

CSV_COLUMNS = ("id", "title", "description", "aliases", "author", "created")


def project_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(PROJECTS)
    add_editor(console, routes, SETTINGS)
    add_export(console, routes, PROJECTS, "/projects", CSV_COLUMNS)

    @routes.get("")
    async def show_list() -> Response:
        return await project_list(await console.open(PROJECTS))

    @routes.post("")
    async def create() -> Response:
        visit, form = await console.submitted(PROJECTS, "POST", "/projects")
        body = {
            "title": form.get("title", "").strip(),
            "description": form.get("description", "").strip(),
            "admins": split_list(form.get("admins", "")),
        }
        try:
            created = await visit.data("POST", "/projects", body=body)
        except ApiError as error:
            return await project_list(visit, values=form, **problem(FormError.of(error)))
        return done(path_of(created["id"]), "project-created")

    async def project_list(visit: ConsoleVisit, **context: Any) -> Response:
        search, after = request.args.get("search", "").strip(), request.args.get("after", "")
        found = await visit.call("GET", "/projects", query={"search": search, "after": after})
        return await console.show(
            visit,
            "projects/list.html",
            title="Projects",
            search=search,
            after=after,
            projects=found.members["data"],
            next=found.members.get("next"),
            **{"values": {}, **context},
        )

    @routes.get("/choose")
    async def choose() -> Response:
        """Opens the project that was chosen on the page of a user, ready to add the user."""
        await console.open(PROJECTS)
        login = request.args.get("login", "")
        project_id = request.args.get("project_id", "").strip()
        return see_other(f"{path_of(project_id)}?login={quote(login)}#add" if project_id else PROJECTS.path)

    @routes.post("/<project_id>/delete")
    async def delete(project_id: str) -> Response:
        visit, _ = await console.submitted(PROJECTS, "DELETE", PROJECT)
        await visit.call("DELETE", PROJECT, project_id=project_id)
        return done(PROJECTS.path, "project-deleted")

    return routes


async def _read(visit: ConsoleVisit, variables: Variables) -> EditedRecord:
    project = await read_project(visit, variables["project_id"])
    return EditedRecord(project, version_of(project))


async def _body(_visit: ConsoleVisit, form: Form, _variables: Variables, record: EditedRecord) -> dict[str, Any]:
    return {
        "title": form.get("title", "").strip(),
        "description": form.get("description", "").strip(),
        "aliases": split_list(form.get("aliases", "")),
        "settings": {"allowed_domains": split_list(form.get("allowed_domains", ""))},
        **{name: _listed(form, name, record.values[name]) for name in ("allow", "disallow")},
        **({"override": True} if "override" in form else {}),
    }


def _listed(form: Form, name: str, stored: list[str]) -> list[str]:
    """Returns the groups whose box is checked, in the order of the stored list."""
    checked = [field.removeprefix(f"{name}:") for field in form if field.startswith(f"{name}:")]
    kept = [group_id for group_id in stored if group_id in checked]
    return [*kept, *(group_id for group_id in checked if group_id not in kept)]


async def _page(visit: ConsoleVisit, variables: Variables, record: EditedRecord) -> dict[str, Any]:
    groups = await groups_of(visit, variables["project_id"])
    listed = [group for group in groups if "project" in group["tags"]]
    return {**project_page(record.values, "settings"), "groups": listed}


SETTINGS = RecordEditor(
    "settings",
    PROJECTS,
    "/<project_id>/settings",
    "PATCH",
    PROJECT,
    "projects/settings.html",
    "project-saved",
    _read,
    _body,
    _page,
    lambda variables: f"{path_of(variables['project_id'])}/settings",
)
