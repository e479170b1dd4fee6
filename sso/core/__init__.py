"""Modules that every package may import; they import no other package of this project."""
