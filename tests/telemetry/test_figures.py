"""The figures of the console: what workers count, add to the database and read back."""

import pytest

from sso.db import figures
from sso.db.database import Database
from sso.db.figures import FigureStore, FigureWriter
from sso.db.statement import Statement
from sso.telemetry.counters import LOGINS
from sso.telemetry.login_funnel import LOGIN_FUNNEL, MAX_STORES, OTHER_STORES, LoginFunnel
from sso.telemetry.request_figures import BOUNDS_MS, RequestFigures, quantile_ms


async def test_two_workers_add_to_the_same_sums(database: Database) -> None:
    LOGIN_FUNNEL.take()
    await add_application(database, 11)
    requests = [RequestFigures(), RequestFigures()]
    writers = [FigureWriter(database, figures, {"held_polls": lambda: 3}) for figures in requests]
    requests[0].observe("GET", "/login", 200, 0.004)
    requests[1].observe("GET", "/login", 503, 0.004)
    LOGINS.add("password", "success")
    LOGIN_FUNNEL.add("registered", (10, 11), "steam")
    await writers[0].write()
    LOGIN_FUNNEL.add("registered", (10, 11), "steam")
    LOGIN_FUNNEL.add("opened", (10, 11), "steam")
    await writers[1].write()
    store = FigureStore(database)
    series = await store.last_hour(("requests", "errors", "held_polls", "latency_5", "sign_ins"))
    sums = {name: sum(values) for name, values in series.items()}
    assert sums == {"requests": 2, "errors": 1, "held_polls": 6, "latency_5": 2, "sign_ins": 2}  # seen by both writers
    [row] = await store.funnel(1, 10)
    assert (row.application_id, row.store, row.steps["registered"], row.steps["opened"]) == (11, "steam", 2, 1)


async def add_application(database: Database, application_id: int) -> None:
    statement = Statement("INSERT INTO applications (application_id, name) VALUES (:id, 'chess')")
    await database.value(statement, id=application_id)


async def test_texts_of_strangers_add_a_limited_number_of_rows(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "MAX_STORES", 3)
    LOGIN_FUNNEL.take()
    await add_application(database, 11)
    writer = FigureWriter(database, RequestFigures(), {})
    for _ in range(2):
        for number in range(5):
            LOGIN_FUNNEL.add("registered", (11,), f"store {number}")
            LOGIN_FUNNEL.add("registered", (1000 + number,), "steam")
        await writer.write()
    rows = await FigureStore(database).funnel(1, 100)
    assert {(row.application_id, row.store): row.steps["registered"] for row in rows} == {
        (0, "steam"): 10,
        (11, "store 0"): 2,
        (11, "store 1"): 2,
        (11, "store 2"): 2,
        (11, OTHER_STORES): 4,
    }


async def test_figures_are_written_once(database: Database) -> None:
    requests = RequestFigures()
    writer = FigureWriter(database, requests, {})
    requests.observe("GET", "/login", 200, 0.004)
    await writer.write()
    await writer.write()
    series = await FigureStore(database).last_hour(("requests", "database_calls"))
    assert (sum(series["requests"]), sum(series["database_calls"])) == (1, 1)


def test_number_of_stores_is_limited() -> None:
    funnel = LoginFunnel()
    for number in range(MAX_STORES + 50):
        funnel.add("registered", (), f"store {number}")
    counts = funnel.take()
    assert len(counts) == MAX_STORES + 1
    assert counts[0, OTHER_STORES][0] == 50
    assert funnel.take() == {}


@pytest.mark.parametrize(("share", "expected"), [(0.5, 1.5), (1.0, 2.0)])
def test_quantile_is_between_the_bounds_of_its_bucket(share: float, expected: float) -> None:
    buckets = [0] * (len(BOUNDS_MS) + 1)
    buckets[1] = 10  # between one and two milliseconds
    assert quantile_ms(buckets, share) == pytest.approx(expected)
    assert quantile_ms([0] * len(buckets), share) is None
