"""Tags in requests."""

from typing import Any

import pytest

from sso.core.field_errors import FieldError
from sso.perm.input.tags import read_tags


def test_duplicate_tags_are_dropped() -> None:
    assert read_tags(["a", "b", "a"] * 10) == ["a", "b"]


@pytest.mark.parametrize(
    "value", [None, "a", {}, [1], [""], ["a-b"], ["a" * 65], [f"t{number}" for number in range(11)]]
)
def test_wrong_tags_are_refused(value: Any) -> None:
    with pytest.raises(FieldError):
        read_tags(value)
