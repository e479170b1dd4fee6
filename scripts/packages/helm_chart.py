"""Builds the Helm chart in a folder: ``python -m scripts.packages.helm_chart FOLDER``.

Its template is deploy/kubernetes/sso.yaml with the values of deploy/helm/values.yaml in place of the sample's, so that
both have the same objects.
"""

import shutil
import sys
from pathlib import Path

DEPLOY = Path(__file__).parents[2] / "deploy"
NAME = "{{ .Release.Name }}"
SETTINGS = """  {{- range $name, $value := .Values.settings }}
  {{ $name }}: {{ $value | quote }}
  {{- end }}
"""


RESOURCES = """          resources:
            requests:
              cpu: "1"
              memory: 512Mi
            limits:
              memory: 1Gi
"""
ANNOTATIONS = """    # For ingress-nginx: the longest body, longer than a poll is held, and no buffering.
    nginx.ingress.kubernetes.io/proxy-body-size: 16m
    nginx.ingress.kubernetes.io/proxy-read-timeout: "75"
    nginx.ingress.kubernetes.io/proxy-buffering: "off"
"""


def required(value: str) -> str:
    return f'{{{{ required "{value} is required" .Values.{value} }}}}'


# What stands in the manifest, and what stands in the template. The order matters: names come last.
REPLACEMENTS = (
    ('SSO_WORKERS: "2"\n', "SSO_WORKERS: {{ .Values.workers | quote }}\n" + SETTINGS),
    ("SSO_TRUSTED_PROXIES: REPLACE_INGRESS_NETWORK", f"SSO_TRUSTED_PROXIES: {required('networks.ingress')}"),
    (
        "registry.example.com/sso@sha256:REPLACE_DIGEST",
        f"{{{{ .Values.image.repository }}}}@sha256:{required('image.digest')}",
    ),
    ("cidr: REPLACE_DATABASE_NETWORK", f"cidr: {required('networks.database')}"),
    ("cidr: REPLACE_SMTP_NETWORK", f"cidr: {required('networks.smtp')}"),
    ("sso.example.com", required("host")),
    # Pods are replaced when a setting changes: they read the settings when they start.
    (
        '        prometheus.io/port: "9100"\n',
        '        prometheus.io/port: "9100"\n        checksum/values: {{ .Values | toJson | sha256sum }}\n',
    ),
    (RESOURCES, "          resources: {{- toYaml .Values.resources | nindent 12 }}\n"),
    (ANNOTATIONS, "    {{- toYaml .Values.ingressAnnotations | nindent 4 }}\n"),
    ("replicas: 3", "replicas: {{ .Values.replicas }}"),
    ("metadata.name: ingress-nginx", "metadata.name: {{ .Values.namespaces.ingress }}"),
    ("metadata.name: monitoring", "metadata.name: {{ .Values.namespaces.monitoring }}"),
    ("secretName: sso-tls", "secretName: {{ .Values.tlsSecretName }}"),
    ("secretRef:\n                name: sso\n", "secretRef:\n                name: {{ .Values.secretName }}\n"),
    ("name: sso\n", f"name: {NAME}\n"),
    ("app: sso\n", f"app: {NAME}\n"),
)


def template() -> str:
    manifest = (DEPLOY / "kubernetes/sso.yaml").read_text()
    text = manifest[manifest.index("apiVersion:") :]  # the head says how to use the manifest
    for old, new in REPLACEMENTS:
        if old not in text:
            raise ValueError(f"deploy/kubernetes/sso.yaml: expected {old!r}")
        text = text.replace(old, new)
    return text


def build(folder: Path) -> Path:
    chart = folder / "sso"
    shutil.copytree(DEPLOY / "helm", chart)
    (chart / "templates").mkdir()
    (chart / "templates/sso.yaml").write_text(template())
    return chart


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))
