"""QR codes are drawn beside the event loop, for one client at a time."""

import threading
from ipaddress import ip_address
from typing import Any

import pytest
import segno
import trio

from sso.accounts.second_factor.qr_codes import MAX_WAITING_PER_CLIENT, QrCodes
from sso.db.database import Database


@pytest.fixture
def drawing_threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collects the threads in which QR codes are drawn."""
    threads: list[int] = []
    draw = segno.make

    def make(*arguments: Any, **options: Any) -> Any:
        threads.append(threading.get_ident())
        return draw(*arguments, **options)

    monkeypatch.setattr(segno, "make", make)
    return threads


async def test_qr_codes_are_drawn_in_one_thread_and_a_client_with_many_gets_none(
    database: Database, drawing_threads: list[int]
) -> None:
    qr_codes, drawn = QrCodes(database), []

    async def draw(number: int) -> None:
        drawn.append(await qr_codes.svg(f"user {number}", ip_address("192.0.2.1"), "otpauth://totp/x"))

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(draw, number)
    assert threading.get_ident() not in drawing_threads
    assert len(drawing_threads) == len([svg for svg in drawn if svg]) >= 1 + MAX_WAITING_PER_CLIENT
    assert None in drawn
