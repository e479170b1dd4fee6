"""All targets, by their names."""

from tests.fuzz import authorization_targets, http_targets, record_targets, token_targets
from tests.fuzz.target import Target

TARGETS: dict[str, Target] = {
    target.name: target
    for module in (http_targets, token_targets, authorization_targets, record_targets)
    for target in module.TARGETS
}
