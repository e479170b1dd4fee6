"""Finds the errors that a client can get: the classes, and the texts that they are raised with."""

import ast
from dataclasses import dataclass

from scripts.reference_tables.source import CallSite, Module
from sso.core.errors import ApiError

NOT_FOR_CLIENTS = ("cli", "state", "play")
# Modules whose ValueErrors reach the client after the name of a field.
FIELD_MODULES = (
    "accounts/login/options.py",
    "core/keys.py",
    "core/mail_address.py",
    "core/net.py",
    "perm/input/application.py",
    "perm/input/audit.py",
    "perm/input/field_types.py",
    "perm/input/names.py",
    "perm/input/options.py",
    "perm/input/params.py",
    "perm/input/tags.py",
    "perm/input/validators.py",
    "web/request_model.py",
)
FIELD_ERRORS = ("ValueError", "UnusableKey")


@dataclass(frozen=True)
class Signature:
    """Where the constructor of an error takes its status, code and text: (position, keyword), or a fixed value."""

    text: tuple[int, str]
    status: tuple[int, str] | None = None
    code: tuple[int, str] | None = None
    default_status: str = "400"
    default_code: str = "invalid_request"
    path: tuple[int, str] | None = None  # of the field that the text is about
    subject: tuple[int, str] | None = None  # of the sentence, "body" unless it is set


_KEYWORD_ONLY = 9  # a position that no call has
OTHER_ERRORS = {
    "FieldError": Signature(text=(1, "expected"), status=(_KEYWORD_ONLY, "status"), path=(0, "path")),
    "InvalidBody": Signature(text=(0, "problem"), status=(1, "status"), subject=(_KEYWORD_ONLY, "subject")),
    "RequestRejected": Signature(text=(1, "reason"), status=(0, "status"), default_code=""),
    "AuthorizationError": Signature(text=(1, "description"), code=(0, "error"), default_status="302"),
    "ErrorResponse": Signature(text=(2, "message"), status=(0, "status"), code=(1, "code")),
}


@dataclass(frozen=True, order=True)
class ErrorText:
    package: str
    status: str
    code: str
    text: str
    module: str


def error_classes(modules: list[Module]) -> dict[str, type[ApiError]]:
    for module in modules:
        if module.package not in NOT_FOR_CLIENTS:
            assert module.loaded is not None  # importing the module registers its subclasses
    return {found.__name__: found for found in sorted(_subclasses(ApiError), key=lambda found: found.__name__)}


def _subclasses(base: type[ApiError]) -> set[type[ApiError]]:
    found = {base}
    for child in base.__subclasses__():
        found |= _subclasses(child)
    return {each for each in found if each.__module__.startswith("sso.")}


def constructor_texts(modules: list[Module]) -> dict[str, str]:
    """Returns the texts of the classes that build their text in the constructor: ``super().__init__(f"…")``."""
    return {
        site.class_name: text
        for module in modules
        for site in module.calls
        if site.callee == "__init__" and site.class_name is not None
        for text in site.texts(site.argument(0, "message"))
    }


def error_texts(modules: list[Module]) -> list[ErrorText]:
    """Returns every text that an error is raised with, as far as the source shows it."""
    served = [module for module in modules if module.package not in NOT_FOR_CLIENTS]
    classes = error_classes(modules)
    assert {module.path for module in served}.issuperset(FIELD_MODULES)
    texts: set[ErrorText] = set()
    for module in served:
        for site in module.calls:
            if signature := _signature(site, classes):
                texts |= set(_texts(site, signature))
            elif site.callee in FIELD_ERRORS and module.path in FIELD_MODULES:
                texts |= {_field_text(module, text) for text in site.texts(site.argument(0, "message"))}
        if module.path == "web/request_model.py":
            texts |= {_field_text(module, text) for text in _dictionary_texts(module)}
    return sorted(texts)


def _signature(site: CallSite, classes: dict[str, type[ApiError]]) -> Signature | None:
    if site.callee in OTHER_ERRORS:
        return OTHER_ERRORS[site.callee]
    name = site.callee
    if site.class_name in OTHER_ERRORS:
        return None
    if site.callee == "__init__" and site.class_name in classes and isinstance(site.call.func, ast.Attribute):
        name = site.class_name  # super().__init__("text") in the class of an error
    elif name not in classes or classes[name].__init__ is not ApiError.__init__:
        return None  # the constructor takes something other than a text
    found = classes[name]
    return Signature(text=(0, "message"), default_status=str(found.status), default_code=found.code)


def _texts(site: CallSite, signature: Signature) -> list[ErrorText]:
    status = _value(site, signature.status) or signature.default_status
    code = _value(site, signature.code) or signature.default_code
    node = site.argument(*signature.text)
    texts = site.texts(node)
    if not texts and (parameter := site.parameter(node)):
        function, position, name = parameter
        for caller in site.module.calls:
            if caller.callee == function:
                texts += caller.texts(caller.argument(position, name))
    return [
        ErrorText(site.module.package, status, code, f"{prefix}{text}", site.module.name)
        for prefix in _prefixes(site, signature)
        for text in texts
    ]


def _prefixes(site: CallSite, signature: Signature) -> list[str]:
    """Returns what can precede the text of an error: the path of a field, or the subject of the sentence."""
    if signature.path:
        return [f"{path}: " if path else "" for path in _paths(site, site.argument(*signature.path))]
    return [f"{_value(site, signature.subject) or 'body'} "] if signature.subject else [""]


def _paths(site: CallSite, node: ast.expr | None) -> list[str]:
    """Returns ``{path}.groups[{index}]`` for ``(*path, "groups", index)``."""
    if not isinstance(node, ast.Tuple):
        return ["{path}"]
    paths = [""]
    for part in node.elts:
        match part:
            case ast.Starred():
                steps = ["{path}"]
            case ast.Name(id="index" | "number" as name):
                steps = [f"[{{{name}}}]"]
            case ast.Name(id=name) if not site.texts(part):
                steps = [f".{{{name}}}"]
            case ast.Constant(value=int() as index):
                steps = [f"[{index}]"]
            case _:
                steps = [f".{text}" for text in site.texts(part)] or [".{name}"]
        paths = [path + step for path in paths for step in steps]
    return [path.removeprefix(".") for path in paths]


def _value(site: CallSite, place: tuple[int, str] | None) -> str | None:
    return next(iter(site.texts(site.argument(*place))), None) if place else None


def _field_text(module: Module, text: str) -> ErrorText:
    return ErrorText(module.package, "400", "invalid_request", f"{{field}}: {text}", module.name)


def _dictionary_texts(module: Module) -> list[str]:
    """Returns the values of the table that translates errors of pydantic."""
    return [
        value.value
        for node in module.tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
        for value in node.value.values
        if isinstance(value, ast.Constant) and isinstance(value.value, str) and " " in value.value
    ]
