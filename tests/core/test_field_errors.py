"""Errors that name a field by its path."""

import pytest

from sso.core.field_errors import FieldError, field_prefix, field_text


def test_field_error_text_is_the_path_and_what_was_expected() -> None:
    error = FieldError(("groups", 3, "title"), "must be a string")
    assert (error.status, error.message) == (400, "groups[3].title: must be a string")


def test_within_puts_a_prefix_before_all_paths_and_keeps_the_status() -> None:
    error = FieldError(("title",), "is required", status=409, others=(FieldError(("tags", 0), "must be a tag"),))
    prefixed = error.within("groups", 3)
    assert prefixed.path == ("groups", 3, "title")
    assert (prefixed.status, prefixed.message) == (
        409,
        "groups[3].title: is required; groups[3].tags[0]: must be a tag",
    )


def test_field_prefix_changes_only_errors_of_fields() -> None:
    with pytest.raises(FieldError, match=r"^data\.title: is required$"), field_prefix("data"):
        raise FieldError(("title",), "is required")
    with pytest.raises(ValueError, match=r"^other$"), field_prefix("data"):
        raise ValueError("other")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("fixed_ips[]",), "fixed_ips[]"),
        (("services", "10", "groups", 0), "services.10.groups[0]"),
        (("meta", "a\nb", "name"), "meta.name"),
        (("x" * 65,), ""),
    ],
)
def test_path_text_leaves_out_keys_that_are_no_plain_names(path: tuple[str | int, ...], text: str) -> None:
    assert field_text(path) == text
