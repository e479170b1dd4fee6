package sso

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	requestTimeout = 15 * time.Second
	tries          = 3
	maxPause       = 30 * time.Second
	shortPause     = 500 * time.Millisecond
	renewBefore    = 30 * time.Second
	maxAnswer      = 4 << 20
)

// An accessToken of a service client is fetched once, and again before it ends.
type accessToken struct {
	url    string
	form   url.Values
	client *http.Client
	lock   chan struct{} // held by the caller that reads or fetches it
	value  string
	ends   time.Time

	failures atomic.Int64 // to fetch it
	failure  error        // of the last fetch, nil if it has succeeded
}

func (t *accessToken) get(ctx context.Context) (string, error) {
	failures := t.failures.Load()
	select {
	case t.lock <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { <-t.lock }()
	if t.value != "" && time.Until(t.ends) > renewBefore {
		return t.value, nil
	}
	if t.failure != nil && t.failures.Load() != failures {
		// The fetch that this caller has waited for has failed. Another one for each that waits would take too long.
		return "", t.failure
	}
	value, err := t.fetch(ctx)
	if ctx.Err() != nil {
		return value, err // the caller has given up, which says nothing about the service
	}
	if t.failure = err; err != nil {
		t.failures.Add(1)
	}
	return value, err
}

func (t *accessToken) fetch(ctx context.Context) (string, error) {
	content, err := repeat(ctx, t.client, t.url, "application/x-www-form-urlencoded", []byte(t.form.Encode()), "")
	if err != nil {
		return "", err
	}
	var answer struct {
		AccessToken string  `json:"access_token"`
		ExpiresIn   float64 `json:"expires_in"`
	}
	if json.Unmarshal(content, &answer) != nil || answer.AccessToken == "" {
		return "", refuse(NotAService, "there is no access token")
	}
	t.value, t.ends = answer.AccessToken, time.Now().Add(time.Duration(answer.ExpiresIn*float64(time.Second)))
	return t.value, nil
}

// forget drops a token that was refused, unless it was replaced meanwhile.
func (t *accessToken) forget(refused string) {
	t.lock <- struct{}{}
	defer func() { <-t.lock }()
	if t.value == refused {
		t.value = ""
	}
}

// post sends JSON with the token, and once more with a new token after 401.
func post(ctx context.Context, client *http.Client, address string, body []byte, token *accessToken) ([]byte, error) {
	if token == nil {
		return repeat(ctx, client, address, "application/json", body, "")
	}
	bearer, err := token.get(ctx)
	if err != nil {
		return nil, err
	}
	content, err := repeat(ctx, client, address, "application/json", body, bearer)
	if failure, ok := err.(*Error); !ok || failure.Status != http.StatusUnauthorized {
		return content, err
	}
	token.forget(bearer)
	if bearer, err = token.get(ctx); err != nil {
		return nil, err
	}
	return repeat(ctx, client, address, "application/json", body, bearer)
}

// repeat sends a request up to three times. All requests here only ask, so they may be repeated.
func repeat(ctx context.Context, client *http.Client, address, kind string, body []byte, bearer string) ([]byte, error) {
	for try := 1; ; try++ {
		content, pause, err := attempt(ctx, client, address, kind, body, bearer)
		if err == nil || pause == 0 || pause > maxPause || try == tries {
			return content, err
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// attempt also returns the pause after which the request may be repeated, and 0 if it may not.
func attempt(
	ctx context.Context, client *http.Client, address, kind string, body []byte, bearer string,
) ([]byte, time.Duration, error) {
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(limited, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	request.Header.Set("Content-Type", kind)
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	response, err := client.Do(request)
	if err == nil {
		defer response.Body.Close()
		body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	}
	switch {
	case ctx.Err() != nil:
		return nil, 0, ctx.Err()
	case err != nil:
		return nil, shortPause, refuse(Unavailable, err.Error())
	case response.StatusCode == http.StatusOK && isObject(body):
		return body, 0, nil
	case isPassing(response.StatusCode):
		return nil, pauseAfter(response, shortPause), failureOf(response.StatusCode, body)
	}
	return nil, 0, failureOf(response.StatusCode, body)
}

func exchange(client *http.Client, request *http.Request) (int, []byte, error) {
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return response.StatusCode, content, err
}

func isPassing(status int) bool {
	return status == 429 || status == 502 || status == 503 || status == 504
}

// pauseAfter returns the time that the service asks for, from a second to a minute, or the given one.
func pauseAfter(response *http.Response, pause time.Duration) time.Duration {
	seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 31)
	switch {
	case err != nil:
		return pause
	case seconds < 1:
		return time.Second
	case seconds > 60:
		return time.Minute
	}
	return time.Duration(seconds) * time.Second
}

func failureOf(status int, content []byte) error {
	object, isObject := parseObject(content)
	text := fmt.Sprintf("HTTP %d", status)
	if message, ok := object["error"].(string); ok {
		text = message
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return &Error{Refused, status, text}
	case status == http.StatusTooManyRequests || status >= 500:
		return &Error{Unavailable, status, text}
	case status >= 400 && isObject:
		return &Error{Invalid, status, text}
	}
	return &Error{NotAService, status, "the address does not belong to the service: " + text}
}

func isObject(content []byte) bool {
	_, ok := parseObject(content)
	return ok
}

func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
