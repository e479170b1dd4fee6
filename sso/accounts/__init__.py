"""Users and their authentication: login, second factors, browser sessions, session tokens, user JWTs and pages."""
