"""The examples of the playground: a document with questions about it, and the answers that the tests check."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from sso.console.playground.additions import as_text
from sso.console.playground.trial import DocumentQuestion

FOLDER = Path(__file__).parent / "examples"


class ExampleQuestion(Struct, frozen=True):
    question: DocumentQuestion
    answer: bool


class Example(Struct, frozen=True):
    name: str
    title: str
    text: str
    questions: tuple[ExampleQuestion, ...]
    document: str


@cache
def examples() -> dict[str, Example]:
    """Returns all examples by name, sorted by title."""
    found = [_read(path) for path in FOLDER.glob("*.json")]
    return {example.name: example for example in sorted(found, key=lambda example: example.title)}


def _read(path: Path) -> Example:
    fields: dict[str, Any] = json.loads(path.read_text())
    document = fields["document"]
    application_id = str(document["applications"][0]["application_id"])
    questions = tuple(
        ExampleQuestion(
            DocumentQuestion(item["user"], application_id, item["rule"], item.get("at", "")), item["answer"]
        )
        for item in fields["questions"]
    )
    return Example(path.stem, fields["title"], fields["text"], questions, as_text(document))
