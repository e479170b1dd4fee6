"""Checks a Kubernetes manifest of the service before it is applied: ``scripts/deploy-check manifest FILE``.

The sample in ``deploy/kubernetes`` has placeholders for what only the operator knows. This program refuses a manifest
in which one is left, an image that is not named by its digest, trusted proxies in a wide network, and pods without a
policy for their network or with environment variables for Services.
"""

import ipaddress
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

PLACEHOLDER = re.compile(r"\S*REPLACE_[A-Z_]+")
DIGEST = re.compile(r".+@sha256:[0-9a-f]{64}")
MAX_ADDRESSES = 65536


def problems(text: str) -> list[str]:
    """Returns what has to be changed, a line each."""
    documents = [document for document in yaml.safe_load_all(text) if document]
    return [
        *(f"{name}: replace it with your own value" for name in _placeholders(text)),
        *(problem for document in documents for problem in _images(document)),
        *(problem for document in documents if document["kind"] == "ConfigMap" for problem in _proxies(document)),
        *(problem for document in documents for problem in _service_links(document)),
        *_policies(documents),
    ]


def _placeholders(text: str) -> list[str]:
    lines = (line for line in text.splitlines() if not line.strip().startswith("#"))
    return sorted({match for line in lines for match in PLACEHOLDER.findall(line)})


def _images(document: dict[str, Any]) -> Iterator[str]:
    pod = _pod(document)
    for container in (*pod.get("initContainers", ()), *pod.get("containers", ())):
        if not DIGEST.fullmatch(container["image"]):
            yield f"image: {container['image']} has no digest: a tag can be moved to another image; use name@sha256:…"


def _proxies(document: dict[str, Any]) -> Iterator[str]:
    for text in str(document.get("data", {}).get("SSO_TRUSTED_PROXIES", "")).split(","):
        try:
            network = ipaddress.ip_network(text.strip())
        except ValueError:
            continue  # the service says what is wrong with it
        # Subnets of IPv6 have 2**64 addresses each.
        size = network.num_addresses if network.version == 4 else network.num_addresses >> 64
        if size > MAX_ADDRESSES:
            yield (
                f"SSO_TRUSTED_PROXIES: {network} has more than {MAX_ADDRESSES} addresses: every pod in it could choose "
                "the address that a request seems to come from; name the network of the ingress controller"
            )


def _service_links(document: dict[str, Any]) -> Iterator[str]:
    pod = _pod(document)
    if pod.get("containers") and pod.get("enableServiceLinks", True):
        yield (
            f"{document['kind']} {document['metadata']['name']}: enableServiceLinks must be false: for a Service named "
            "sso, the pods would get variables such as SSO_PORT, which are no settings"
        )


def _pod(document: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = document.get("spec", {}).get("template", {}).get("spec", {})
    return pod


def _policies(documents: list[dict[str, Any]]) -> Iterator[str]:
    restricted = [
        document["spec"]["podSelector"].get("matchLabels", {})
        for document in documents
        if document["kind"] == "NetworkPolicy" and set(document["spec"].get("policyTypes", ())) == {"Ingress", "Egress"}
    ]
    for document in documents:
        if document["kind"] == "Deployment":
            labels = document["spec"]["template"]["metadata"]["labels"]
            if not any(selector.items() <= labels.items() for selector in restricted):
                name = document["metadata"]["name"]
                yield f"Deployment {name}: no NetworkPolicy restricts both directions, Ingress and Egress"


def main() -> None:
    found = problems(Path(sys.argv[1]).read_text())
    for problem in found:
        print(problem, file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
