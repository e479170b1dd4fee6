"""Health and readiness endpoints, for load balancers and orchestrators."""

from dataclasses import dataclass

from quart import Blueprint, Response

from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.web.response import reply


@dataclass
class Health:
    draining: bool = False


def health_routes(health: Health, database: Database) -> Blueprint:
    routes = Blueprint("health", __name__)

    @routes.get("/healthz")
    async def healthz() -> Response:
        """Returns 200 if the process responds."""
        return reply({"status": "OK"})

    @routes.get("/readyz")
    async def readyz() -> Response:
        """Returns 200 if the worker can serve requests: it is not draining, and the database responds."""
        if health.draining:
            return reply({"status": "ERROR", "error": "draining"}, 503, {"Retry-After": "1"})
        try:
            await database.ping()
        except DatabaseError:
            return reply({"status": "ERROR", "error": "database"}, 503, {"Retry-After": "1"})
        return reply({"status": "OK"})

    return routes
