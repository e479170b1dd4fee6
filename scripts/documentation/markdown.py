"""The pages as Markdown, and llms.txt, which lists them for programs that read (https://llmstxt.org)."""

import re
from pathlib import Path

_LINK = re.compile(r"\[([^\]\n]+)\]\(\)")
_END = re.compile(r"(?<=\.)\s|:\n")
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_HEAD = """# {name}

> {summary}

Each page is a file of Markdown. The same pages for people are at the same addresses with `.html` in place of `.md`.
`/openapi.json` of the service describes every endpoint.
"""
Navigation = list[tuple[str, list[str]]]  # the captions of the start page, each with the names of its pages


def add_markdown(source: Path, site: Path) -> None:
    for page in sorted(source.rglob("*.md")):
        target = site / page.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(tidy(page.read_text()))


def tidy(text: str) -> str:
    """Tables without padding, and links to a heading of the same page."""
    lines = []
    is_code = False
    for line in text.splitlines():
        is_code ^= line.lstrip().startswith("```")
        if line.startswith("|") and not is_code:
            line = re.sub(r"-{4,}", "---", re.sub(r" {2,}", " ", line))
        lines.append(line)
    return _LINK.sub(lambda match: f"[{match[1]}](#{_slug(match[1])})", "\n".join(lines) + "\n")


def llms_txt(site: Path, name: str, summary: str, navigation: Navigation) -> str:
    text = _HEAD.format(name=name, summary=summary)
    for caption, pages in navigation:
        lines = (
            f"- [{_title(site / f'{page}.md')}]({page}.md){_first_sentence(site / f'{page}.md')}" for page in pages
        )
        text += f"\n## {caption}\n\n" + "\n".join(lines) + "\n"
    return text


def _title(page: Path) -> str:
    title: str = _TITLE.findall(page.read_text())[0]
    return title.replace("`", "")


def _first_sentence(page: Path) -> str:
    paragraphs = page.read_text().split("\n\n")[1:]
    first = next((text for text in paragraphs if re.match(r"[A-Z`]", text)), "")
    sentence = _END.split(first, maxsplit=1)[0].rstrip(":").replace("\n", " ")
    return f": {sentence}" if first else ""


def _slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
