"""Background tasks that fail and are started again."""

import itertools

import orjson
import pytest
import structlog
import trio
import trio.testing
from structlog.testing import capture_logs

from sso.core.background import FIRST_PAUSE_S, LAST_PAUSE_S, keep_running
from sso.log import configure_logging


async def test_background_task_that_fails_is_logged_and_started_again(autojump_clock: trio.testing.MockClock) -> None:
    began: list[float] = []

    async def task(limit: int, *, task_status: trio.TaskStatus[None]) -> None:
        began.append(trio.current_time())
        task_status.started()
        if len(began) < limit:
            raise RuntimeError("a bad row")

    with capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            await nursery.start(keep_running, "example", task, 9)
    assert [entry["event"] for entry in logs] == ["background.task_failed"] * 8
    assert logs[0]["task"] == "example"
    pauses = [round(after - before, 3) for before, after in itertools.pairwise(began)]
    assert pauses == [min(FIRST_PAUSE_S * 2**n, LAST_PAUSE_S) for n in range(8)]


async def test_background_task_that_fails_before_it_has_started_fails_the_start() -> None:
    async def task(*, task_status: trio.TaskStatus[None]) -> None:
        raise RuntimeError("wrong master key")

    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="wrong master key")):
        async with trio.open_nursery() as nursery:
            await nursery.start(keep_running, "example", task)


async def test_background_task_can_be_cancelled(autojump_clock: trio.testing.MockClock) -> None:
    async def task(*, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        await trio.sleep_forever()

    with trio.move_on_after(5) as scope:
        await keep_running("example", task)
    assert scope.cancelled_caught


async def test_log_lines_of_a_background_task_have_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("json", "info")

    async def task(*, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        structlog.get_logger().info("example.happened")

    async with trio.open_nursery() as nursery:
        await nursery.start(keep_running, "example", task)
    structlog.get_logger().info("example.happened")
    inside, outside = (orjson.loads(line) for line in capsys.readouterr().err.splitlines())
    assert inside["task"] == "example"
    assert "task" not in outside
