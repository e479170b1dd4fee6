"""Words shared by all rooms of the house; imports nothing of ours."""
