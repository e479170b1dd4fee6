"""Text for a terminal."""


def printable(text: str) -> str:
    """Escapes characters that control a terminal or are invisible: control characters (C0 and C1), line and paragraph
    separators, bidirectional controls and others."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()
