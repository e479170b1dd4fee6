package sso

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	maxSilence = 45 * time.Second // there is a heartbeat every 15 seconds
	firstPause = time.Second
	maxFrame   = 4 << 20
)

// A Change is an event of the service. Reset means that changes were missed: read again what you keep.
type Change struct {
	ID   string // the place in the stream: store it, and continue after it
	Type string // permissions_changed, user_banned …
	Data json.RawMessage
}

// Reset is the type of a change that says that changes were missed.
const Reset = "reset"

// Follow calls handle with each change after a cursor, until the context ends or handle returns an error, which it
// returns. It survives lost connections, restarts and new tokens. Without a cursor it begins with the oldest change.
func (s *Service) Follow(ctx context.Context, after string, handle func(Change) error) error {
	if s.token == nil {
		return refuse(Refused, "the stream of changes needs credentials")
	}
	follower := &follower{service: s, after: after, handle: handle}
	pause, refusals := firstPause, 0
	for {
		bearer, err := s.token.get(ctx)
		isAway := ReasonOf(err) == Unavailable
		status, asked := 0, time.Duration(0)
		follower.progress = false
		if err == nil {
			status, asked, err = follower.connect(ctx, bearer)
		}
		switch {
		case isAway: // as if the connection were lost
		case err != nil:
			return err
		case follower.progress:
			pause, refusals = firstPause, 0
		case status == http.StatusBadRequest && follower.after != "":
			follower.after = ""
			if err := handle(Change{Type: Reset}); err != nil {
				return err
			}
			continue
		case status == http.StatusUnauthorized && refusals == 0:
			refusals++
			s.token.forget(bearer)
			continue
		case status >= 300 && !isPassing(status):
			return failureOf(status, follower.answer)
		}
		if asked < pause {
			asked = pause
		}
		if err := sleep(ctx, asked); err != nil {
			return err
		}
		if pause *= 2; pause > maxPause {
			pause = maxPause
		}
	}
}

type follower struct {
	service  *Service
	after    string
	handle   func(Change) error
	progress bool   // the last connection had a stream
	answer   []byte // of the last connection that had none
}

// connect reads one stream. Its end is no error. It returns the status, 0 without an answer, and the pause that the
// service asks for.
func (f *follower) connect(ctx context.Context, bearer string) (int, time.Duration, error) {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(maxSilence, cancel)
	defer silence.Stop()
	address := f.service.baseURL + "/api/admin/changes"
	if f.after != "" {
		address += "?after=" + url.QueryEscape(f.after)
	}
	request, err := http.NewRequestWithContext(limited, http.MethodGet, address, nil)
	if err != nil {
		return 0, 0, err
	}
	request.Header.Set("Authorization", "Bearer "+bearer)
	request.Header.Set("Accept", "text/event-stream")
	request.Close = true
	response, err := f.service.client.Do(request)
	if err != nil {
		return 0, 0, ctx.Err() // nil if only the connection has failed
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		f.answer, _ = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		return response.StatusCode, pauseAfter(response, 0), ctx.Err()
	}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		return 0, 0, refuse(NotAService, "there is no stream of changes")
	}
	if err := f.read(response.Body, func() { silence.Reset(maxSilence) }); err != nil {
		return 0, 0, err
	}
	return http.StatusOK, 0, ctx.Err()
}

func (f *follower) read(body io.Reader, alive func()) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxFrame)
	fields := map[string]string{}
	for lines.Scan() {
		alive()
		f.progress = true
		if line := lines.Text(); line != "" {
			if name, value, ok := strings.Cut(line, ":"); ok {
				fields[name] = strings.TrimPrefix(value, " ")
			}
			continue
		}
		if id, data := fields["id"], fields["data"]; id != "" && json.Valid([]byte(data)) {
			f.after = id
			if err := f.handle(Change{id, fields["event"], json.RawMessage(data)}); err != nil {
				return err
			}
		}
		fields = map[string]string{}
	}
	if lines.Err() == bufio.ErrTooLong {
		return refuse(NotAService, "an event is too large")
	}
	return nil // what is not complete comes again
}
