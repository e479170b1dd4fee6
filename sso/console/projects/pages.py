"""Projects: the list, and the forms that create, edit and delete a project."""

import re
import unicodedata
from typing import Any
from urllib.parse import quote

from quart import Blueprint, Response, request

from sso.console.deletion_pages import Consequences, DeletionPage, StoredRecord, add_deletion, and_more, count_text
from sso.console.editor_pages import EditedRecord, RecordEditor, add_editor
from sso.console.form_pages import Form, FormPage, add_form, new_record
from sso.console.form_values import read_text, split_list
from sso.console.list_pages import ListPage, Record, Variables, add_list
from sso.console.listing import FilterChoice
from sso.console.projects.frame import PROJECT, applications_of, groups_of, name_of, path_of, project_page
from sso.console.sections import PROJECTS
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit
from sso.core.field_errors import FieldError
from sso.perm.input.names import MAX_TITLE
from sso.web.redirects import see_other

CSV_COLUMNS = ("id", "title", "display_name", "description", "aliases", "author", "created")


def project_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(PROJECTS)
    add_editor(console, routes, SETTINGS)
    removed = FilterChoice("removed", "Status", (("1", "Removed"),))
    projects = ListPage(
        PROJECTS,
        "/projects",
        "projects",
        "projects/list.html",
        CSV_COLUMNS,
        choices=(removed,),
        default_sort="title",
        page=_list_values,
        opens=False,
    )
    show_projects = add_list(console, routes, projects)
    groups = ListPage(PROJECTS, "/groups", "groups", "projects/groups.html", path="/all-groups", page=_groups_values)
    show_groups = add_list(console, routes, groups)

    create = FormPage(
        PROJECTS,
        "",
        "POST",
        "/projects",
        _new_project,
        new_record(console, "projects/new.html", "Add project", "/projects"),
        "project-created",
        lambda project, _: path_of(project["id"]),
        page_path="/new-project",  # no id has a hyphen
    )
    add_form(console, routes, create)
    add_deletion(console, routes, DELETION)

    @routes.get("")
    async def list_projects() -> Response:
        """Those who may manage groups, and see no project, see their groups."""
        visit = await console.open(PROJECTS)
        show = show_projects if visit.may("GET", "/projects") else show_groups
        return await show(visit, {})

    @routes.get("/choose-project")
    async def choose() -> Response:
        """Opens the project that was chosen on the page of a user, ready to add the user."""
        await console.open(PROJECTS)
        login = request.args.get("login", "")
        project_id = request.args.get("project_id", "").strip()
        return see_other(f"{path_of(project_id)}/members/new?login={quote(login)}" if project_id else PROJECTS.path)

    return routes


async def _list_values(visit: ConsoleVisit, _variables: Variables) -> Record:
    return {"manages_groups": visit.own.groups}


async def _groups_values(_visit: ConsoleVisit, _variables: Variables) -> Record:
    return {"title": "Groups", "project": {}}


async def _consequences(visit: ConsoleVisit, stored: StoredRecord, variables: Variables) -> Consequences:
    project, project_id = stored.data, variables["project_id"]
    found = await visit.data("GET", "/projects", query={"name": project_id, "counts": "1"})
    counts = found[0] if found else dict.fromkeys(("members", "groups"), 0)
    applications = [item["name"] for item in await applications_of(visit, project_id)]
    ends = [
        f"The roles of {count_text(counts['members'], 'member')} in the project.",
        f"The roles that {count_text(counts['groups'], 'group')} give to their users.",
    ]
    if applications:
        ends.append(f"All permissions at its applications, and their access keys: {and_more(applications)}.")
    base = path_of(project_id)
    undo = (
        "An administrator with the role root can undo this in the audit trail: the project comes back with everything "
        "that belongs to it. Until then its title and aliases stay in use."
    )
    return Consequences(
        name_of(project), ends, undo, f"{base}/settings", [(f"{base}/settings", name_of(project))], asks_name=True
    )


DELETION = DeletionPage(
    PROJECTS,
    "/<project_id>/delete",
    PROJECT,
    "project",
    "project-deleted",
    lambda _: PROJECTS.path,
    _consequences,
    has_dry_run=True,
)


def _new_project(form: Form, _variables: Variables) -> Record:
    name = form.get("display_name", "").strip()
    title = form.get("title", "").strip() or _title_of(name)
    if not title:
        text = "the name has no Latin letters: please enter 1 to 32 Latin letters, digits, spaces or underscores"
        raise FieldError(("title",), text)
    return {
        "title": title,
        "display_name": "" if name == title else name,
        "description": form.get("description", "").strip(),
        "admins": split_list(form.get("admins", "")),
    }


def _title_of(name: str) -> str:
    """Returns the Latin letters and digits of a name: "Pokemon Go" for "Pokémon: Go"."""
    letters = re.sub(r"[^A-Za-z0-9 _]", "", unicodedata.normalize("NFKD", name))
    return " ".join(letters.split())[:MAX_TITLE].strip(" ")


async def _body(visit: ConsoleVisit, form: Form, variables: Variables, record: EditedRecord) -> dict[str, Any]:
    shown = {group["group_id"] for group in await _access_groups(visit, variables)}
    return {
        "title": form.get("title", "").strip(),
        "display_name": form.get("display_name", "").strip(),
        "description": read_text(form.get("description", "")),
        "aliases": split_list(form.get("aliases", "")),
        "settings": {"allowed_domains": split_list(form.get("allowed_domains", ""))},
        **{name: _listed(form, name, record.values[name], shown) for name in ("allow", "disallow")},
    }


def _listed(form: Form, name: str, stored: list[str], shown: set[str]) -> list[str]:
    """Returns the groups whose box is checked, in the order of the stored list.

    Groups that the administrator may not see have no box, and stay.
    """
    checked = [field.removeprefix(f"{name}:") for field in form if field.startswith(f"{name}:")]
    kept = [group_id for group_id in stored if group_id in checked or group_id not in shown]
    return [*kept, *(group_id for group_id in checked if group_id not in kept)]


async def _page(visit: ConsoleVisit, variables: Variables, record: EditedRecord) -> dict[str, Any]:
    return {**project_page(record.values, "settings"), "groups": await _access_groups(visit, variables)}


async def _access_groups(visit: ConsoleVisit, variables: Variables) -> list[dict[str, Any]]:
    """Returns the groups that the administrator may see and that can admit users to the project or exclude them."""
    groups = await groups_of(visit, variables["project_id"])
    return [group for group in groups if "project" in group["tags"]]


SETTINGS = RecordEditor(
    PROJECTS,
    "/<project_id>/settings",
    "PATCH",
    PROJECT,
    "projects/settings.html",
    "project-saved",
    _body,
    _page,
    lambda variables: f"{path_of(variables['project_id'])}/settings",
)
