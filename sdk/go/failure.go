// Package sso is the game server's side of the sign-on service: it verifies players without asking the service about
// each, asks what they may do, follows changes, and receives webhooks.
package sso

import "errors"

// Reason says why something did not succeed.
type Reason string

// Reasons why a user JWT, or a webhook, is not accepted.
const (
	Malformed  Reason = "malformed"
	Signature  Reason = "signature"
	UnknownKey Reason = "unknown_key"
	Issuer     Reason = "issuer"
	Expired    Reason = "expired"
	Factor     Reason = "factor"
	Old        Reason = "old"
)

// Reasons why a request to the service failed. Unavailable is also a reason why a player cannot be verified.
const (
	Refused     Reason = "refused"
	Invalid     Reason = "invalid"
	Unavailable Reason = "unavailable"
	NotAService Reason = "not_a_service"
)

// Error is every error of this package, except for those of a context.
type Error struct {
	Reason Reason
	Status int // of HTTP, if the service has answered
	text   string
}

func (e *Error) Error() string { return string(e.Reason) + ": " + e.text }

// ReasonOf returns the reason of an error of this package, and "" for others.
func ReasonOf(err error) Reason {
	var failure *Error
	if errors.As(err, &failure) {
		return failure.Reason
	}
	return ""
}

func refuse(reason Reason, text string) error { return &Error{Reason: reason, text: text} }
