"""Permissions of users at applications and projects."""
