"""The section "Webhooks": the addresses that changes are sent to."""
