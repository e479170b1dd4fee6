package sso

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"
)

const maxWebhook = 1 << 20

type playerKey struct{}

// PlayerOf returns the player of a request that has passed RequirePlayer.
func PlayerOf(request *http.Request) *Player {
	player, _ := request.Context().Value(playerKey{}).(*Player)
	return player
}

// RequirePlayer passes on requests with the user JWT of a player (Authorization: Bearer). With RequireFactor, it must
// belong to the device in the header Factor. Others get 401, or 503 if the keys of the service cannot be fetched.
func (v *Verifier) RequirePlayer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		scheme, jwt, _ := strings.Cut(request.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			jwt = ""
		}
		player, err := v.playerOf(request, strings.TrimSpace(jwt))
		if err != nil {
			refuseRequest(response, err)
			return
		}
		next.ServeHTTP(response, request.WithContext(context.WithValue(request.Context(), playerKey{}, player)))
	})
}

func (v *Verifier) playerOf(request *http.Request, jwt string) (*Player, error) {
	if v.RequireFactor {
		return v.VerifyDevice(request.Context(), jwt, request.Header.Get("Factor"))
	}
	return v.Verify(request.Context(), jwt)
}

// RequireRule passes on requests of players who have the rule at the application. Others get 403. It belongs inside
// RequirePlayer.
func (s *Service) RequireRule(applicationID int, rule string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		player := PlayerOf(request)
		if player == nil {
			answer(response, http.StatusUnauthorized, "sign in first")
			return
		}
		allowed, err := s.May(request.Context(), player.UserID, applicationID, rule)
		switch {
		case err != nil:
			unavailable(response)
		case !allowed:
			answer(response, http.StatusForbidden, "not allowed: "+rule)
		default:
			next.ServeHTTP(response, request)
		}
	})
}

// WebhookHandler receives webhooks. If handle returns an error, the service sends the event again later.
func WebhookHandler(secret string, handle func(context.Context, Change) error) http.Handler {
	return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, maxWebhook))
		if err != nil {
			answer(response, http.StatusRequestEntityTooLarge, "the body is too long")
			return
		}
		event, err := ReadWebhook(secret, request.Header, body, time.Now())
		if err != nil {
			answer(response, http.StatusForbidden, err.Error())
			return
		}
		if err := handle(request.Context(), event); err != nil {
			answer(response, http.StatusInternalServerError, "the event was not handled")
			return
		}
		response.WriteHeader(http.StatusNoContent)
	})
}

func refuseRequest(response http.ResponseWriter, err error) {
	if ReasonOf(err) == Unavailable {
		unavailable(response)
		return
	}
	response.Header().Set("WWW-Authenticate", "Bearer")
	answer(response, http.StatusUnauthorized, string(ReasonOf(err)))
}

func unavailable(response http.ResponseWriter) {
	response.Header().Set("Retry-After", "5")
	answer(response, http.StatusServiceUnavailable, "the sign-on service is unavailable")
}

func answer(response http.ResponseWriter, status int, text string) {
	response.Header().Set("Content-Type", "application/json")
	response.WriteHeader(status)
	_ = json.NewEncoder(response).Encode(map[string]string{"status": "ERROR", "error": text})
}
