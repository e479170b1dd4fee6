"""The permission explorer: effective permissions with their reasons, and the differences of two users or moments."""
