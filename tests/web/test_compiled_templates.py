"""Templates are compiled once in a process."""

from typing import Any

import pytest
from jinja2 import DictLoader, Environment

from sso.app import build_app, compile_templates
from sso.health import Health
from sso.services import Services
from sso.telemetry.metrics import Metrics
from sso.web.template_cache import CompiledTemplates


class CountingEnvironment(Environment):
    compiled = 0

    def compile(self, *arguments: Any, **options: Any) -> Any:
        self.compiled += 1
        return super().compile(*arguments, **options)


@pytest.fixture
def cache() -> CompiledTemplates:
    return CompiledTemplates()


def environment(cache: CompiledTemplates, text: str) -> CountingEnvironment:
    return CountingEnvironment(loader=DictLoader({"page.html": text}), autoescape=True, bytecode_cache=cache)


def test_second_environment_compiles_nothing(cache: CompiledTemplates) -> None:
    for compiled in (1, 0):
        templates = environment(cache, "Hello {{ name }}")
        assert templates.get_template("page.html").render(name="<b>") == "Hello &lt;b&gt;"
        assert templates.compiled == compiled


def test_changed_template_is_compiled_again(cache: CompiledTemplates) -> None:
    assert environment(cache, "old").get_template("page.html").render() == "old"
    assert environment(cache, "new").get_template("page.html").render() == "new"


async def test_application_of_a_worker_compiles_nothing(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        pytest.fail("a template is compiled again")

    compile_templates()
    monkeypatch.setattr(Environment, "compile", refuse)
    build_app(services, Health(), Metrics([]))
