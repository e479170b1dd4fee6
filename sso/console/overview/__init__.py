"""The section "Overview"."""
