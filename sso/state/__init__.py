"""The document of desired state: `sso apply` and `sso export`."""
