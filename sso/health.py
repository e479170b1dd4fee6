"""Health and readiness endpoints, for load balancers and orchestrators."""

from msgspec import Struct
from quart import Blueprint, Response, request

from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.web.response import reply


class Health(Struct):
    draining: bool = False


def health_routes(health: Health, database: Database, *, shared_database: bool) -> Blueprint:
    """``shared_database``: other nodes use the same database, so its outage is no reason to prefer them."""
    routes = Blueprint("health", __name__)

    @routes.get("/healthz")
    async def healthz() -> Response:
        """Returns 200 if the process responds."""
        return reply({"status": "OK"})

    @routes.get("/readyz")
    async def readyz() -> Response:
        """Returns 200 if requests should be sent to this worker: it is not draining.

        Its own database must respond, too; a shared one only with the parameter ``database=1``. A proxy that removed
        all nodes while their database fails over would cut every held poll, and no other node could serve instead.
        """
        if health.draining:
            return reply({"status": "ERROR", "error": "draining"}, 503, {"Retry-After": "1"})
        if not shared_database or request.args.get("database") == "1":
            try:
                await database.ping()
            except DatabaseError:
                return reply({"status": "ERROR", "error": "database"}, 503, {"Retry-After": "1"})
        return reply({"status": "OK"})

    return routes
