"""The section "State": the export of the service, and documents of desired state that are compared and applied."""
