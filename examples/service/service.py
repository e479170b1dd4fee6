"""The server of a game: it gets a token for itself, and with it signs a player in to its application."""

import os

import requests
from authlib.integrations.requests_client import OAuth2Session

ISSUER = "http://localhost:8000"

metadata = requests.get(f"{ISSUER}/.well-known/openid-configuration", timeout=10).json()
client = OAuth2Session("game-server", os.environ["CLIENT_SECRET"])
token = client.fetch_token(metadata["token_endpoint"], grant_type="client_credentials")
print(f"The token is valid for {token['expires_in']} seconds.")

answer = requests.post(
    f"{ISSUER}/proxy/api/login",
    json={"login": "player@example.com", "password": "player-password"},  # a player of the demo
    headers={"Service-Jwt": token["access_token"]},
    timeout=10,
)
answer.raise_for_status()
player = answer.json()
[permissions] = player["permissions"].values()  # at the application of the client
print(f"{player['nick']} has in this game: {', '.join(permissions)}")
