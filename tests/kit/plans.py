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


async def assert_plan_uses_indexes(database: Database, sql: str) -> None:
    """Every table is read by an index."""
    count = max(int(number) for number in re.findall(r"\$(\d+)", sql))
    # The plan of a prepared statement is generic.
    await database.run_sql(f"PREPARE planned AS {sql}", [])
    (row,) = await database.run_sql(f"EXPLAIN (FORMAT JSON) EXECUTE planned ({', '.join(['NULL'] * count)})", [])
    await database.run_sql("DEALLOCATE planned", [])
    scans = [
        node for node in _nodes(json.loads(row[0])[0]["Plan"])
        if "Relation Name" in node and node["Node Type"] != "ModifyTable"
    ]  # fmt: skip
    assert scans
    for scan in scans:
        assert "Index Cond" in scan or "Recheck Cond" in scan, scan
