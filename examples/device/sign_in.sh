#!/usr/bin/env bash
# Signs the user of a device without a browser in: the user confirms on a phone or computer. Needs curl and jq.
set -euo pipefail
issuer=http://localhost:8000
client_id=tv

started=$(curl -sS $issuer/proxy/oauth/device_authorization -d client_id=$client_id -d scope="openid email profile")
jq -r '"Open \(.verification_uri) and type \(.user_code).\nThe page must show: \(.match)"' <<< "$started"

while true; do
  # The request is held for up to 30 seconds, and answered the moment the user has confirmed.
  answer=$(curl -sS $issuer/proxy/oauth/token -d client_id=$client_id \
    -d grant_type=urn:ietf:params:oauth:grant-type:device_code \
    -d device_code="$(jq -r .device_code <<< "$started")" -d wait=30)
  case $(jq -r .error <<< "$answer") in
    null) break ;;            # the tokens
    authorization_pending) ;; # not yet
    *) jq -r .error_description <<< "$answer"; exit 1 ;;
  esac
done

curl -sS $issuer/proxy/oauth/userinfo -H "Authorization: Bearer $(jq -r .access_token <<< "$answer")" |
  jq -r '"Signed in as \(.name) (\(.email))."'
