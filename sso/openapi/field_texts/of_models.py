"""Fields whose name means something else in one model."""

_LOGIN_SECTION = "Rules that are checked at the sign-in: a tree with `value`."
_ROLE_META = "The rules that the role gives, below the section that they stand in."
_COUNT_CREATED = "How many records are created."

OF_MODELS = {
    "ImpersonationRequest.reason": "Why the account is opened, for the audit trail. The user does not see it.",
    "ImpersonationRequest.minutes": "How long the account stays open.",
    "ImpersonationRequest.writes": "Whether the profile can be changed and sessions be ended; otherwise nothing can.",
    **{f"{model}.login": _LOGIN_SECTION for model in ("AssignedData", "Assignment", "AssignmentChanges")},
    **{f"{model}.login": _LOGIN_SECTION for model in ("Schema", "SchemaChanges")},
    **{f"{model}.meta": _ROLE_META for model in ("NewRole", "Role", "RoleChanges", "RoleFields", "SchemaRole")},
    **{f"{model}.created": _COUNT_CREATED for model in ("AppliedDocument", "ApplyStateOrDryRun", "SaveStateOrDryRun")},
    "MemberChanges.roles": "The roles at the project, and at applications, services and groups of it by their ids.",
    "NewMember.login": "The login of the user, in place of user_id.",
    "NewMember.roles": "The roles at the project, and at applications, services and groups of it by their ids.",
    "Project.applications": "How many applications the project has.",
    "Project.groups": "How many groups the project has.",
    "ChangeEvent.type": "The type of the event; permissions_changed if it is missing.",
    "ChangeEvent.users": "How many users may be affected.",
    "RetriedEventCount.events": "How many events are sent again.",
    "RetriedEvents.ids": "The ids of the failed events to send again; without it, all.",
    "InvitationRecord.days": "For how many days the link works.",
    "InvitationRecord.lang": "The language of the e-mail.",
    "FiguresQuery.days": "The number of days of the funnel.",
    "SecretRotation.expires_in": "Seconds after which the new secret ends; without it, it has no end.",
    "SecondFactor.type": "The kind of factor: totp, email or passkey.",
    "ProjectQuery.name": "Only the project with this id or alias.",
    "HolderQuery.role": "Only users with this role.",
    "PermissionsQuery.at": "A moment in the past, in Unix seconds, for which permissions are computed.",
    "UserDataOptions.explain": "Why the user has permissions: true for all rules, or the name of one.",
    "ListApplicationKeysList.private_key": "Whether the service holds the private key: held or none.",
    "Role.name": "The name of the role.",
    "NewRole.name": "The name of the role.",
    "RoleFields.name": "The name of the role.",
    "SchemaRole.name": "The name of the role.",
    "LimitedRole.name": "The name of the role.",
    "MemberRole.name": "The name of the role.",
    "Problem.name": "The name of the check.",
    "Node.name": "The name of the node.",
    "CloseGsidRequest.status": "How the sign-in ended for the game.",
}
