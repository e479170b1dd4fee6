"""The permission engine: pure functions from facts and a moment to permissions. No clock, store or request."""
