"""Reads the CBOR (RFC 8949) of passkeys, before a signature says who has sent it.

Accepts integers, byte strings, texts, arrays, maps, booleans and null, each with its length. Tags are refused, because
a short one can stand for a number that takes a second to compute, and so are floats, lengths that are not given, deep
nesting and many items. A library may read what this module accepts.
"""

from typing import Any

MAX_DEPTH = 4  # how deep arrays and maps may be nested
MAX_ITEMS = 128
_SIMPLE = {20: False, 21: True, 22: None}
_INT, _NEGATIVE_INT, _BYTES, _TEXT, _ARRAY, _MAP, _TAG, _OTHER = range(8)


def decode(data: bytes) -> Any:
    """Returns the only item of the data. Raises ValueError."""
    item, end = decode_first(data, 0)
    if end != len(data):
        raise ValueError("there is more than one item")
    return item


def decode_first(data: bytes, start: int) -> tuple[Any, int]:
    """Returns the item that begins at ``start``, and the place after it. Raises ValueError."""
    reader = _CborReader(data, start)
    return reader.item(MAX_DEPTH), reader.position


class _CborReader:
    def __init__(self, data: bytes, start: int) -> None:
        self._data = data
        self.position = start
        self._items_left = MAX_ITEMS

    def item(self, depth: int) -> Any:
        self._items_left -= 1
        if self._items_left < 0:
            raise ValueError("there are too many items")
        kind, info = divmod(self._take(1)[0], 32)
        if kind == _OTHER:
            if info not in _SIMPLE:
                raise ValueError("expected true, false or null")
            return _SIMPLE[info]
        number = self._number(info)
        if kind == _INT:
            return number
        if kind == _NEGATIVE_INT:
            return -1 - number
        if kind == _BYTES:
            return self._take(number)
        if kind == _TEXT:
            return self._take(number).decode()
        if kind == _TAG or depth == 0:
            raise ValueError("there is a tag, or the nesting is too deep")
        if kind == _ARRAY:
            return [self.item(depth - 1) for _ in range(number)]
        return self._map(number, depth - 1)

    def _map(self, length: int, depth: int) -> dict[int | str, Any]:
        members: dict[int | str, Any] = {}
        for _ in range(length):
            key = self.item(depth)
            if type(key) not in (int, str) or key in members:
                raise ValueError("expected different integers or texts as keys")
            members[key] = self.item(depth)
        return members

    def _number(self, info: int) -> int:
        if info < 24:
            return info
        if info > 27:
            raise ValueError("expected a length")
        return int.from_bytes(self._take(1 << (info - 24)))

    def _take(self, length: int) -> bytes:
        end = self.position + length
        if end > len(self._data):
            raise ValueError("the data is too short")
        taken = self._data[self.position : end]
        self.position = end
        return taken
