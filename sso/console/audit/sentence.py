"""A sentence about an entry of the audit trail: texts, and the records that a page shows by name."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from sso.console.record_names import RecordNames

Entry: TypeAlias = dict[str, Any]
MAX_LISTED = 3  # of roles, rules or fields; the others are counted
CODE = "code"
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class Piece(NamedTuple):
    text: str  # of a record: the name that the entry has stored, for a record that no longer exists
    kind: str = ""  # a kind of record (RecordNames), CODE, or "" for plain text
    id: str = ""


Sentence: TypeAlias = tuple[Piece, ...]


def fill(template: str, values: Mapping[str, Piece | Sentence]) -> Sentence:
    """Returns a sentence in which each ``{name}`` is replaced by its value."""
    pieces: list[Piece] = []
    for index, part in enumerate(_PLACEHOLDER.split(template)):
        value = values[part] if index % 2 else Piece(part)
        pieces += [value] if isinstance(value, Piece) else value
    return tuple(piece for piece in pieces if piece.text or piece.kind)


def enumerated(items: Sequence[Piece]) -> Sentence:
    """Returns "a, b and c", or "a, b, c and 12 more"."""
    shown = list(items[:MAX_LISTED])
    if len(items) > MAX_LISTED:
        shown.append(Piece(f"{len(items) - MAX_LISTED} more"))
    pieces = shown[:1]
    for index, item in enumerate(shown[1:], 2):
        pieces += [Piece(" and " if index == len(shown) else ", "), item]
    return tuple(pieces)


def codes(names: Iterable[str]) -> Sentence:
    return enumerated([Piece(name, CODE) for name in names])


def as_text(sentence: Sentence, names: RecordNames) -> str:
    return "".join(names.of(piece.kind, piece.id, piece.text).text if piece.id else piece.text for piece in sentence)


def named_in(sentences: Iterable[Sentence]) -> dict[str, list[str]]:
    """Returns the ids of the records in the sentences, by kind."""
    ids: dict[str, list[str]] = {}
    for piece in (piece for sentence in sentences for piece in sentence if piece.id):
        ids.setdefault(piece.kind, []).append(piece.id)
    return ids
