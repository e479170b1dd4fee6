"""`sso play` in its own process, and a user who opens the link that it shows."""

import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import IO

from tests.kit.browser import Browser
from tests.kit.builders import PASSWORD
from tests.kit.forked_program import ROOT, ForkedProcess
from tests.kit.server import Server, clean_environment, until

LINK = re.compile(r"(https?://\S+/\?gsid=([0-9a-f-]{36}))")


class Game:
    """A program that shows a link and a match code, and waits."""

    def __init__(self, process: "subprocess.Popen[str] | ForkedProcess", err: IO[str] | None) -> None:
        self.process = process
        self._pipes = (process.stdout, err)
        self._texts: dict[str, str] = {"out": "", "err": ""}
        self._readers = [
            threading.Thread(target=self._read, args=(name, pipe), daemon=True)
            for name, pipe in zip(("out", "err"), self._pipes, strict=True)
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, name: str, pipe: Iterator[str]) -> None:
        for line in pipe:
            self._texts[name] += line

    @property
    def out(self) -> str:
        return self._texts["out"]

    @property
    def err(self) -> str:
        return self._texts["err"]

    @property
    def gsid(self) -> str:
        match = until(lambda: LINK.search(self.out + self.err))
        assert match, self.out + self.err
        return str(match[2])

    def line_after(self, label: str) -> str:
        """Waits for the label and returns the rest of its line."""
        match = until(lambda: re.search(rf"{re.escape(label)}\s*(.+)\n", self.out + self.err))
        assert match, self.out + self.err
        return str(match[1])

    @property
    def path(self) -> str:
        return f"/?gsid={self.gsid}"

    def shows(self, text: str) -> bool:
        return bool(until(lambda: text in self.out + self.err))

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def ended(self) -> int:
        """Waits for the process and reads the rest of its output. Returns the exit code."""
        code = self.process.wait(60)
        for reader in self._readers:
            reader.join(5)
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.ended()
        for pipe in self._pipes:
            assert pipe is not None
            pipe.close()


@contextmanager
def game(*command: str) -> Iterator[Game]:
    process = subprocess.Popen(
        command, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with closing(Game(process, process.stderr)) as running:
        yield running


@contextmanager
def playing(server: Server, *options: str) -> Iterator[Game]:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as err:
        process = ForkedProcess(["play", server.base_url, *options], env=clean_environment(), cwd=ROOT, stderr=err)
    with closing(Game(process, os.fdopen(reading))) as running:
        yield running


def sign_in_to(game: Game, browser: Browser, login: str) -> None:
    """Signs in with the form on the page of the link."""
    browser.get(game.path)
    answer = browser.submit("/login", login=login, password=PASSWORD)
    if answer.is_redirect:
        browser.follow(answer)
