"""The tab on which a user is merged into another one: the preview, the confirmation, and merges that can be undone."""

from typing import Any

from quart import Blueprint, Response, request

from sso.admin.request import AdminResponse
from sso.console.form_error import FormError
from sso.console.form_pages import Form, FormPage, add_form
from sso.console.impact import impact_values
from sso.console.list_pages import Record, Variables
from sso.console.record_names import RecordNames
from sso.console.sections import USERS
from sso.console.user_lookup import find_user_id
from sso.console.users.detail_pages import EVERYTHING, USER, frame_of, path_of
from sso.console.view import ConsoleView, done
from sso.console.visit import ConsoleVisit
from sso.core.errors import ApiError

MERGE, UNMERGE, MERGES = f"{USER}/merge", f"{USER}/unmerge", f"{USER}/merges"
# What moves, as people call it. The ids of keys and store accounts mean nothing to them, so these are counted.
LABELS = {
    "keys": "Keys of devices",
    "store_accounts": "Store accounts",
    "games": "Data at",
    "assignments": "Roles",
    "memberships": "Roles in projects",
    "groups": "Groups",
    "tags": "Tags",
    "purchases": "Purchases",
}


def user_merge_pages(console: ConsoleView, routes: Blueprint) -> None:
    async def show(visit: ConsoleVisit, variables: Variables, form: Form | None, /, **problem: Any) -> Response:
        user = await visit.data("GET", USER, **variables)
        merges = await visit.data("GET", MERGES, query=EVERYTHING, **variables)
        into = (form or request.args).get("into", "").strip()
        if into and not problem and visit.may("POST", MERGE):
            try:
                problem = await _preview(visit, variables, await find_user_id(visit, into, "into"))
            except ApiError as error:
                problem = FormError.of(error).values
        users = [user["merged_into"], problem.get("into_id"), *(merge["from"] for merge in merges)]
        names = problem.pop("names", RecordNames()) | await visit.names({"user": users})
        context = {**frame_of(user, "merge"), "merges": merges, "values": {"into": into}, "names": names, **problem}
        return await console.show(visit, "users/merge.html", **context)

    async def show_merged(_visit: ConsoleVisit, _: AdminResponse, _variables: Variables, form: Form) -> Response:
        return done(f"{path_of(form['into'])}/merge", "user-merged")

    async def show_undone(visit: ConsoleVisit, found: AdminResponse, variables: Variables, _: Form) -> Response:
        """What was changed since the merge is shown once."""
        changed = found.members["data"]["changed"]
        if not changed:
            return done(f"{path_of(variables['user_id'])}/merge", "user-unmerged")
        return await show(visit, variables, {}, changed=changed)

    merge = FormPage(USERS, "/<user_id>/merge", "POST", MERGE, _into, show, result=show_merged, opens=True)
    undo = FormPage(USERS, "/<user_id>/unmerge", "POST", UNMERGE, _from, show, result=show_undone)
    for page in (merge, undo):
        add_form(console, routes, page)


async def _preview(visit: ConsoleVisit, variables: Variables, into: str) -> Record:
    """Returns what the merge would do. Raises ApiError if it is not possible, or not allowed."""
    found = await visit.call("POST", MERGE, query={"dry_run": "1"}, body={"into": into}, **variables)
    moves = found.members["moves"]
    ids = {
        "application": [row["application_id"] for name in ("games", "assignments") for row in moves[name]],
        "project": [row["project_id"] for row in moves["memberships"]],
        "group": [row["group_id"] for row in moves["groups"]],
    }
    values = await impact_values(visit, dict(found.members))
    names = values.pop("names") | await visit.names(ids)
    return {**values, "names": names, "into_id": into, "moves": moves, "labels": LABELS}


def _into(form: Form, _variables: Variables) -> Record:
    return {"into": form.get("into", "")}


def _from(form: Form, _variables: Variables) -> Record:
    return {"from": form.get("from", "")}
