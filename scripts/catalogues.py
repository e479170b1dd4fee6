"""The gettext catalogues of the pages and mails: extraction of the texts, update, compilation, missing translations.

``scripts/translations`` runs it, and ``tests/source/test_catalogues.py`` checks with it that nothing was forgotten. The
files to search are configured in ``pyproject.toml`` (``tool.babel``), as ``pybabel`` reads it.
"""

import sys
import tomllib
from collections.abc import Iterator
from copy import deepcopy
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from sso.core.language import DOMAIN, messages_folder
from sso.core.language_names import LANGUAGES, SOURCE

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "sso"
TRANSLATED = tuple(language for language in LANGUAGES if language != SOURCE)
KEYWORDS = {**DEFAULT_KEYWORDS, "_": None, "Text": None, "plural": (1, 2)}
WIDTH = 120


def extract() -> Catalog:
    """Returns the texts of the source, each with the files that have it."""
    mappings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["babel"]["mappings"]
    methods = [(mapping["pattern"], mapping["method"]) for mapping in mappings]
    options = {mapping["pattern"]: mapping.get("options", {}) for mapping in mappings}
    template = Catalog()
    for name, _, message, comments, context in sorted(
        extract_from_dir(PACKAGE, methods, options, KEYWORDS), key=lambda found: (found[0], found[1])
    ):
        template.add(message, None, [(f"sso/{name}", 0)], auto_comments=comments, context=context)
    return template


def read(language: str) -> Catalog:
    """Reads the catalogue that translators edit, or returns an empty one."""
    path = po_file(language)
    locale = language.replace("-", "_")
    if not path.exists():
        return Catalog(locale, DOMAIN, project="sso", charset="utf-8", fuzzy=False)
    with path.open("rb") as file:
        return read_po(file, locale, DOMAIN)


def update(language: str, template: Catalog) -> Catalog:
    """Adds the new texts without a translation and removes the ones that the source no longer has."""
    catalogue = read(language)
    # A copy, because the catalogue keeps the messages of the template.
    catalogue.update(deepcopy(template), no_fuzzy_matching=True, update_creation_date=False)
    path = po_file(language)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(as_po(catalogue))
    path.with_suffix(".mo").write_bytes(as_mo(catalogue))
    return catalogue


def as_po(catalogue: Catalog) -> bytes:
    buffer = BytesIO()
    write_po(buffer, catalogue, WIDTH, ignore_obsolete=True, include_lineno=False)
    return buffer.getvalue()


def as_mo(catalogue: Catalog) -> bytes:
    buffer = BytesIO()
    write_mo(buffer, catalogue)
    return buffer.getvalue()


def po_file(language: str) -> Path:
    return messages_folder(language) / f"{DOMAIN}.po"


def messages(catalogue: Catalog) -> Iterator[Message]:
    """Returns the messages without the header."""
    return (message for message in catalogue if message.id)


def missing(catalogue: Catalog) -> list[Message]:
    """Returns the messages that lack a translation or one of their plural forms."""
    return [message for message in messages(catalogue) if message.fuzzy or not all(translations(message))]


def translations(message: Message) -> tuple[str, ...]:
    """Returns the translation, or all plural forms of it."""
    return (message.string,) if isinstance(message.string, str) else tuple(message.string or ("",))


def main(arguments: list[str]) -> None:
    if arguments:
        command, language = arguments
        assert command == "missing", "expected: missing LANGUAGE"
        rest = Catalog(read(language).locale)
        for message in missing(read(language)):
            rest[message.id] = message
        sys.stdout.buffer.write(as_po(rest))
        return
    template = extract()
    for language in TRANSLATED:
        print(f"{language}: {len(missing(update(language, template)))} of {len(template)} missing")


if __name__ == "__main__":
    main(sys.argv[1:])
