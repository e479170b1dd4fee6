"""Finds the metrics in the source: calls such as ``WorkerGauge("sockets", …)``."""

import ast

from scripts.reference_tables.source import CallSite, Module

Row = tuple[str, ...]
# The class, and what the metric is. The names of Prometheus's own classes have the prefix already.
_KINDS = {"WorkerGauge": "gauge", "DomainCounter": "counter", "Histogram": "histogram", "Counter": "counter"}


def metric_rows(modules: list[Module]) -> list[Row]:
    sites = (site for module in modules for site in module.calls)
    return sorted(_row(site) for site in sites if site.callee in _KINDS and _literal(site.argument(0, "name")))


def _row(site: CallSite) -> Row:
    kind = _KINDS[site.callee]
    name = "sso_" + _literal(site.argument(0, "name")).removeprefix("sso_")
    labels = ", ".join(f"``{label}``" for label in _labels(site))
    return (f"``{name}_total``" if kind == "counter" else f"``{name}``", kind, labels)


def _labels(site: CallSite) -> list[str]:
    """The labels are separate arguments, or a tuple of them."""
    nodes = [node for argument in site.call.args[2:] for node in getattr(argument, "elts", [argument])]
    return [_literal(node) for node in nodes if _literal(node)]


def _literal(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
