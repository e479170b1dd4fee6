"""Personal data that games have: they are asked for it in an export, and to remove it after an erasure."""
