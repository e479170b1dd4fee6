"""Turns the clients and roles of a realm export of Keycloak into a document of desired state."""
