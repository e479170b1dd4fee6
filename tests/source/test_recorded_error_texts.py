"""The texts of errors that recorded requests keep."""

from scripts.reference_tables.errors import error_texts
from scripts.reference_tables.source import modules

# Texts of OAuth errors with variable parts. Each part is a name or number of this service, or the error has another
# text for recordings.
REVIEWED = {
    "DPoP: alg: expected one of {…}",
    "DPoP: {error}",
    "grant_type: {grant_type} is not one of the client's grant_types",
    "prompt: expected some of {…}",
    "response_mode: expected {…}",
    "scope: expected some of {…}",
    "scope: expected {expected}, or none, for a token with the rights of the application",
    "subject_token: {description}",
    "the user has not signed in as acr_values requires: expected one of {…}",
    "{name} is not supported",
    "{name} is required",
    "{name} must not appear more than once",
    "{name}: expected UTF-8",
    "{name}: expected at most {max_length} characters, without NUL",
}
NOT_RECORDED = ("oauth.clients.attribute_rules", "oauth.clients.operations", "oauth.logout", "oauth.registration.")


def test_variable_texts_of_errors_are_reviewed() -> None:
    """A new text with a variable part may repeat what was sent, or say something about a user."""
    texts = [text for text in error_texts(modules()) if text.package in ("oauth", "device") and "{" in text.text]
    assert {text.text for text in texts if not text.module.startswith(NOT_RECORDED)} == REVIEWED
