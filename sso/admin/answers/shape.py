"""What an answer of the management API contains."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct, field
from pydantic import BaseModel
from typing_extensions import TypedDict


class RecordShape(Struct, frozen=True):
    """A record as it is read: the fields with which it is saved, and the fields of a ``TypedDict``.

    A field that has a type in both has that of the ``TypedDict``. All fields of the model are in every answer, except
    those in ``optional``.
    """

    name: str  # in the document
    saved: type[BaseModel]
    fields: Any = None  # a TypedDict
    without: Sequence[str] = ("override",)
    optional: Sequence[str] = ()


# A TypedDict, another type that pydantic knows, or a RecordShape.
Shape: TypeAlias = Any


class UntypedJson(TypedDict):
    """An answer that is not described yet."""


NO_DATA: Shape = None  # the answer has ``status`` and no ``data``
UNTYPED: Shape = UntypedJson  # an answer without a declared shape, which a test refuses


class AnswerShape(Struct, frozen=True):
    """The members of an answer besides ``status``: ``data``, and others by name.

    The shape of a list is that of its items.
    """

    data: Shape = UNTYPED
    more: Mapping[str, Shape] = field(default_factory=dict)  # members that only some answers have
    status: int = 200
    is_list: bool = False  # also a list without pages


UNTYPED_ANSWER, NO_DATA_ANSWER = AnswerShape(), AnswerShape(NO_DATA)
