"""/api/admin/violations/{violation_id}: why a request about a game session was refused, as `sso why` shows it."""

from sso.admin.request import AdminRequest, AdminResponse, AdminRoute, record_response
from sso.admin.rights import AdminRight
from sso.core.errors import NotFound
from sso.core.moments import rfc3339
from sso.db.database import Database
from sso.gsid.violations import find_violation


class ViolationResource:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, request: AdminRequest) -> AdminResponse:
        """The id is the value of `error` in the 403 response of the client. Records are kept for a week."""
        record = await find_violation(self._database, request.path["violation_id"])
        if record is None:
            raise NotFound("violation not found")
        # A gsid opens the login page of its session.
        gsid = {"gsid": record.gsid} if AdminRight.MANAGE_GAME_SESSIONS in request.caller.rights else {}
        return record_response(
            {
                "id": record.id,
                "created": rfc3339(record.created),
                **gsid,
                "address": record.address,
                "reason": record.reason,
                "expected": record.expected,
                "found": record.found,
            }
        )


def violation_routes(resource: ViolationResource) -> tuple[AdminRoute, ...]:
    return (AdminRoute("GET", "/violations/<violation_id>", AdminRight.VIEW_GAME_SESSIONS, resource.get),)
