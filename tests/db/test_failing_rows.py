"""Bad items of a statement for many items are found, and the others are done."""

import pytest

from sso.db.errors import Unavailable
from sso.db.failing_rows import isolate_failing_rows


@pytest.mark.parametrize("bad", [set(), {0}, {99}, {3, 4, 50}, set(range(100))])
async def test_bad_items_are_reported_and_the_others_are_done(bad: set[int]) -> None:
    done: list[int] = []
    failed: list[int] = []

    async def work(items: list[int]) -> None:
        if bad & set(items):
            raise ValueError("cannot convert infinity to bigint")
        done.extend(items)

    await isolate_failing_rows(work, list(range(100)), lambda item, _: failed.append(item))
    assert (set(done), set(failed)) == (set(range(100)) - bad, bad)


async def test_database_error_is_raised_and_no_item_reported() -> None:
    calls = 0

    async def work(items: list[int]) -> None:
        nonlocal calls
        calls += 1
        raise Unavailable("unreachable")

    with pytest.raises(Unavailable):
        await isolate_failing_rows(work, [1, 2, 3], lambda item, _: pytest.fail(f"{item} was reported"))
    assert calls == 1


async def test_empty_list_of_items_is_allowed() -> None:
    async def work(items: list[int]) -> None:
        assert items == []

    await isolate_failing_rows(work, [], lambda item, _: pytest.fail(f"{item} was reported"))
