"""All records of the service, by kind."""

from sso.cli.records.api import CommandApi
from sso.cli.records.applications import ManagedApplications
from sso.cli.records.clients import ManagedClients
from sso.cli.records.groups import ManagedGroups
from sso.cli.records.invitations import ManagedInvitations
from sso.cli.records.keys import ManagedKeys
from sso.cli.records.permissions import ManagedAudit, ManagedPermissions, ManagedViolations
from sso.cli.records.projects import ManagedProjects
from sso.cli.records.providers import ManagedProviders
from sso.cli.records.roles import ManagedRoles
from sso.cli.records.state import ManagedState
from sso.cli.records.users import ManagedUsers
from sso.cli.records.webhooks import ManagedWebhooks


class ServiceRecords:
    def __init__(self, api: CommandApi) -> None:
        self.users = ManagedUsers(api)
        self.invitations = ManagedInvitations(api)
        self.violations = ManagedViolations(api)
        self.clients = ManagedClients(api)
        self.projects = ManagedProjects(api)
        self.applications = ManagedApplications(api)
        self.roles = ManagedRoles(api)
        self.groups = ManagedGroups(api, self.projects)
        self.providers = ManagedProviders(api)
        self.keys = ManagedKeys(api)
        self.webhooks = ManagedWebhooks(api)
        self.audit = ManagedAudit(api, self.users, self.projects)
        self.permissions = ManagedPermissions(api, self.users)
        self.state = ManagedState(api)
