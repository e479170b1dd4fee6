"""The languages of the pages and mails. Commands import this without the translations."""

SOURCE = "en"
NAMES = {
    SOURCE: "English",
    "de": "Deutsch",
    "es": "Español",
    "fr": "Français",
    "ja": "日本語",
    "ko": "한국어",
    "pl": "Polski",
    "pt-BR": "Português (Brasil)",
    "ru": "Русский",
    "zh-Hans": "简体中文",
}
"""The languages of the pages: tags of BCP 47, each with the language's name for itself."""

LANGUAGES = tuple(NAMES)
