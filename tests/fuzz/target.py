"""What a target of the fuzzer is: a parser, the errors with which it may refuse, and words that its language has."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"


class Violation(AssertionError):
    """The parser accepts an input, and what it returns breaks one of its promises."""


def promise(kept: bool, text: str) -> None:
    if not kept:
        raise Violation(text)


@dataclass(frozen=True)
class Target:
    parse: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...] = ()  # every other error is a finding
    words: tuple[bytes, ...] = ()  # inserted by the mutations
    max_bytes: int = 4096  # what the service reads before it calls the parser

    @property
    def name(self) -> str:
        return self.parse.__name__

    @property
    def corpus(self) -> list[bytes]:
        """The inputs that mutations begin with: one for each way through the parser, and those that were findings."""
        return read_corpus(CORPUS / f"{self.name}.txt")


def read_corpus(file: Path) -> list[bytes]:
    """Reads a file with one input per line, in hexadecimal or, after a ``"``, as text."""
    if not file.exists():
        return []
    return [_decode(line) for line in file.read_text("ascii").splitlines()]


def write_corpus(file: Path, inputs: set[bytes]) -> None:
    file.parent.mkdir(exist_ok=True)
    ordered = sorted(inputs, key=lambda data: (len(data), data))
    file.write_text("".join(f"{_encode(data)}\n" for data in ordered), "ascii")


def _encode(data: bytes) -> str:
    is_text = data.isascii() and all(32 <= byte < 127 or byte in b"\r\n\t" for byte in data)
    return '"' + data.decode().encode("unicode_escape").decode() if is_text else data.hex()


def _decode(line: str) -> bytes:
    return line[1:].encode().decode("unicode_escape").encode("latin1") if line.startswith('"') else bytes.fromhex(line)
