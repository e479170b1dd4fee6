"""Reads all pages of a list."""

from typing import Any

from tests.admin.conftest import Administrator


def all_pages(caller: Administrator, path: str, **parameters: Any) -> list[Any]:
    """The records of all pages. Every page but the last is full."""
    records: list[Any] = []
    after: dict[str, str] = {}
    while True:
        response = caller.get(path, **parameters, **after)
        assert response.status_code == 200, response.text
        page = response.json()
        records += page["data"]
        if page["next"] is None:
            return records
        assert len(page["data"]) == parameters["limit"]
        after = {"after": page["next"]}
