"""A copy of the facts about an application in memory, and the answers that the service would give from it."""
