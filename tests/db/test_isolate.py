"""One bad item of many."""

import pytest

from sso.db.bad_rows import isolate
from sso.db.errors import Unavailable


@pytest.mark.parametrize("bad", [set(), {0}, {99}, {3, 4, 50}, set(range(100))])
async def test_bad_items_are_found_and_the_others_are_done(bad: set[int]) -> None:
    done: list[int] = []
    failed: list[int] = []

    async def work(items: list[int]) -> None:
        if bad & set(items):
            raise ValueError("cannot convert infinity to bigint")
        done.extend(items)

    await isolate(work, list(range(100)), lambda item, _: failed.append(item))
    assert (set(done), set(failed)) == (set(range(100)) - bad, bad)


async def test_database_that_is_away_is_no_fault_of_an_item() -> None:
    calls = 0

    async def work(items: list[int]) -> None:
        nonlocal calls
        calls += 1
        raise Unavailable("away")

    with pytest.raises(Unavailable):
        await isolate(work, [1, 2, 3], lambda item, _: pytest.fail(f"{item} was blamed"))
    assert calls == 1


async def test_no_items_are_no_work_at_all_that_could_fail() -> None:
    async def work(items: list[int]) -> None:
        assert items == []

    await isolate(work, [], lambda item, _: pytest.fail(f"{item} was blamed"))
