"""A service that plays a script: `sso play --scripted FILE`, for tests of games in an editor."""
