"""Makes inputs of known ones. It takes some microseconds for each, so that most of the time is spent in the parser."""

from collections.abc import Callable, Sequence
from random import Random

INTERESTING = (
    b"\0",
    b"\xff",
    b"\r\n",
    b"\n",
    b"%00",
    b"\\u0000",
    b"-1",
    b"0",
    b"9" * 20,
    b"\xed\xa0\x80",
    b"\xef\xbf\xbf",
)
LONG_INPUTS = 1 / 400  # their share; they cost most


class Mutator:
    """The same seed makes the same inputs."""

    def __init__(self, corpus: Sequence[bytes], words: Sequence[bytes], max_bytes: int, seed: int) -> None:
        self._random = Random(seed)
        self._corpus = tuple(corpus) or (b"",)
        self._words = (*words, *INTERESTING)
        self._max_bytes = max_bytes
        self._mutations: tuple[Callable[[bytearray], None], ...] = (
            self._change_byte,
            self._change_byte,
            self._flip_bit,
            self._insert_word,
            self._insert_word,
            self._replace_by_word,
            self._remove,
            self._repeat,
            self._copy_from_other,
        )

    def next_input(self) -> bytes:
        number = self._random.random
        data = bytearray(self._corpus[int(number() * len(self._corpus))])
        mutations = self._mutations
        for _ in range(1 + int(number() * number() * 6)):
            mutations[int(number() * len(mutations))](data)
        if number() < LONG_INPUTS:
            self._make_long(data)
        return bytes(data[: self._max_bytes])

    def _at(self, length: int) -> int:
        return int(self._random.random() * length)

    def _change_byte(self, data: bytearray) -> None:
        if data:
            data[self._at(len(data))] = self._at(256)

    def _flip_bit(self, data: bytearray) -> None:
        if data:
            data[self._at(len(data))] ^= 1 << self._at(8)

    def _insert_word(self, data: bytearray) -> None:
        position = self._at(len(data) + 1)
        data[position:position] = self._words[self._at(len(self._words))]

    def _replace_by_word(self, data: bytearray) -> None:
        start, end = self._slice(data)
        data[start:end] = self._words[self._at(len(self._words))]

    def _remove(self, data: bytearray) -> None:
        start, end = self._slice(data)
        del data[start:end]

    def _repeat(self, data: bytearray) -> None:
        start, end = self._slice(data)
        data[end:end] = data[start:end] * (1 + self._at(8))

    def _copy_from_other(self, data: bytearray) -> None:
        other = self._corpus[self._at(len(self._corpus))]
        start, end = self._slice(other)
        position = self._at(len(data) + 1)
        data[position:position] = other[start:end]

    def _make_long(self, data: bytearray) -> None:
        """Repeats a part until the input is as long as it may be: what is slow with a long input shows here."""
        start, end = self._slice(data)
        part = data[start:end] or b"0"
        data[end:end] = part * (max(0, self._max_bytes - len(data)) // len(part))

    def _slice(self, data: bytes | bytearray) -> tuple[int, int]:
        start = self._at(len(data) + 1)
        return start, min(len(data), start + 1 + self._at(1 << self._at(8)))
