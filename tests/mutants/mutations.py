"""Makes the mutants of a module: copies of its syntax tree with one change each."""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.Mod: ast.Mult,
}  # fmt: skip
_RECORDS = ("Struct", "RecordWithHiddenFields", "StateComparison", "LinkLoginFlow", "AddressQuery")


@dataclass(frozen=True)
class Mutant:
    line: int
    change: str
    tree: ast.Module

    @property
    def name(self) -> str:
        return f"line {self.line}: {self.change}"


def mutants(source: str) -> list[Mutant]:
    """Returns all mutants of a module, in the order of its lines."""
    tree = ast.parse(source)
    return sorted(_mutants(tree), key=lambda mutant: mutant.line)


def _mutants(tree: ast.Module) -> Iterator[Mutant]:
    nodes = list(ast.walk(tree))
    untouched = _untouched(tree)
    for number, node in enumerate(nodes):
        if id(node) in untouched:
            continue
        for change in range(_changes(node)):
            changed = copy.deepcopy(tree)
            target = _walked(changed, number)
            before = ast.unparse(target)
            replacement = _change(target, change)
            if replacement is not target:
                _replace(changed, target, replacement)
            text = f"{_short(before)} -> {_short(ast.unparse(replacement))}"
            yield Mutant(getattr(node, "lineno", 0), text, ast.fix_missing_locations(changed))


def _untouched(tree: ast.Module) -> set[int]:
    """What no test should notice: annotations, docstrings, texts of errors and of log lines, names of exports.

    And what cannot be exchanged in a running process: the defaults of a Struct.
    """
    left_out: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            left_out += [
                argument.annotation
                for argument in ast.walk(node.args)
                if isinstance(argument, ast.arg) and argument.annotation
            ]
            left_out += [node.returns] if node.returns else []
            left_out += node.decorator_list
        if isinstance(node, ast.ClassDef):
            left_out += [*node.decorator_list, *node.bases, *node.keywords]
            if any(ast.unparse(base) in _RECORDS for base in node.bases):
                left_out += [field.value for field in node.body if isinstance(field, ast.AnnAssign) and field.value]
        if isinstance(node, ast.AnnAssign):
            left_out.append(node.annotation)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out.append(node)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            left_out += [part for part in node.exc.args if isinstance(part, ast.Constant | ast.JoinedStr)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Text":
            left_out.append(node)
        if isinstance(node, ast.Assert | ast.Import | ast.ImportFrom):
            left_out.append(node)
        if isinstance(node, ast.Assign) and any(
            isinstance(name, ast.Name) and name.id.endswith("Json") for name in node.targets
        ):
            left_out.append(node)
    return {id(part) for node in left_out for part in ast.walk(node)}


def _changes(node: ast.AST) -> int:
    """Returns how many mutants a node makes."""
    match node:
        case ast.Compare():
            return len(node.ops)
        case ast.BoolOp():
            return 1 + len(node.values)
        case ast.UnaryOp(op=ast.Not()) | ast.IfExp() | ast.Raise() | ast.Continue() | ast.Break():
            return 1
        case ast.BinOp():
            return type(node.op) in _OPERATORS
        case ast.Constant(value=bool() | int()):
            return 1
        case ast.Return(value=ast.expr()) if not (isinstance(node.value, ast.Constant) and not node.value.value):
            return 1
        case ast.Expr(value=ast.Call() | ast.Await()):
            return 1
        case ast.If():
            return 1
    return 0


def _change(node: ast.AST, number: int) -> ast.AST:
    """Changes the node, or returns another one for its place."""
    match node:
        case ast.Compare():
            node.ops[number] = _COMPARISONS[type(node.ops[number])]()
        case ast.BoolOp() if number == 0:
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.BoolOp():
            del node.values[number - 1]
        case ast.UnaryOp():
            return node.operand
        case ast.IfExp():
            node.body, node.orelse = node.orelse, node.body
        case ast.BinOp():
            node.op = _OPERATORS[type(node.op)]()
        case ast.Constant(value=bool()):
            node.value = not node.value
        case ast.Constant(value=int(number)):
            node.value = number + 1
        case ast.Return():
            node.value = ast.Constant(None)
        case ast.Continue():
            return ast.Break()
        case ast.Break():
            return ast.Continue()
        case ast.Raise() | ast.Expr():
            return ast.Pass()
        case ast.If():
            node.test = ast.UnaryOp(ast.Not(), node.test)
    return node


def _walked(tree: ast.Module, number: int) -> ast.AST:
    return next(node for position, node in enumerate(ast.walk(tree)) if position == number)


def _replace(tree: ast.Module, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
            elif isinstance(value, list) and any(item is old for item in value):
                value[:] = [new if item is old else item for item in value]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:59]}…"
