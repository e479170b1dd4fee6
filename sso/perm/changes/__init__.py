"""The one way in which permissions are changed: what a write changes for whom, dry runs, and assertions."""
