"""The replica for programs with Trio or asyncio."""

from types import TracebackType
from typing import Any, Self

from sso.perm.replica.answers import CHECK, ReplicaRequest
from sso.replica.replica import Replica, ReplicaAnswer


class AsyncReplica:
    """The same as ``Replica``. Answers that need nothing from the service do not wait; others wait in a thread."""

    def __init__(self, application: int, **options: Any) -> None:
        """``options`` are those of ``Replica``."""
        self.replica = Replica(application, **options)

    @property
    def revision(self) -> str:
        return self.replica.revision

    @property
    def staleness(self) -> float | None:
        return self.replica.staleness

    async def wait_until_ready(self, timeout_s: float | None = None) -> bool:
        """Waits for the first copy. Returns False after ``timeout_s``, or if the replica is closed without one."""
        from anyio.to_thread import run_sync

        return await run_sync(self.replica.wait_until_ready, timeout_s, abandon_on_cancel=True)

    async def check(self, user_id: str, rule: str, *, at_least: str | None = None, **options: Any) -> bool:
        """Returns whether the user has the rule. ``options`` are those of ``Replica.check``."""
        question = {"user_id": user_id, "rule": rule, **options}
        answer = await self.answer(CHECK, {"data": {"questions": [question]}}, at_least)
        return bool(answer.body["data"][0]["allow"])

    async def answer(self, path: str, fields: dict[str, Any], at_least: str | None = None) -> ReplicaAnswer:
        """Returns the answer to the body of a request at one of the paths of the service. Raises ApiError."""
        request = ReplicaRequest.read(path, fields, self.replica.application)
        if self.replica.is_immediate(request, at_least):
            return self.replica.answer_now(request)
        from anyio.to_thread import run_sync

        return await run_sync(self.replica.answer, path, fields, at_least)

    async def __aenter__(self) -> Self:
        from anyio.to_thread import run_sync

        await run_sync(self.replica.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from anyio import CancelScope
        from anyio.to_thread import run_sync

        with CancelScope(shield=True):
            await run_sync(self.replica.close)
