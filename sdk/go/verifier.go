package sso

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"time"
)

// A Player was verified by a user JWT.
type Player struct {
	UserID string
	Auth   string // how the player has signed in: login, otp, token, gsid, guest …
	Nick   string
	Claims map[string]interface{}
}

// A Verifier verifies user JWTs without asking the service about each: with its public keys.
// Make one for the whole program, with NewVerifier.
type Verifier struct {
	Issuer string           // the public address of the service, if it is reached at another one
	Now    func() time.Time // for tests
	// RequireFactor makes RequirePlayer refuse requests without the factor of the player's device, as header Factor.
	RequireFactor bool
	keys          *keyCache
}

// NewVerifier returns a verifier for the service at this address.
func NewVerifier(baseURL string) *Verifier {
	url := strings.TrimRight(baseURL, "/")
	return &Verifier{Issuer: url, Now: time.Now, keys: &keyCache{url: url + "/proxy/oauth/keys", client: newClient()}}
}

// Verify returns the player of a user JWT.
func (v *Verifier) Verify(ctx context.Context, jwt string) (*Player, error) {
	parsed, err := parseJWT(jwt)
	if err != nil {
		return nil, err
	}
	if parsed.algorithm != "RS256" && parsed.algorithm != "ES256" && parsed.algorithm != "EdDSA" {
		return nil, refuse(Signature, "the algorithm is none of the service")
	}
	now := v.Now()
	key, err := v.keys.find(ctx, parsed.kid, now)
	if err != nil {
		return nil, err
	}
	// The algorithm is that of the key. A JWT cannot choose another one.
	if parsed.algorithm != key.algorithm || !key.verify(parsed.signed, parsed.signature) {
		return nil, refuse(Signature, "the signature is wrong")
	}
	return v.player(parsed.payload, now)
}

// VerifyDevice is Verify for a JWT that must belong to the device with this factor.
func (v *Verifier) VerifyDevice(ctx context.Context, jwt, factor string) (*Player, error) {
	player, err := v.Verify(ctx, jwt)
	if err != nil {
		return nil, err
	}
	// The claim is no secret: it is in the JWT, which the caller has. So a plain comparison is enough.
	digest := sha256.Sum256([]byte(factor))
	if factor == "" || player.Claims["fac"] != base64.RawURLEncoding.EncodeToString(digest[:]) {
		return nil, refuse(Factor, "the JWT belongs to another device")
	}
	return player, nil
}

func (v *Verifier) player(payload string, now time.Time) (*Player, error) {
	claims, ok := parsePart(payload)
	userID, _ := claims["uid"].(string)
	exp, hasExp := integer(claims["exp"])
	ends, hasEnds := integer(claims["ends"])
	if claims["ends"] == nil {
		ends, hasEnds = exp, true
	}
	if !ok || claims["typ"] != "user_token" || userID == "" || !hasExp || !hasEnds {
		return nil, refuse(Malformed, "this is no user JWT")
	}
	if claims["iss"] != v.Issuer {
		return nil, refuse(Issuer, "the JWT was issued by another service")
	}
	if exp <= now.Unix() || ends <= now.Unix() {
		return nil, refuse(Expired, "the JWT has expired")
	}
	auth, _ := claims["auth"].(string)
	nick, _ := claims["nick"].(string)
	return &Player{userID, auth, nick, claims}, nil
}

func newClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
