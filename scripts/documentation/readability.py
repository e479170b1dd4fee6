"""Finds pages that are hard to read.

A page may need at most 12 years of school by the formula of Flesch and Kincaid, and a sentence has at most 40 words.
Tables and code do not count, and a piece of code within a sentence counts as one short word.
"""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

MAX_GRADE, MAX_WORDS = 12.0, 40
MIN_SENTENCES = 8  # a page with fewer says nothing about its grade
_SKIPPED = {"table", "pre", "svg", "script", "style", "nav", "footer"}
_BLOCKS = {"p", "li", "dt", "dd", "h1", "h2", "h3"}
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_VOWELS = re.compile(r"[aeiouyäöü]+")
_ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|etc|vs|No|approx)\.")


class _Prose(HTMLParser):
    """The paragraphs of the article of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.paragraphs: list[str] = [""]
        self._in_article = False
        self._skipped = self._code = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_article |= tag == "article"
        self._skipped += tag in _SKIPPED
        if tag == "code":
            self._code += 1
            self.paragraphs[-1] += "code"
        elif tag in _BLOCKS:
            self.paragraphs.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_article &= tag != "article"
        self._skipped -= tag in _SKIPPED
        self._code -= tag == "code"
        if tag in _BLOCKS:
            self.paragraphs.append("")

    def handle_data(self, data: str) -> None:
        if self._in_article and not self._skipped and not self._code:
            self.paragraphs[-1] += data


def sentences(html: str) -> Iterator[str]:
    for paragraph in _Prose(html).paragraphs:
        text = _ABBREVIATIONS.sub(r"\1", " ".join(paragraph.split()))
        for sentence in re.split(r"(?<=[.!?])[)\"”]?\s+(?=[\w(\"“])", text):
            if len(_WORD.findall(sentence)) > 2:
                yield sentence


def grade(all_sentences: list[str]) -> float:
    words = [word for sentence in all_sentences for word in _WORD.findall(sentence)]
    syllables = sum(map(_syllables, words))
    return 0.39 * len(words) / len(all_sentences) + 11.8 * syllables / len(words) - 15.59


def _syllables(word: str) -> int:
    word = word.lower()
    count = len(_VOWELS.findall(word))
    is_silent = word.endswith("e") and not word.endswith(("le", "ee"))
    if is_silent or (word.endswith("ed") and not word.endswith(("ted", "ded"))):
        count -= 1
    return max(count, 1)


def hard_to_read(site: Path) -> list[str]:
    found = []
    for page in sorted(site.rglob("*.html")):
        all_sentences = [*sentences(page.read_text())]
        name = page.relative_to(site).with_suffix(".rst")
        if len(all_sentences) >= MIN_SENTENCES and (level := grade(all_sentences)) > MAX_GRADE:
            found.append(f"docs/{name}: grade {level:.1f}, at most {MAX_GRADE:.0f}: shorter sentences and words")
        found += [
            f"docs/{name}: a sentence of {count} words, at most {MAX_WORDS}: {sentence[:90]}…"
            for sentence in all_sentences
            if (count := len(_WORD.findall(sentence))) > MAX_WORDS
        ]
    return found
