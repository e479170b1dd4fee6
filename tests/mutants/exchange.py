"""Puts the code of a mutant into the modules of this process, where others have imported its functions already."""

import ast
import types
from typing import Any


def install(module: types.ModuleType, tree: ast.Module) -> None:
    """Runs the mutant as a module of its own, and gives its code to the functions and classes of the real one."""
    code = compile(tree, module.__name__, "exec", dont_inherit=True)
    mutant = types.ModuleType(module.__name__)
    mutant.__dict__.update(__package__=module.__package__)
    exec(code, mutant.__dict__)
    for name, value in mutant.__dict__.items():
        if name.startswith("__"):
            continue
        own = getattr(value, "__module__", None) == module.__name__
        old = module.__dict__.get(name)
        if own and _function(value) and _function(old):
            _exchange(old, value)
        elif own and isinstance(value, type) and isinstance(old, type):
            _exchange_class(old, value)
        elif not isinstance(value, type | types.FunctionType | types.ModuleType) and not _same(value, old):
            module.__dict__[name] = value


def _exchange_class(old: type, new: type) -> None:
    for name, value in list(vars(new).items()):
        before = vars(old).get(name)
        inner, inner_before = _unwrapped(value), _unwrapped(before)
        if _function(inner) and _function(inner_before):
            _exchange(inner_before, inner)
        elif name in getattr(new, "__annotations__", {}) and not _is_member(value) and not _same(value, before):
            setattr(old, name, value)


def _exchange(old: Any, new: Any) -> None:
    if hasattr(old, "cache_clear"):  # what the real function has returned must not hide the mutant
        old.cache_clear()
    old, new = getattr(old, "__wrapped__", old), getattr(new, "__wrapped__", new)
    if old.__code__.co_freevars == new.__code__.co_freevars:
        old.__code__ = new.__code__
        old.__defaults__, old.__kwdefaults__ = new.__defaults__, new.__kwdefaults__


def _unwrapped(value: Any) -> Any:
    if isinstance(value, property):
        return value.fget
    if isinstance(value, classmethod | staticmethod):
        return value.__func__
    return getattr(value, "func", value)  # cached_property


def _function(value: Any) -> bool:
    return isinstance(getattr(value, "__wrapped__", value), types.FunctionType)


def _is_member(value: Any) -> bool:
    """Whether this is how a class reads a slot of its instances. It cannot read those of another class."""
    return isinstance(value, types.MemberDescriptorType)


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except Exception:
        return False
