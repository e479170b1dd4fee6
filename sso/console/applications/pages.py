"""Applications: the list, the page of an application, and its access keys."""

from typing import Any
from urllib.parse import quote

from quart import Blueprint, Response, request

from sso.admin.request import AdminResponse
from sso.console.export_pages import add_export
from sso.console.form_error import FormError
from sso.console.sections import APPLICATIONS
from sso.console.users.pages import problem
from sso.console.view import ConsoleView, done
from sso.console.visit import ConsoleVisit
from sso.core.errors import ApiError

APPLICATION = "/applications/<application_id>"
MAX_PROJECT_CHOICES = 50
CSV_COLUMNS = ("application_id", "name", "project_id", "description")


def application_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(APPLICATIONS)
    add_export(console, routes, APPLICATIONS, "/applications", CSV_COLUMNS)

    @routes.get("")
    async def show_list() -> Response:
        return await application_list(await console.open(APPLICATIONS))

    @routes.post("")
    async def create() -> Response:
        visit, form = await console.submitted(APPLICATIONS, "POST", "/applications")
        body = {name: form.get(name, "").strip() for name in ("name", "description", "project_id")}
        try:
            created = await visit.data("POST", "/applications", body=body)
        except ApiError as error:
            return await application_list(visit, values=form, **problem(FormError.of(error)))
        return done(path_of(created["application_id"]), "application-created")

    async def application_list(visit: ConsoleVisit, **context: Any) -> Response:
        search, after = request.args.get("search", "").strip(), request.args.get("after", "")
        query, found = {"search": search, "after": after}, AdminResponse({"data": []})
        if visit.may("GET", "/applications"):  # otherwise there is none yet
            found = await visit.call("GET", "/applications", query=query)
        return await console.show(
            visit,
            "applications/list.html",
            title="Applications",
            search=search,
            applications=found.members["data"],
            next=found.members.get("next"),
            projects=await _project_choices(visit),
            **{"values": {"project_id": request.args.get("project_id", "").strip()}, **context},
        )

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

    @routes.post("/<application_id>/roles")
    async def create_role(application_id: str) -> Response:
        visit, form = await console.submitted(APPLICATIONS, "POST", "/roles")
        name = form.get("name", "").strip()
        try:
            await visit.call("POST", "/roles", body={"application_id": application_id, "name": name})
        except ApiError as error:
            refused = problem(FormError.of(error))
            return await application_page(visit, application_id, role_name=name, **refused)
        return done(f"{path_of(application_id)}/roles/{quote(name)}", "role-created")

    @routes.post("/<application_id>/keys")
    async def create_key(application_id: str) -> Response:
        """The value of the key is shown once."""
        visit, form = await console.submitted(APPLICATIONS, "POST", "/access-keys")
        body = {"application_id": application_id, "comment": form.get("comment", "").strip()}
        key = await visit.data("POST", "/access-keys", body=body)
        return await application_page(visit, application_id, new_key=key)

    @routes.post("/<application_id>/keys/<key_id>/delete")
    async def delete_key(application_id: str, key_id: str) -> Response:
        visit, _ = await console.submitted(APPLICATIONS, "DELETE", "/access-keys/<key_id>")
        await visit.call("DELETE", "/access-keys/<key_id>", key_id=key_id)
        return done(path_of(application_id), "key-deleted")

    return routes


async def _project_choices(visit: ConsoleVisit) -> list[dict[str, Any]]:
    """Returns the projects that the form of a new application suggests."""
    if not (visit.may("GET", "/projects") and visit.may("POST", "/applications")):
        return []
    projects: list[dict[str, Any]] = await visit.data("GET", "/projects", query={"limit": str(MAX_PROJECT_CHOICES)})
    return projects


def path_of(application_id: int | str) -> str:
    return f"{APPLICATIONS.path}/{application_id}"
