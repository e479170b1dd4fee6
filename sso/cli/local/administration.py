"""The interfaces of ``sso/cli/administration.py`` with the database of this machine, each imported when it is used."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sso.cli.local.applications import LocalApplications
    from sso.cli.local.clients import LocalClients
    from sso.cli.local.groups import LocalGroups
    from sso.cli.local.invitations import LocalInvitations
    from sso.cli.local.keys import LocalKeys
    from sso.cli.local.permissions import LocalAudit, LocalPermissions
    from sso.cli.local.projects import LocalProjects
    from sso.cli.local.providers import LocalProviders
    from sso.cli.local.roles import LocalRoles
    from sso.cli.local.state import LocalState
    from sso.cli.local.users import LocalUsers
    from sso.cli.local.violations import LocalViolations
    from sso.cli.local.webhooks import LocalWebhooks
    from sso.cli.services import CommandServices


class LocalAdministration:
    def __init__(self, services: "CommandServices") -> None:
        self._services = services

    @property
    def users(self) -> "LocalUsers":
        from sso.cli.local.users import LocalUsers

        return LocalUsers(self._services)

    @property
    def invitations(self) -> "LocalInvitations":
        from sso.cli.local.invitations import LocalInvitations

        return LocalInvitations(self._services)

    @property
    def violations(self) -> "LocalViolations":
        from sso.cli.local.violations import LocalViolations

        return LocalViolations(self._services)

    @property
    def clients(self) -> "LocalClients":
        from sso.cli.local.clients import LocalClients

        return LocalClients(self._services)

    @property
    def audit(self) -> "LocalAudit":
        from sso.cli.local.permissions import LocalAudit

        return LocalAudit(self._services)

    @property
    def permissions(self) -> "LocalPermissions":
        from sso.cli.local.permissions import LocalPermissions

        return LocalPermissions(self._services)

    @property
    def state(self) -> "LocalState":
        from sso.cli.local.state import LocalState

        return LocalState(self._services)

    @property
    def applications(self) -> "LocalApplications":
        from sso.cli.local.applications import LocalApplications

        return LocalApplications(self._services)

    @property
    def roles(self) -> "LocalRoles":
        from sso.cli.local.roles import LocalRoles

        return LocalRoles(self._services)

    @property
    def projects(self) -> "LocalProjects":
        from sso.cli.local.projects import LocalProjects

        return LocalProjects(self._services)

    @property
    def groups(self) -> "LocalGroups":
        from sso.cli.local.groups import LocalGroups

        return LocalGroups(self._services)

    @property
    def providers(self) -> "LocalProviders":
        from sso.cli.local.providers import LocalProviders

        return LocalProviders(self._services)

    @property
    def keys(self) -> "LocalKeys":
        from sso.cli.local.keys import LocalKeys

        return LocalKeys(self._services)

    @property
    def webhooks(self) -> "LocalWebhooks":
        from sso.cli.local.webhooks import LocalWebhooks

        return LocalWebhooks(self._services)
