"""Records that administrators save, one by one or with a document: the types of their fields, and the outcome."""

import re
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from sso.core.ids import is_user_id
from sso.core.net import is_ipv6

HOST = re.compile(r"(?:http://)?(?:[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*|\[[0-9a-f:.]{2,45}\])", re.ASCII)


def matching(pattern: re.Pattern[str], expected: str) -> AfterValidator:
    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"must be {expected}")
        return text

    return AfterValidator(check)


def check_user_id(text: str) -> str:
    if not is_user_id(text):
        raise ValueError("must be a decimal number as a string")
    return text


def check_host(text: str) -> str:
    host = text.removeprefix("http://")
    if not HOST.fullmatch(text) or (host.startswith("[") and not is_ipv6(host[1:-1])):
        raise ValueError("must be a host name in lower case, optionally after http://")
    return text


def without_control_characters(text: str) -> str:
    if any(ord(character) < 32 or ord(character) == 127 or 0xD800 <= ord(character) < 0xE000 for character in text):
        raise ValueError("must not contain control characters")
    return text


Text = Annotated[str, Field(max_length=1024), AfterValidator(without_control_characters)]
Word = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(without_control_characters)]
# Tags are joined with commas in the authentication data.
Tag = Annotated[Word, matching(re.compile(r"[^,]+"), "a word without a comma")]
Host = Annotated[str, AfterValidator(check_host)]


class RecordModel(BaseModel):
    # The validator of a model is built at its first use: a process needs few of them, and building all takes 0.1 s.
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


class Outcome(StrEnum):
    """What an operation that saves a record has done. A later one counts more if there are several steps."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    CREATED = "created"
