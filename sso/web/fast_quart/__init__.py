"""Quart without the parts that this service does not use, which take most of the time of a request."""
