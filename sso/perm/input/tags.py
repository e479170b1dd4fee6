"""Tags of applications and groups."""

import re

from sso.core.field_errors import FieldPath
from sso.perm.input.validators import read, read_array, unique

MAX_TAGS = 10

_TAG = re.compile(r"[A-Za-z0-9:_]{1,64}")


def check_tag(value: object) -> str:
    if not isinstance(value, str) or not _TAG.fullmatch(value):
        raise ValueError("must be 1 to 64 letters, digits, colons or underscores")
    return value


def distinct_tags(tags: list[str]) -> list[str]:
    """The tags without duplicates. Raises ValueError if there are too many."""
    distinct = unique(tags)
    if len(distinct) > MAX_TAGS:
        raise ValueError(f"must be at most {MAX_TAGS} tags")
    return distinct


def read_tags(value: object, path: FieldPath = ("tags",)) -> list[str]:
    tags = [read(check_tag, item, (*path, index)) for index, item in enumerate(read_array(value, path))]
    return read(lambda _: distinct_tags(tags), tags, path)
