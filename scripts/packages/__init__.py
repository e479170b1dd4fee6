"""Builds the files of a release besides the wheel: Debian package and Helm chart."""
