"""Reads the source of the service for the reference tables: syntax trees, calls and the texts in them."""

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType

import sso

PACKAGE_ROOT = Path(sso.__file__).parent
UNKNOWN = "{…}"
_PERCENT_FORMAT = re.compile(r"%(?:\((\w+)\))?[sd]")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class CallSite:
    """A call, with the classes and functions around it, innermost last."""

    module: "Module"
    call: ast.Call
    scopes: tuple[ast.AST, ...]

    @property
    def location(self) -> str:
        return f"sso/{self.module.path}:{self.call.lineno}"

    @property
    def function(self) -> _Function | None:
        return next((scope for scope in reversed(self.scopes) if isinstance(scope, _Function)), None)

    @property
    def class_name(self) -> str | None:
        return next((scope.name for scope in reversed(self.scopes) if isinstance(scope, ast.ClassDef)), None)

    @property
    def callee(self) -> str:
        """The last part of the called name: ``self.refuse(…)`` calls ``refuse``."""
        match self.call.func:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return name
        return ""

    def argument(self, position: int, name: str) -> ast.expr | None:
        for keyword in self.call.keywords:
            if keyword.arg == name:
                return keyword.value
        return self.call.args[position] if position < len(self.call.args) else None

    def parameter(self, node: ast.expr | None) -> tuple[str, int, str] | None:
        """Returns (function, position, name) if the expression is a parameter of the enclosing function.

        The position does not count ``self``.
        """
        if self.function is None or not isinstance(node, ast.Name):
            return None
        names = [argument.arg for argument in self.function.args.args if argument.arg not in ("self", "cls")]
        return (self.function.name, names.index(node.id), node.id) if node.id in names else None

    def texts(self, node: ast.expr | None) -> list[str]:
        """Returns the texts that an expression can have, with ``{name}`` for what is known at run time only."""
        return [text for text in self._texts(node) if text and text != UNKNOWN]

    def _texts(self, node: ast.expr | None) -> list[str]:
        match node:
            case ast.Constant(value=str() | int() as value):
                return [str(value)]
            case ast.JoinedStr(values=parts):
                return ["".join(self._part(part) for part in parts)]
            case ast.Name(id=name):
                return self._constant(name) or self._assigned(name)
            case ast.IfExp(body=first, orelse=second):
                return [*self._texts(first), *self._texts(second)]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return [a + b for a in self._texts(left) or [UNKNOWN] for b in self._texts(right) or [UNKNOWN]]
            case ast.BinOp(left=left, op=ast.Mod()):
                return [_with_placeholders(text) for text in self._texts(left)]
            case ast.Call(func=ast.Name(id="Text" | "_"), args=[text, *_]):
                return [_with_placeholders(translated) for translated in self._texts(text)]
        return []

    def _part(self, part: ast.expr) -> str:
        if not isinstance(part, ast.FormattedValue):
            return next(iter(self._texts(part)), UNKNOWN)
        match part.value:
            case ast.Name(id=name):
                return next(iter(self._constant(name)), f"{{{name}}}")
            case ast.Attribute(attr=name):
                return next(iter(self._constant(name)), f"{{{name}}}")
        return UNKNOWN

    def _constant(self, name: str) -> list[str]:
        value = getattr(self.module.loaded, name, None)
        return [_with_placeholders(str(value))] if isinstance(value, str | int) else []

    def _assigned(self, name: str) -> list[str]:
        """Returns the texts that the enclosing function assigns to a local variable."""
        return [
            text
            for node in ast.walk(self.function or ast.Module([], []))
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
            for text in self._texts(node.value)
        ]


@dataclass(frozen=True)
class Module:
    path: str  # below the package: "perm/errors.py"

    @property
    def name(self) -> str:
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def package(self) -> str:
        return self.path.partition("/")[0] if "/" in self.path else ""

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse((PACKAGE_ROOT / self.path).read_text())

    @cached_property
    def loaded(self) -> ModuleType:
        return importlib.import_module(f"sso.{self.name}")

    @cached_property
    def calls(self) -> list[CallSite]:
        return [CallSite(self, call, scopes) for call, scopes in _calls(self.tree, ())]


def modules() -> list[Module]:
    """Returns every module of the service except programs and migrations, which must not be imported."""
    paths = (path.relative_to(PACKAGE_ROOT).as_posix() for path in sorted(PACKAGE_ROOT.rglob("*.py")))
    return [Module(path) for path in paths if "migrations/" not in path and path not in ("__init__.py", "__main__.py")]


def _calls(node: ast.AST, scopes: tuple[ast.AST, ...]) -> Iterator[tuple[ast.Call, tuple[ast.AST, ...]]]:
    if isinstance(node, ast.Call):
        yield node, scopes
    if isinstance(node, ast.ClassDef | _Function):
        scopes = (*scopes, node)
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, scopes)


def _with_placeholders(text: str) -> str:
    return _PERCENT_FORMAT.sub(lambda match: f"{{{match[1] or '…'}}}", text)
