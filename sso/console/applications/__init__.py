"""The section "Applications": schema, roles, assertions and access keys, with a preview of who gains and loses what."""
