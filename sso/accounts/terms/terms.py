"""What people accept before they use an account: terms, privacy policy and minimum age.

The boxes are checked when an account is created in the browser. When SSO_TERMS_VERSION is set, every user who has not
accepted this version is asked at the next sign-in, before the browser session can be used. The version is a column of
the user, which a sign-in and the lookup of a session read anyway. Of the age, nothing is stored.
"""

from collections.abc import Mapping

from sso.accounts.form_problem import FormProblem
from sso.accounts.model import User
from sso.core.brand import CurrentBrand
from sso.core.language import Text

TERMS_PATH = "/account/terms"
UNCHECKED = Text("Please check this box to continue.")


class Terms:
    def __init__(self, brand: CurrentBrand, version: str = "", minimum_age: int = 0) -> None:
        self._brand = brand
        self.version = version
        self.minimum_age = minimum_age

    @property
    def has_documents(self) -> bool:
        return bool(self._brand.value.terms_url or self._brand.value.privacy_url)

    @property
    def accepted_version(self) -> str | None:
        """The version that a new user accepts, "" for one without a name; None if there is nothing to accept."""
        return self.version if self.has_documents or self.minimum_age else None

    def must_accept(self, user: User) -> bool:
        """Returns whether the user has to accept the present version before a browser session can be used."""
        return bool(self.version) and user.terms_version != self.version and self.accepted_version is not None

    def problem(self, form: Mapping[str, str]) -> FormProblem | None:
        """Returns which box of a form is not checked, or None."""
        if self.has_documents and form.get("accept_terms") != "1":
            return FormProblem(UNCHECKED, field="accept_terms")
        if self.minimum_age and form.get("is_of_age") != "1":
            return FormProblem(UNCHECKED, field="is_of_age")
        return None
