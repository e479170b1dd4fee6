"""Compares private parts of libraries with the versions that the code was written for."""

import ast
import hashlib
import inspect
import sys
import textwrap
from collections.abc import Callable
from importlib.metadata import version
from typing import Any


def changed(library: str, part: str, file: str) -> str:
    """Returns the message of a failure."""
    release = sys.version.split()[0] if library == "asyncio" else version(library)
    return f"{library} {release}: {part} is not what {file} expects; compare the two and adapt {file}"


def code_digest(function: Callable[..., Any]) -> str:
    """Returns a digest of a function's code, without comments, docstring and layout."""
    [definition] = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
    if ast.get_docstring(definition) is not None:
        del definition.body[0]
    return hashlib.sha256(ast.unparse(definition).encode()).hexdigest()[:16]
