"""The actions that OAuth clients, identity providers and webhooks share: disable, enable and delete."""

from typing import Any

from quart import Blueprint, Response

from sso.console.sections import ConsoleSection
from sso.console.view import ConsoleView, done


def add_record_actions(
    console: ConsoleView, routes: Blueprint, section: ConsoleSection, record: str, notice: str
) -> None:
    """Adds the actions to the pages of a section. They need recent authentication.

    ``record`` is the path of a record in the management API, such as ``/clients/<client_id>``. The names of the notices
    begin with ``notice``.
    """
    parameter = record.rpartition("/")[2]

    async def set_disabled(ids: dict[str, Any], disabled: bool) -> Response:
        visit, _ = await console.submitted(section, "PATCH", record)
        await visit.call("PATCH", record, **ids, body={"disabled": disabled})
        (record_id,) = ids.values()
        return done(f"{section.path}/{record_id}", f"{notice}-{'disabled' if disabled else 'enabled'}")

    @routes.post(f"/{parameter}/disable")
    async def disable(**ids: Any) -> Response:
        return await set_disabled(ids, disabled=True)

    @routes.post(f"/{parameter}/enable")
    async def enable(**ids: Any) -> Response:
        return await set_disabled(ids, disabled=False)

    @routes.post(f"/{parameter}/delete")
    async def delete(**ids: Any) -> Response:
        visit, _ = await console.submitted(section, "DELETE", record)
        await visit.call("DELETE", record, **ids)
        return done(section.path, f"{notice}-deleted")
