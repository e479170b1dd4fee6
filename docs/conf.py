project = "sso"
extensions: list[str] = []
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"page_width": "1140px"}  # lines of 100 characters fit
