"""/api/admin/clients/{client_id}/signal-streams: the streams of signals that a client has created."""

from typing import Annotated, Literal

from sso.admin.answers.service import SignalStreamJson
from sso.admin.answers.shape import NO_DATA_ANSWER, AnswerShape
from sso.admin.clients import require_rights_of_client
from sso.admin.request import (
    AdminModel,
    AdminRequest,
    AdminResponse,
    AdminRoute,
    JsonRecord,
    ListQuery,
    slice_response,
)
from sso.admin.rights import AdminRight
from sso.core.errors import NotFound
from sso.core.path_ids import from_path_id
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.oauth.clients.store import lock_client, read_client_row
from sso.ssf import operations, stream_store
from sso.ssf.model import SignalStream
from sso.web.request_model import at_most


class StreamStatusChange(AdminModel):
    status: Literal["enabled", "paused", "disabled"]
    reason: Annotated[str, at_most(256)] = ""  # for the receiver


class ExampleOfSignal(AdminModel):
    event: Annotated[str, at_most(64)]


class SignalStreamResource:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, request: AdminRequest) -> AdminResponse:
        """Lists the streams of a client, with the number of events that wait and the last error."""
        client_id = from_path_id(request.path["client_id"])
        if await read_client_row(self._database, client_id) is None:
            raise NotFound("client not found")
        streams = await stream_store.list_streams(self._database, client_id)
        waiting = await stream_store.count_waiting(self._database, client_id)
        records = [_json(stream, waiting.get(stream.stream_id, 0)) for stream in streams]
        return slice_response(records, request.query, lambda record: str(record["id"]))

    async def change(self, request: AdminRequest) -> AdminResponse:
        """Enables, pauses or disables a stream. Its receiver is told. A disabled stream loses what waits."""
        body: StreamStatusChange = request.body
        client_id, stream_id = from_path_id(request.path["client_id"]), request.path["stream_id"]

        async def work(tx: Transaction) -> SignalStream:
            await _lock_client(tx, request)
            actor = request.caller.actor
            return await operations.set_stream_status(tx, actor, client_id, stream_id, body.status, body.reason)

        return await self._answer(await self._database.transaction(work))

    async def send_example(self, request: AdminRequest) -> AdminResponse:
        """Adds an example of an event, about a user who does not exist. It is signed and delivered like any other."""
        body: ExampleOfSignal = request.body
        client_id, stream_id = from_path_id(request.path["client_id"]), request.path["stream_id"]

        async def work(tx: Transaction) -> SignalStream:
            await _lock_client(tx, request)
            return await operations.send_example(tx, request.caller.actor, client_id, stream_id, body.event)

        return await self._answer(await self._database.transaction(work))

    async def delete(self, request: AdminRequest) -> AdminResponse:
        """Deletes a stream, with the events that wait. The client can create another one."""
        client_id, stream_id = from_path_id(request.path["client_id"]), request.path["stream_id"]

        async def work(tx: Transaction) -> None:
            await _lock_client(tx, request)
            await operations.delete_stream(tx, request.caller.actor, client_id, stream_id)

        await self._database.transaction(_lock_client, request)
        await operations.forget_users(self._database, client_id, stream_id)
        await self._database.transaction(work)
        return AdminResponse({})

    async def _answer(self, stream: SignalStream) -> AdminResponse:
        waiting = await stream_store.count_waiting(self._database, stream.client_id)
        return AdminResponse({"data": _json(stream, waiting.get(stream.stream_id, 0))})


def signal_stream_routes(streams: SignalStreamResource) -> tuple[AdminRoute, ...]:
    path, manage = "/clients/<client_id>/signal-streams", AdminRight.MANAGE_CLIENTS
    return (
        AdminRoute(
            "GET",
            path,
            AdminRight.VIEW_CLIENTS,
            streams.list,
            ListQuery,
            answer=AnswerShape(SignalStreamJson),
            operation="list_client_signal_streams",
            summary="List the signal streams of a client",
        ),
        AdminRoute(
            "PATCH",
            f"{path}/<stream_id>",
            manage,
            streams.change,
            body=StreamStatusChange,
            answer=AnswerShape(SignalStreamJson),
            operation="update_client_signal_stream",
            summary="Set the status of a signal stream",
            example={"status": "paused", "reason": "the receiver has asked for it"},
        ),
        AdminRoute(
            "DELETE",
            f"{path}/<stream_id>",
            manage,
            streams.delete,
            answer=NO_DATA_ANSWER,
            operation="delete_client_signal_stream",
            summary="Delete a signal stream",
        ),
        AdminRoute(
            "POST",
            f"{path}/<stream_id>/examples",
            manage,
            streams.send_example,
            body=ExampleOfSignal,
            answer=AnswerShape(SignalStreamJson),
            operation="send_example_signal",
            summary="Send an example through a signal stream",
            example={"event": "session-revoked"},
        ),
    )


async def _lock_client(tx: Transaction, request: AdminRequest) -> None:
    client = await lock_client(tx, from_path_id(request.path["client_id"]))
    if client is None:
        raise NotFound("client not found")
    require_rights_of_client(request.caller, client)


def _json(stream: SignalStream, waiting: int) -> JsonRecord:
    return stream.record() | stream.delivery_json() | {"waiting": waiting}
