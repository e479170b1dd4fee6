"""The profile that users edit on the account page: nickname, language and country."""
