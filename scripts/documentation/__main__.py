"""Builds the site: ``python -m scripts.documentation [--fresh] [FOLDER]``. scripts/docs says more."""

import argparse
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from scripts.documentation.figures import figures
from scripts.documentation.kinds import wrong_kinds
from scripts.documentation.links import broken_links, other_hosts
from scripts.documentation.markdown import Navigation, add_markdown, llms_txt
from scripts.documentation.readability import hard_to_read
from scripts.documentation.repairs import repair
from scripts.documentation.screenshot_age import outdated_screenshots
from scripts.documentation.strict_policy import InlineContent, inline_content

ROOT = Path(__file__).parents[2]
DOCS, CACHE = ROOT / "docs", ROOT / "docs" / "_build"
SITE = ROOT / "sso" / "documentation" / "site"
# Not for readers, or different in each build.
UNUSED = (".buildinfo", ".buildinfo.bak", "objects.inv", ".doctrees")


def build(site: Path) -> None:
    """Replaces the folder at once, so that a running service never sees a part of the site."""
    _run_sphinx("html")
    _run_sphinx("markdown")
    new = site.with_name(f".{site.name}-{os.getpid()}")
    shutil.rmtree(new, ignore_errors=True)
    new.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copytree(CACHE / "html", new, ignore=shutil.ignore_patterns(*UNUSED))
        add_markdown(CACHE / "markdown", new)
        (new / "llms.txt").write_text(llms_txt(new, "sso", _summary(), navigation()))
        InlineContent(new).move()
        repair(new)
        if problems := _problems(new):
            sys.exit("\n".join(["scripts/docs: the site was not replaced", *problems]))
        _replace(site, new)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _run_sphinx(builder: str) -> None:
    """In a process of its own: a builder leaves traces in Sphinx that the next one would warn about.

    Pages are parsed only if they have changed, and always written: the navigation of each names all others. If that
    fails, all are parsed again: a heading that was moved looks as if it were on both pages.
    """
    shutil.rmtree(CACHE / builder, ignore_errors=True)
    parsed = CACHE / "doctrees"
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "--no-color", "-b", builder]
    command += ["-d", str(parsed), str(DOCS), str(CACHE / builder)]
    if parsed.exists() and not subprocess.run(command, stderr=subprocess.DEVNULL).returncode:
        return
    shutil.rmtree(parsed, ignore_errors=True)
    if subprocess.run(command).returncode:
        sys.exit("scripts/docs: the site was not built")


def navigation() -> Navigation:
    """The captions of the start page with their pages, and the pages below them."""
    return [
        (caption, [name for page in pages for name in (page, *_pages_below(page))])
        for caption, pages in _toctrees(DOCS / "index.rst")
    ]


def _toctrees(page: Path) -> list[tuple[str, list[str]]]:
    parts = re.split(r"^\.\. toctree::\n", page.read_text(), flags=re.MULTILINE)[1:]
    captions = ([*re.findall(r"^   :caption: (.+)", part, re.MULTILINE), ""][0] for part in parts)
    return [
        (caption, re.findall(r"^   (?:.+ <)?([a-z_/]+)>?$", re.split(r"\n(?=\S)", part)[0], re.MULTILINE))
        for caption, part in zip(captions, parts, strict=True)
    ]


def _pages_below(page: str) -> list[str]:
    toctrees = _toctrees(DOCS / f"{page}.rst")
    return [f"{Path(page).parent}/{name}".removeprefix("./") for _, names in toctrees for name in names]


def _summary() -> str:
    return (DOCS / "index.rst").read_text().split("\n\n")[1].replace("\n", " ")


def _problems(site: Path) -> list[str]:
    problems = [f"a link leads nowhere: {link}" for link in broken_links(site)]
    problems += [f"the site needs another host: {address}" for address in other_hosts(site)]
    for page in sorted(site.rglob("*.html")):
        problems += [f"{page.relative_to(site)}: not in a file: {found}" for found in inline_content(page.read_text())]
    return problems


def _replace(site: Path, new: Path) -> None:
    old = new.with_name(f"{new.name}-old")
    if site.exists():
        site.rename(old)
    new.rename(site)
    shutil.rmtree(old, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/docs")
    parser.add_argument("--fresh", action="store_true", help="parse every page again, not only those that have changed")
    parser.add_argument(
        "--check", action="store_true", help="also check the kinds and the language of the pages, and their screenshots"
    )
    parser.add_argument("folder", type=Path, nargs="?", default=SITE, help="where the site is written")
    options = parser.parse_args()
    started = time.monotonic()
    CACHE.mkdir(exist_ok=True)
    with (CACHE.with_name(".build.lock")).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if options.fresh:
            shutil.rmtree(CACHE, ignore_errors=True)
        build(options.folder.resolve())
    pages = len([*options.folder.rglob("*.html")])
    print(f"{pages} pages in {time.monotonic() - started:.0f} s: {options.folder}/index.html", file=sys.stderr)
    if options.check:
        print("\n".join(figures(options.folder)), file=sys.stderr)
        if problems := [*wrong_kinds(DOCS, navigation()), *hard_to_read(options.folder), *outdated_screenshots()]:
            sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
