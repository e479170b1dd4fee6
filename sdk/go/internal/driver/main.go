// The test program of this package: driver BASE_URL FOLDER. The contract says what it reads and prints.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"example.com/sso"
)

type command struct {
	Do           string
	Jwt          string
	Issuer       string
	Factor       *string
	Now          int64
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	Questions    []struct {
		UserID        string `json:"user_id"`
		ApplicationID int    `json:"application_id"`
		Rule          string
	}
	Callers int // not part of the contract: how many ask at the same time
	After   string
	Count   int
	Headers map[string]string
	Body    string
	Secret  string
}

type event map[string]interface{}

type program struct {
	baseURL  string
	verifier *sso.Verifier
	service  *sso.Service
	out      *json.Encoder
}

func main() {
	run := &program{baseURL: os.Args[1], service: sso.NewReplica(os.Args[1]), out: json.NewEncoder(os.Stdout)}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var next command
		if err := json.Unmarshal(lines.Bytes(), &next); err != nil {
			panic(err)
		}
		err := run.carryOut(context.Background(), next)
		if reason := sso.ReasonOf(err); reason != "" {
			kind := map[string]string{"verify": "refused", "webhook": "refused"}[next.Do]
			if kind == "" {
				kind = "failed"
			}
			run.print(event{"event": kind, "reason": reason})
		} else if err != nil {
			panic(err)
		}
	}
}

func (p *program) print(what event) {
	if err := p.out.Encode(what); err != nil {
		panic(err)
	}
}

func (p *program) carryOut(ctx context.Context, next command) error {
	switch next.Do {
	case "credentials":
		p.service = sso.NewService(p.baseURL, sso.Credentials{ClientID: next.ClientID, ClientSecret: next.ClientSecret})
		return nil
	case "verify":
		return p.verify(ctx, next)
	case "check":
		return p.check(ctx, next)
	case "follow":
		return p.follow(ctx, next)
	case "webhook":
		return p.webhook(next)
	}
	return errors.New("unknown command " + next.Do)
}

func (p *program) verify(ctx context.Context, next command) error {
	if p.verifier == nil {
		p.verifier = sso.NewVerifier(p.baseURL)
		if next.Issuer != "" {
			p.verifier.Issuer = next.Issuer
		}
	}
	p.verifier.Now = func() time.Time { return moment(next.Now) }
	player, err := (*sso.Player)(nil), error(nil)
	if next.Factor == nil {
		player, err = p.verifier.Verify(ctx, next.Jwt)
	} else {
		player, err = p.verifier.VerifyDevice(ctx, next.Jwt, *next.Factor)
	}
	if err == nil {
		p.print(event{"event": "verified", "user_id": player.UserID, "auth": player.Auth})
	}
	return err
}

func (p *program) check(ctx context.Context, next command) error {
	questions := make([]sso.Question, len(next.Questions))
	for i, item := range next.Questions {
		questions[i] = sso.Question{UserID: item.UserID, ApplicationID: item.ApplicationID, Rule: item.Rule}
	}
	others := make(chan error)
	for number := 1; number < next.Callers; number++ {
		go func() {
			_, err := p.service.Check(ctx, questions)
			others <- err
		}()
	}
	answers, err := p.service.Check(ctx, questions)
	for number := 1; number < next.Callers; number++ {
		if other := <-others; sso.ReasonOf(other) != sso.ReasonOf(err) {
			return fmt.Errorf("one caller has got %v, another one %v", err, other)
		}
	}
	if err == nil {
		p.print(event{"event": "checked", "answers": answers})
	}
	return err
}

var errEnough = errors.New("enough")

func (p *program) follow(ctx context.Context, next command) error {
	left := next.Count
	err := p.service.Follow(ctx, next.After, func(change sso.Change) error {
		if change.Type == sso.Reset {
			p.print(event{"event": "reset"})
			return nil
		}
		p.print(event{"event": "change", "id": change.ID, "type": change.Type})
		if left--; left == 0 {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func (p *program) webhook(next command) error {
	header := http.Header{}
	for name, value := range next.Headers {
		header.Set(name, value)
	}
	change, err := sso.ReadWebhook(next.Secret, header, []byte(next.Body), moment(next.Now))
	if err == nil {
		p.print(event{"event": "webhook", "id": change.ID, "type": change.Type})
	}
	return err
}

func moment(seconds int64) time.Time {
	if seconds == 0 {
		return time.Now()
	}
	return time.Unix(seconds, 0)
}
