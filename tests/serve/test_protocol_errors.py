"""Protocol errors of clients are logged briefly: at level debug, rate-limited, without the id of another request."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from sso.log import current_request_id
from sso.serve.rate_limited_log import RateLimitedLog
from tests.kit.protocol_errors import GET, VIOLATIONS, talk, violate
from tests.kit.raw_http import serving


@pytest.mark.parametrize("name", VIOLATIONS)
async def test_repeated_protocol_error_is_logged_once_at_level_debug(name: str) -> None:
    with capture_logs() as lines:
        async with serving(talk) as server:
            for _ in range(5):
                await violate(server, VIOLATIONS[name])
    assert [line for line in lines if line["log_level"] != "debug"] == []
    assert len(lines) <= 1
    assert all("exc_info" not in line for line in lines)


async def test_log_line_of_a_connection_has_no_id_of_an_earlier_request() -> None:
    ids: list[str | None] = []

    def note(_: Any, __: str, event: Any) -> Any:
        ids.append(current_request_id.get())
        return event

    with capture_logs(processors=[note]) as lines:
        async with serving(talk) as server:
            await violate(server, GET + b"nonsense\r\n\r\n")
    assert (len(lines), ids) == (1, [None])


def test_rate_limited_log_counts_suppressed_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[tuple[str, dict[str, object]]] = []
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)

    def write(event: str, **fields: object) -> None:
        lines.append((event, fields))

    log = RateLimitedLog(interval_s=10)
    for number in range(3):
        log(write, "one", number=number)
        log(write, "two")
    now = 110.0
    log(write, "one", number=3)
    assert lines == [("one", {"number": 0}), ("two", {}), ("one", {"number": 3, "suppressed": 2})]
