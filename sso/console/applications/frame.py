"""What the pages of an application have in common: its record, tabs and paths."""

from typing import Any

from sso.console.list_pages import Variables
from sso.console.sections import APPLICATIONS

APPLICATION = "/applications/<application_id>"


def path_of(application_id: int | str) -> str:
    return f"{APPLICATIONS.path}/{application_id}"


def own_page(variables: Variables) -> str:
    return path_of(variables["application_id"])


def application_page(application: dict[str, Any], tab: str, title: str = "", tab_title: str = "") -> dict[str, Any]:
    """Returns the template values of a page of an application. A page below a tab has a title of its own."""
    base = path_of(application["application_id"])
    above = [(f"{base}/{tab}", tab_title)] if tab_title else []
    crumbs = [(base, application["name"]), *above] if title else []
    return {
        "title": title or application["name"],
        "crumbs": crumbs,
        "application": application,
        "base": base,
        "tab": tab,
    }
