"""`sso user add --admin` creates the first administrator."""

from tests.cli.conftest import Sso


def test_user_add_admin_assigns_the_role_root(sso: Sso) -> None:
    assert sso("user", "add", "--admin", "ann@example.com").code == 0
    assert "can_create_projects" in sso("perm", "list", "ann@example.com").out


def test_user_add_without_admin_assigns_no_role(sso: Sso) -> None:
    assert sso("user", "add", "bob@example.com").code == 0
    assert "can_create_projects" not in sso("perm", "list", "bob@example.com").out
