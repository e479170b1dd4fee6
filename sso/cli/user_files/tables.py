"""Users of a CSV file with a header, and of JSON Lines in the form of ``sso export users``."""

import csv
from collections.abc import Iterator
from typing import Any, TextIO

from sso.cli.context import CommandFailure
from sso.cli.records.types import Fields
from sso.cli.user_files.model import (
    Entries,
    JsonObject,
    NotImported,
    SourceUser,
    names_of,
    nickname,
    require_address,
    text_of,
)
from sso.cli.user_files.reading import convert_each, json_lines

MAX_FIELD = 1 << 16
SYNONYMS = {"email": "login", "username": "nick", "name": "nick", "verified": "email_verified", "id": "source_id"}
FLAGS = frozenset(("email_verified", "disabled", "phone_verified", "email_2fa"))
LISTS = frozenset(("tags", "purchases", "roles", "groups"))  # words, separated by semicolons or spaces
TEXTS = frozenset(
    (
        "login", "nick", "user_id", "source_id", "password", "password_hash", "country", "lang", "level", "phone",
        "totp_secret",
    )
)  # fmt: skip
COLUMNS = TEXTS | FLAGS | LISTS


def read_csv(file: TextIO) -> Entries:
    """Raises CommandFailure if the header has an unknown column."""
    csv.field_size_limit(MAX_FIELD)
    rows = csv.reader(file, strict=True)
    header = [SYNONYMS.get(name, name) for name in map(_column, next(rows, []))]
    for name in header:
        if name not in COLUMNS:
            raise CommandFailure(f"{file.name}: unknown column {name}; expected {', '.join(sorted(COLUMNS))}")
    if "login" not in header or len({*header}) < len(header):
        raise CommandFailure(f"{file.name}: expected a header with each column once, and with login or email")
    return convert_each(_rows(file, rows, header), _user)


def read_json_lines(file: TextIO) -> Entries:
    return convert_each(json_lines(file), _user)


def _column(text: str) -> str:
    return text.strip().lower().replace(" ", "_")


def _rows(file: TextIO, rows: Any, header: list[str]) -> Iterator[tuple[int, JsonObject | NotImported]]:
    while True:
        line = rows.line_num + 1
        try:
            cells = next(rows, None)
        except csv.Error as error:
            raise CommandFailure(f"{file.name}, line {line}: {error}") from None
        if cells is None:
            return
        if cells:
            yield line, _row(header, cells)


def _row(header: list[str], cells: list[str]) -> JsonObject | NotImported:
    if len(cells) != len(header):
        return NotImported(f"expected {len(header)} columns, as in the header")
    row: dict[str, Any] = {}
    for name, cell in zip(header, (cell.strip() for cell in cells), strict=True):
        if not cell:
            continue
        if name in FLAGS:
            flag = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(cell.lower())
            if flag is None:
                return NotImported(f"{name}: expected true or false")
            row[name] = flag
        else:
            row[name] = cell.replace(";", " ").split() if name in LISTS else cell
    return row


def _user(row: JsonObject) -> SourceUser:
    fields = dict(row)
    login = require_address(text_of(fields, "login"))
    fields["nick"] = nickname(login, text_of(fields, "nick"))
    source_id = str(fields.pop("source_id", ""))
    groups = names_of(row, "groups")
    fields.pop("groups", None)
    roles = fields.pop("roles", [])
    assigned = [role for role in roles if isinstance(role, dict)] if isinstance(roles, list) else []
    if assigned:
        fields["roles"] = assigned
    identities = fields.pop("identities", [])
    linked = [item for item in identities if isinstance(item, dict)] if isinstance(identities, list) else []
    return SourceUser(fields, source_id, names_of(row, "roles"), groups, linked, _without_password(fields))


def _without_password(fields: Fields) -> list[str]:
    """Removes what Django writes in place of a hash for users who have no password. Returns the note."""
    if not text_of(fields, "password_hash").startswith("!"):
        return []
    del fields["password_hash"]
    return ["the user has no password that can be used"]
