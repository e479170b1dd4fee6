"""The JSON envelope of a poll's outcome."""

from typing import Any

import pytest

from sso.gsid.model import Cancelled, Claim, Failed, LoginReady, PollOutcome, Retry, SessionSnapshot
from sso.gsid.routes import envelope

SNAPSHOT = SessionSnapshot("pending", True, 1, 0, None, started=100, last_seen=7, ts=130)
CLAIM = Claim("g", 1, "c")
COMMON = {"gsid": "g", "ts": 130, "started": 100, "last_seen": 7}


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Retry(SNAPSHOT, 2), {"status": "RETRY", **COMMON, "delay": 2}),
        (Cancelled(SNAPSHOT), {"status": "CANCELLED", **COMMON}),
        (Failed("session expired"), {"status": "ERROR", "error": "session expired"}),
        (LoginReady(SNAPSHOT, {"status": "OK", "token": "t"}, CLAIM), {"status": "OK", **COMMON, "token": "t"}),
    ],
)
def test_envelope_has_the_fields_of_its_status(outcome: PollOutcome, expected: dict[str, Any]) -> None:
    assert envelope("g", outcome) == expected


def test_login_data_does_not_override_fields_of_the_session() -> None:
    data = {"gsid": "other", "ts": 0, "status": "x"}
    assert envelope("g", LoginReady(SNAPSHOT, data, CLAIM)) == {"status": "OK", **COMMON}
