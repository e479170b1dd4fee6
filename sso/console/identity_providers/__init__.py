"""The section "Identity providers": the services with which users can sign in."""
