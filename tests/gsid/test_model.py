"""Values of a game session: gsid, snapshot, outcome."""

import pytest

from sso.gsid.model import GSID, Claim, LoginReady, SessionSnapshot

SNAPSHOT = SessionSnapshot("pending", True, 1, 0, None, started=100, last_seen=7, ts=130)


def test_repr_of_a_login_hides_its_data() -> None:
    assert "secret" not in repr(LoginReady(SNAPSHOT, {"token": "secret"}, Claim("g", 1, "c")))


@pytest.mark.parametrize(
    ("status", "alive", "error"),
    [
        ("pending", True, None),
        ("pending", False, "session expired"),
        ("confirmed", True, None),
        ("confirmed", False, "session expired"),
        ("delivered", True, None),
        ("delivered", False, None),
        ("closed", True, "session closed"),
        ("closed", False, "session closed"),
        ("denied", True, "session denied"),
    ],
)
def test_snapshot_has_an_error_if_the_session_ended_without_a_login(
    status: str, alive: bool, error: str | None
) -> None:
    assert SessionSnapshot(status, alive, 1, 0, None, 0, 0, 0).error == error


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "0" * 36, "9B2D1C3A-0000-4000-8000-000000000000", "{9b2d1c3a-0000-4000-8000-000000000000}",
        "9b2d1c3a000040008000000000000000", "9b2d1c3a-0000-1000-8000-000000000000",
        "9b2d1c3a-0000-4000-8000-000000000000\n", "9b2d1c3a-0000-4000-c000-000000000000",
    ],
)  # fmt: skip
def test_gsid_has_one_spelling(text: str) -> None:
    assert not GSID.fullmatch(text)
    assert GSID.fullmatch("9b2d1c3a-0000-4000-8000-000000000000")
