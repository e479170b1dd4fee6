"""The documentation site at /docs/: files that scripts/docs has built, which are part of a release."""
