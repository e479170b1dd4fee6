"""Builds the documentation site and checks it. scripts/docs runs this package."""
