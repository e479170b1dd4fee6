"""`sso user add --admin` creates the first administrator."""

from tests.cli.conftest import Sso


def test_user_add_admin_assigns_the_role_root(sso: Sso) -> None:
    assert sso("user", "add", "--admin", "ann@example.com").code == 0
    assert "can_create_projects" in sso("perm", "list", "ann@example.com").out


def test_user_add_without_admin_assigns_no_role(sso: Sso) -> None:
    assert sso("user", "add", "bob@example.com").code == 0
    assert "can_create_projects" not in sso("perm", "list", "bob@example.com").out


def test_user_add_admin_creates_no_user_if_the_role_cannot_be_assigned(sso: Sso) -> None:
    assert sso("user", "add", "--admin", "first@example.com").code == 0
    assert sso("role", "change", "root", "--app", "1", "--user-limit", "1").code == 0
    audited = sso("audit", "--json").out
    assert sso("user", "add", "--admin", "eve@example.com").failure == "--admin: root can have at most 1 users"
    assert sso("user", "show", "eve@example.com").failure == "there is no user eve@example.com"
    assert sso("audit", "--json").out == audited
    assert sso("role", "change", "root", "--app", "1", "--user-limit", "0").code == 0
