#!/usr/bin/env bash
# Signs a user in on a terminal: the user confirms in a browser, here or on a phone. Needs curl and jq.
set -eu

service=${SSO_URL:-http://127.0.0.1:8000}
started=$(curl -s $service/proxy/oauth/device_authorization -d client_id=tv -d scope="openid offline_access")
jq -r '"Open \(.verification_uri) and type \(.user_code). The page must show: \(.match)"' <<< "$started"
while true; do
  answer=$(curl -s $service/proxy/oauth/token -d client_id=tv \
    -d grant_type=urn:ietf:params:oauth:grant-type:device_code \
    -d device_code="$(jq -r .device_code <<< "$started")" -d wait=30)
  case $(jq -r .error <<< "$answer") in
    null) break ;;               # the tokens
    authorization_pending) ;;    # not yet; this request was held, so the next one may follow at once
    slow_down) sleep 5 ;;
    *) jq -r .error_description <<< "$answer"; exit 1 ;;
  esac
done
curl -s $service/proxy/oauth/userinfo -H "Authorization: Bearer $(jq -r .access_token <<< "$answer")"
