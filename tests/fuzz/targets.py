"""All targets, by their names."""

from tests.fuzz import http_targets, record_targets, token_targets
from tests.fuzz.target import Target

TARGETS: dict[str, Target] = {
    target.name: target for target in (*http_targets.TARGETS, *token_targets.TARGETS, *record_targets.TARGETS)
}
