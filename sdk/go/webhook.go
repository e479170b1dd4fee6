package sso

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const maxWebhookAge = 300 // seconds

// ReadWebhook returns the event of a request whose body, as it was received, is signed with the secret. A repetition
// of an event has the same id.
func ReadWebhook(secret string, header http.Header, body []byte, now time.Time) (Change, error) {
	stamp, signature, ok := parseSignature(header.Get("Webhook-Signature"))
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if !ok || err != nil || seconds < 0 {
		return Change{}, refuse(Malformed, "Webhook-Signature: expected t=<Unix seconds>,v1=<signature>")
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	// Anybody can sign with an empty secret, which is a setting that is missing.
	if secret == "" || !hmac.Equal([]byte(hex.EncodeToString(mac.Sum(nil))), []byte(signature)) {
		return Change{}, refuse(Signature, "the signature is wrong")
	}
	if age := now.Unix() - seconds; age > maxWebhookAge || age < -maxWebhookAge {
		return Change{}, refuse(Old, "the request is too old")
	}
	event, ok := parseObject(body)
	id, _ := event["id"].(string)
	if !ok || id == "" {
		return Change{}, refuse(Malformed, "the body is no event")
	}
	kind, _ := event["type"].(string)
	if kind == "" {
		kind = "permissions_changed"
	}
	return Change{id, kind, json.RawMessage(body)}, nil
}

func parseSignature(text string) (stamp, signature string, ok bool) {
	fields := map[string]string{}
	for _, item := range strings.Split(text, ",") {
		if name, value, found := strings.Cut(item, "="); found {
			fields[name] = value
		}
	}
	signature, ok = fields["v1"]
	return fields["t"], signature, ok
}
