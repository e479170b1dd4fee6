"""Ids of records in paths: each id has one form."""

import pytest

from sso.core.path_ids import from_path_id, path_id


@pytest.mark.parametrize(
    "record_id", ["shop", "r-7ZkW", "https://agent.example.com/client.json", "https://a.example/ä"]
)
def test_id_is_read_back(record_id: str) -> None:
    assert from_path_id(path_id(record_id)) == record_id


@pytest.mark.parametrize("text", ["~c2hvcA", "~c2hvcB", "~", "~!", "~/w", path_id("https://a/b") + "="])
def test_other_form_of_an_id_stands_for_no_id(text: str) -> None:
    """The first one would be "shop", which has a form without the mark."""
    assert from_path_id(text) == text
