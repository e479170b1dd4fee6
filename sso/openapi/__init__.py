"""The OpenAPI document of the service, /openapi.json. It is built from the models that validate requests.

Each package describes its routes in a module ``api_operations``, which is imported when a client first asks for the
document.
"""
