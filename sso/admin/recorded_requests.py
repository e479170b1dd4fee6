"""/api/admin/clients/{client_id}/requests: what a client has sent and got while it was recorded, without secrets."""

from sso.admin.answers.service import RecordedRequestJson, RecordingJson
from sso.admin.answers.shape import NO_DATA_ANSWER, AnswerShape
from sso.admin.answers.users import Time
from sso.admin.clients import require_rights_of_client
from sso.admin.request import AdminRequest, AdminResponse, AdminRoute, JsonRecord, ListQuery, slice_response
from sso.admin.rights import AdminRight
from sso.core.errors import NotFound
from sso.core.moments import rfc3339
from sso.core.path_ids import from_path_id
from sso.db.database import Database
from sso.db.transaction import Row, Transaction
from sso.oauth.clients.store import lock_client, read_client_row
from sso.oauth.recording import operations
from sso.oauth.recording.store import list_requests, recording_end


class RecordedRequestResource:
    """Whoever may change the client may see its requests."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, request: AdminRequest) -> AdminResponse:
        """Lists the requests of the last hour, the newest first; `recorded_until` is null if none is recorded now."""
        client_id = _check(request, await read_client_row(self._database, _client_id(request)))
        records = [_json(row) for row in await list_requests(self._database, client_id)]
        response = slice_response(records, request.query, lambda record: str(record["id"]))
        end = await recording_end(self._database, client_id)
        return AdminResponse({**response.members, "recorded_until": rfc3339(end) if end else None})

    async def start(self, request: AdminRequest) -> AdminResponse:
        """Records the requests of a client for an hour from now. All workers know it within moments."""

        async def work(tx: Transaction) -> str:
            client_id = _check(request, await lock_client(tx, _client_id(request)))
            return rfc3339(await operations.start(tx, request.caller.actor, client_id))

        return AdminResponse({"data": {"recorded_until": await self._database.transaction(work)}})

    async def stop(self, request: AdminRequest) -> AdminResponse:
        """Ends the recording. What was recorded stays until its hour is over."""

        async def work(tx: Transaction) -> None:
            client_id = _check(request, await lock_client(tx, _client_id(request)))
            await operations.stop(tx, request.caller.actor, client_id)

        await self._database.transaction(work)
        return AdminResponse({})


def recorded_request_routes(requests: RecordedRequestResource) -> tuple[AdminRoute, ...]:
    recording, manage = "/clients/<client_id>/recording", AdminRight.MANAGE_CLIENTS
    return (
        AdminRoute(
            "GET",
            "/clients/<client_id>/requests",
            manage,
            requests.list,
            ListQuery,
            answer=AnswerShape(RecordedRequestJson, {"recorded_until": Time | None}),
            operation="list_client_requests",
            summary="List the recorded requests of a client",
        ),
        AdminRoute(
            "POST",
            recording,
            manage,
            requests.start,
            answer=AnswerShape(RecordingJson),
            operation="start_client_recording",
            summary="Record the requests of a client",
        ),
        AdminRoute(
            "DELETE",
            recording,
            manage,
            requests.stop,
            answer=NO_DATA_ANSWER,
            operation="stop_client_recording",
            summary="Stop recording the requests of a client",
        ),
    )


def _client_id(request: AdminRequest) -> str:
    return from_path_id(request.path["client_id"])


def _check(request: AdminRequest, client: Row | None) -> str:
    if client is None:
        raise NotFound("client not found")
    require_rights_of_client(request.caller, client)
    return str(client["client_id"])


def _sorted(fields: dict[str, str]) -> dict[str, str]:
    return dict(sorted(fields.items()))


def _json(row: Row) -> JsonRecord:
    content = row["content"]
    answer = content["answer"]
    return {
        "id": str(row["id"]),
        "at": rfc3339(row["at"]),
        "caller": row["network"],
        "proof": content.get("proof", "none"),
        "endpoint": content["endpoint"],
        "http_method": content["method"],
        "authorization": content.get("authorization", ""),
        "content_type": content.get("content_type", ""),
        "dpop": content["dpop"],
        "parameters": _sorted(content["parameters"]),
        "http_status": answer["status"],
        "kind": answer.get("kind", "json"),
        "answer": _sorted(answer.get("members", {})),
        "duration_ms": content["ms"],
    }
