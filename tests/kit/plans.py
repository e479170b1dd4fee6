"""The plans that PostgreSQL makes for prepared statements."""

import json
import re
from collections.abc import Iterator
from typing import Any

from sso.db.database import Database


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


async def _plan(database: Database, sql: str) -> list[dict[str, Any]]:
    count = max(int(number) for number in re.findall(r"\$(\d+)", sql))
    # The plan of a prepared statement is generic.
    await database.run_sql(f"PREPARE planned AS {sql}", [])
    (row,) = await database.run_sql(f"EXPLAIN (FORMAT JSON) EXECUTE planned ({', '.join(['NULL'] * count)})", [])
    await database.run_sql("DEALLOCATE planned", [])
    return list(_nodes(json.loads(row[0])[0]["Plan"]))


async def assert_plan_uses_indexes(database: Database, sql: str) -> None:
    """Every table is read by an index."""
    plan = await _plan(database, sql)
    scans = [node for node in plan if "Relation Name" in node and node["Node Type"] != "ModifyTable"]
    assert scans
    for scan in scans:
        assert "Index Cond" in scan or "Recheck Cond" in scan, scan


async def assert_plan_takes_linear_time(database: Database, sql: str) -> None:
    """No step compares each row of one step with each row of another."""
    for node in await _plan(database, sql):
        assert "Join Filter" not in node, node
