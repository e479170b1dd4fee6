"""The fields of the forms for users, and the values that the management API gets."""

from typing import Any

from sso.console.form_values import split_tags

TEXTS = ("login", "nick", "country", "lang", "level", "phone")
LISTS = ("tags", "purchases")
FLAGS = ("email_verified", "phone_verified")
# Who changes these can take over the account, or give it roles: passwords are reset by e-mail, conditions of roles
# look at the rest.
CONFIRMED_FIELDS = ("login", "email_verified", "tags", "purchases")


def typed_fields(form: dict[str, str]) -> dict[str, Any]:
    """Returns the fields of a user as JSON values.

    A form names its check boxes in ``flags``, because a browser does not send an empty one.
    """
    values: dict[str, Any] = {name: form[name].strip() for name in TEXTS if name in form}
    values |= {name: split_tags(form[name]) for name in LISTS if name in form}
    values |= {name: name in form for name in FLAGS if name in form.get("flags", "").split()}
    if form.get("password"):
        values["password"] = form["password"]
    return values


def changed_fields(form: dict[str, str]) -> dict[str, Any]:
    """Returns the values of a refused form, to show them again; not the password."""
    return {name: value for name, value in typed_fields(form).items() if name != "password"}
