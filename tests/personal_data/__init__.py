"""Tests of ``sso.personal_data``."""
