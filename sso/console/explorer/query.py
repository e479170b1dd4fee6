"""What the permission explorer shows: the fields of its form, which are the query of its address."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Self
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import asdict, replace

from sso.core.field_errors import FieldError

OTHER_USER, OTHER_MOMENT = "user", "moment"
COMPARISONS = ((OTHER_USER, "Another user"), (OTHER_MOMENT, "Another moment"))
EXPECTED_MOMENT = "expected a date and time in UTC such as 2026-01-31T18:30"


class AddressQuery(Struct, frozen=True):
    """Fields of a form, all texts, that are the query of the page's address."""

    @classmethod
    def of(cls, arguments: Mapping[str, str]) -> Self:
        return cls(**{name: arguments.get(name, "").strip() for name in cls.__struct_fields__})

    def address(self, **changes: str) -> str:
        """Returns the query of the address, without empty fields, which can be shared."""
        return urlencode({name: value for name, value in asdict(replace(self, **changes)).items() if value})


class ExplorerQuery(AddressQuery, frozen=True):
    """``user``: an id or e-mail address; ``application_id``: an id or a name; ``at``: empty for now."""

    user: str = ""
    application_id: str = ""
    at: str = ""
    compare: str = ""
    other_user: str = ""
    other_at: str = ""
    differences: str = ""
    project: str = ""
    rule: str = ""

    @classmethod
    def of(cls, arguments: Mapping[str, str]) -> Self:
        query = super().of(arguments)
        return query if query.compare in (OTHER_USER, OTHER_MOMENT) else replace(query, compare="")

    @property
    def other(self) -> tuple[str, str]:
        """User and moment of the second side."""
        return (self.other_user, self.at) if self.compare == OTHER_USER else (self.user, self.other_at)

    @property
    def is_complete(self) -> bool:
        """Whether there is something to show."""
        return bool(self.user) and (self.compare != OTHER_USER or bool(self.other_user))


def read_moment(text: str, field: str) -> int | None:
    """Returns Unix seconds, or None for now. Raises FieldError."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        raise FieldError((field,), EXPECTED_MOMENT) from None


def moment_text(at: int | None) -> str:
    return "now" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
