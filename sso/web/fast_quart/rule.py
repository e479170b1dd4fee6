"""URL rules that match requests, and build no URLs: the service writes its paths itself."""

from collections.abc import Callable
from typing import Any, NoReturn

from quart.routing import QuartRule


class MatchingRule(QuartRule):
    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., Any]:
        """Called twice for each rule. Compiling the builders would take half of the time that the routes take."""
        return _refuse_to_build


def _refuse_to_build(rule: MatchingRule, *_: object, **__: object) -> NoReturn:
    raise NotImplementedError(f"no URL is built for {rule.rule}")
