"""What the entries of the audit trail say, in one sentence each."""

from collections.abc import Callable, Mapping
from typing import Any

from sso.console.audit.role_sentences import EFFECT, membership_saved, permissions_saved
from sso.console.audit.sentence import CODE, Entry, Piece, Sentence, enumerated, fill

# What someone did, after their name. Values in braces: see `_values`. {fields} are the fields that were changed.
_TEMPLATES: Mapping[str, str] = {
    "access_key.create": "created an access key of {application}",
    "access_key.delete": "deleted an access key of {application}",
    "access_key.save": "changed {fields} of an access key of {application}",
    "application.create": "created the application {application}",
    "application.delete": "deleted the application {application}",
    "application.restore": "restored the application {application}",
    "application.email_secret": "created the e-mail secret of {application}",
    "application.email_secret.read": "read the e-mail secret of {application}",
    "application.data_secret.read": "read the secret of the data requests to {application}",
    "application.key.add": "added the public key {name} to {application}",
    "application.key.remove": "removed the public key {name} from {application}",
    "application.move": "moved the application {application} out of {project}",
    "application.save": "changed {fields} of the application {application}",
    "application.service_jwt": "issued a service JWT for {application}",
    "assertions.override": "saved a change of {application} although it breaks an assertion",
    "assertions.save": "changed the assertions of {application}",
    "brand.save": "changed {fields} of the brand",
    "client.create": "created the client {client}",
    "client.delete": "deleted the client {client}",
    "client.finish_rotation": "ended the old secret of the client {client}",
    "client.rotate_secret": "gave the client {client} a new secret",
    "client.start_recording": "began to record the requests of the client {client}",
    "client.stop_recording": "stopped recording the requests of the client {client}",
    "client.save": "changed {fields} of the client {client}",
    "game_session.terminate": "ended the login of a game",
    "group.access": "changed who belongs to the group {group}",
    "group.create": "created the group {group} of {project}",
    "group.delete": "deleted the group {group} of {project}",
    "group.save": "changed {fields} of the group {group}",
    "group.tags": "changed the tags of the group {group}",
    "identity_provider.create": "added the identity provider {identity_provider}",
    "identity_provider.delete": "deleted the identity provider {identity_provider}",
    "identity_provider.save": "changed {fields} of the identity provider {identity_provider}",
    "invitation.create": "invited {target}",
    "invitation.delete": "revoked the invitation of {target}",
    "list.export": "exported the list {target}",
    "master_key.drop_old": "dropped the old master keys",
    "master_key.reseal": "encrypted all secrets with the master key {target}",
    "membership.cascade": "took roles that no longer exist from members of {project}",
    "membership.restore": "gave members of {project} their roles back",
    "permissions.restore": "gave the role {name} at {application} back to its users",
    "permissions.cascade": "took the deleted role {name} from everyone at {application}",
    "project.cascade": "removed roles that no longer exist from the groups of {project}",
    "project.delete": "deleted the project {project}",
    "project.publish": "created the project {project}",
    "project.restore": "restored the project {project}",
    "registration_token.create": "created the registration token {target}",
    "registration_token.delete": "revoked the registration token {target}",
    "role.delete": "deleted the role {name} of {application}",
    "schema.save": "changed the schema of {application}",
    "signal_stream.create": "created the stream of signals {target}",
    "signal_stream.delete": "deleted the stream of signals {target}",
    "signal_stream.example": "sent an example through the stream of signals {target}",
    "signal_stream.save": "changed {fields} of the stream of signals {target}",
    "signing_key.retire": "retired the signing key {target}",
    "signing_key.rotate": "created the signing key {target}",
    "state.export": "exported the state of the service",
    "user.ban": "banned {user}",
    "user.create": "created the user {user}",
    "user.data_removal_failed": "gave up asking {application} to remove the data of {user}",
    "user.data_removed": "had {application} remove the data of {user}",
    "user.data_request_retry": "asked {application} about the data of {user} again",
    "user.delete": "closed the account of {user}",
    "user.end_game": "signed {user} out of a game",
    "user.end_session": "signed {user} out of a browser",
    "user.end_sessions": "signed {user} out everywhere",
    "user.erase": "erased the data of {user}",
    "user.export": "exported the data of {user}",
    "user.link": "added a way in which {user} signs in",
    "user.impersonate": "made a link to open the account of {user} as support",
    "user.impersonated_change": "sent a form of the account page in place of {user}",
    "user.impersonation_begin": "opened the account of {user} as support",
    "user.impersonation_end": "closed the account of {user} after opening it as support",
    "user.merge": "merged {user} into another user",
    "user.reset_2fa": "removed the second factors of {user}",
    "user.restore": "restored the account of {user}",
    "user.token_exchange": "exchanged an access token of {user}, to act for them",
    "user.unlink": "removed a way in which {user} signs in",
    "user.unmerge": "undid the merge of {user} into another user",
    "user.upgrade": "made the guest {user} an account",
    "user.unban": "lifted a ban of {user}",
    "user.unblock_2fa": "unblocked the second factors of {user}",
    "users.export": "exported all users",
    "webhook.create": "created the webhook {webhook}",
    "webhook.delete": "deleted the webhook {webhook}",
    "webhook.retry": "sent failed events of the webhook {webhook} again",
    "webhook.save": "changed {fields} of the webhook {webhook}",
}
_FIELD_WORDS = {
    "privacy_url": "link to the privacy policy", "signin_text": "text on the sign-in form",
    "support_url": "link to support", "terms_url": "link to the terms",
    "email_verified": "e-mail verification", "login": "e-mail address", "nick": "nickname", "private_data": "rules",
    "redirect_uris": "redirect URIs", "url": "address", "user_limit": "limit of users",
}  # fmt: skip


def predicate_of(entry: Entry) -> Sentence:
    """Returns what the author of the entry did: "gave Player the role moderator at Harbor Chat"."""
    operation = entry["operation"]
    build = _BUILDERS.get(operation)
    sentence = build(entry) if build else ()
    template = _TEMPLATES.get(operation, "did {operation} to {target}")
    return sentence or fill(template, _values(entry))


def sentence_of(entry: Entry) -> Sentence:
    return (*_actor(entry), Piece(" "), *predicate_of(entry))


def undo_sentence_of(entry: Entry) -> Sentence:
    """Returns what the undo would do: for roles who gets or loses them, else which change it takes back."""
    back = {**entry, "before": entry["after"], "after": entry["before"]}
    effects = {"permissions.save": permissions_saved, "membership.save": membership_saved}
    effect = effects[entry["operation"]](back, EFFECT) if entry["operation"] in effects else ()
    return (Piece("Undo: "), *(effect or sentence_of(entry)))


def entry_scope(entry: Entry) -> Sentence:
    """Returns the project and application that the entry belongs to."""
    ids = {"project": entry["project_id"], "application": entry["application_id"]}
    return tuple(Piece("", kind, str(id)) for kind, id in ids.items() if id)


def has_sentence(operation: str) -> bool:
    return operation in _TEMPLATES or operation in _BUILDERS


def _actor(entry: Entry) -> Sentence:
    if entry["user_id"]:
        return (Piece("", "user", entry["user_id"]),)
    if entry["operator"]:
        return (Piece(f"{entry['operator']} (command line)"),)
    if entry["client_id"]:
        return (Piece("", "client", entry["client_id"]),)
    if entry["service_id"]:
        return (Piece("", "application", str(entry["service_id"])),)
    return (Piece("The service"),)


def _values(entry: Entry) -> dict[str, Piece | Sentence]:
    """The target as the record that the operation is about, and the application and project of the entry."""
    kind, target = entry["operation"].partition(".")[0], entry["target"]
    first, _, second = target.partition("/")
    application_id = entry["application_id"] or (first if kind in ("application", "permissions", "schema") else "")
    stored = _stored_name(entry) if kind != "user" else ""
    return {
        "operation": Piece(entry["operation"], CODE),
        "target": Piece(target, CODE),
        "name": Piece(second, CODE),
        "user": Piece("", "user", target),
        "application": Piece(stored if kind == "application" else "", "application", str(application_id or first)),
        "project": Piece(stored if kind == "project" else "", "project", entry["project_id"] or target),
        **{name: Piece(stored, name, target) for name in ("group", "client", "identity_provider", "webhook")},
        "fields": _fields(entry),
    }


def _stored_name(entry: Entry) -> str:
    for values in (entry["after"], entry["before"]):
        for name in ("name", "title", "url") if isinstance(values, dict) else ():
            if isinstance(values.get(name), str) and values[name]:
                return str(values[name])
    return ""


def _changed(entry: Entry) -> dict[str, Any]:
    before, after = (value if isinstance(value, dict) else {} for value in (entry["before"], entry["after"]))
    return {name: after.get(name) for name in {**before, **after} if before.get(name) != after.get(name)}


def _fields(entry: Entry) -> Sentence:
    words = [_FIELD_WORDS.get(name, name.replace("_", " ")) for name in _changed(entry)]
    return enumerated([Piece(word) for word in words]) or (Piece("something"),)


def _user_saved(entry: Entry) -> Sentence:
    changed = _changed(entry)
    if changed.keys() == {"disabled"}:
        template = "disabled {user}" if changed["disabled"] else "enabled {user}"
    elif changed.keys() == {"password"}:
        template = "gave {user} a new password"
    else:
        template = "changed {fields} of {user}"
    return fill(template, _values(entry))


def _user_looked_up(entry: Entry) -> Sentence:
    """Without such a user, the target is the address that was looked for."""
    found = isinstance(entry["after"], dict) and entry["after"].get("found")
    return fill("looked up {user}" if found else "looked for {target}, and found no user", _values(entry))


def _role_saved(entry: Entry) -> Sentence:
    is_new = entry["before"] is None
    template = "created the role {name} of" if is_new else "changed {fields} of the role {name} of"
    return fill(f"{template} {{application}}", _values(entry))


def _project_saved(entry: Entry) -> Sentence:
    """Most changes of the settings are about what groups get at an application."""
    changed = _changed(entry)
    settings = [values.get("settings") for values in (entry["before"], entry["after"]) if isinstance(values, dict)]
    services = [value.get("services") or {} for value in settings if isinstance(value, dict)]
    if changed.keys() != {"settings"} or len(services) != 2 or services[0] == services[1]:
        return fill("changed {fields} of the project {project}", _values(entry))
    before, after = services
    ids = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    applications = enumerated([Piece("", "application", key) for key in ids])
    return fill("changed the roles that groups of {project} get at {at}", {**_values(entry), "at": applications})


_BUILDERS: Mapping[str, Callable[[Entry], Sentence]] = {
    "membership.save": membership_saved,
    "permissions.save": permissions_saved,
    "project.save": _project_saved,
    "role.save": _role_saved,
    "user.lookup": _user_looked_up,
    "user.save": _user_saved,
}
