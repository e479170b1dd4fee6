"""Second factors: checking codes, counting attempts, and turning factors on and off."""
