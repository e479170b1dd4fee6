project = "sso"
extensions: list[str] = []
exclude_patterns = ["_build"]
html_theme = "alabaster"
