"""The section "Projects": members, groups with conditions, services, settings, and the test of conditions."""
