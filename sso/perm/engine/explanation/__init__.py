"""Explanations: why a user holds a rule, or why not."""
