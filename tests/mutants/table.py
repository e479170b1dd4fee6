"""The modules that decide, and those of their tests that run in one process and take a second or two."""

ENGINE = "tests/perm/engine"
WINDOWS = f"{ENGINE}/test_time_windows.py"

# The test with the greatest chance to fail comes first.
MODULES: dict[str, tuple[str, ...]] = {
    "sso/oauth/clients/redirect_uris.py": ("tests/oauth/test_redirect_uris.py",),
    "sso/oauth/clients/authentication.py": ("tests/oauth/test_client_authentication.py",),
    "sso/core/jwt.py": ("tests/core/test_jwt.py",),
    "sso/core/net.py": ("tests/core/test_net.py", "tests/web/test_client_address.py"),
    "sso/web/client_address.py": ("tests/web/test_client_address.py",),
    "sso/perm/engine/conditions.py": (
        f"{ENGINE}/test_conditions.py",
        f"{ENGINE}/test_condition_index.py",
        WINDOWS,
    ),
    "sso/perm/engine/time_windows.py": (WINDOWS,),
    "sso/perm/engine/held_roles.py": (f"{ENGINE}/test_held_roles.py", WINDOWS),
    "sso/perm/engine/held_rules.py": (f"{ENGINE}/test_held_rules.py", f"{ENGINE}/test_render.py"),
    "sso/perm/engine/project_access.py": (f"{ENGINE}/test_project_access.py", f"{ENGINE}/test_rights.py"),
    "sso/perm/engine/rights.py": (f"{ENGINE}/test_rights.py", f"{ENGINE}/test_required_rights.py"),
    "sso/perm/engine/required_rights.py": (f"{ENGINE}/test_required_rights.py",),
    "sso/perm/engine/rules.py": (f"{ENGINE}/test_rules.py",),
    "sso/perm/engine/rule_check.py": (f"{ENGINE}/test_rule_check.py",),
    "sso/perm/engine/login_permission.py": (f"{ENGINE}/test_login_permission.py",),
    "sso/perm/engine/decode.py": (f"{ENGINE}/test_decode.py", f"{ENGINE}/test_conditions.py", WINDOWS),
    "sso/perm/engine/service_rights.py": (f"{ENGINE}/test_service_rights.py",),
    "sso/perm/authorization.py": ("tests/perm/test_authorization.py",),
    "sso/perm/delegation.py": ("tests/perm/test_delegation.py",),
    "sso/accounts/login/rate_limit.py": (
        "tests/accounts/test_login_counters.py",
        "tests/accounts/test_session_with_login_count.py",
    ),
    "sso/accounts/second_factor/requirement.py": ("tests/accounts/test_second_factor_rules.py",),
    "sso/accounts/second_factor/codes.py": ("tests/accounts/test_second_factor_rules.py",),
    "sso/accounts/second_factor/recovery_codes.py": ("tests/accounts/test_second_factor_rules.py",),
    "sso/db/rate_limit.py": ("tests/db/test_rate_limit.py",),
    "sso/core/rate_window.py": ("tests/db/test_rate_limit.py",),
    "sso/oauth/tokens/claims.py": ("tests/oauth/test_claims_of_scopes.py",),
    "sso/oauth/grant_types/authorization_code.py": (
        "tests/oauth/test_code_grant.py",
        "tests/oauth/test_client_cache.py",
    ),
    "sso/oauth/grant_types/refresh_token.py": ("tests/oauth/test_refresh_grant.py",),
}
