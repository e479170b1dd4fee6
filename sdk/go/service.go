package sso

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

const maxQuestions = 100 // in one request

// Credentials are those of a service client (client_credentials).
type Credentials struct{ ClientID, ClientSecret string }

// A Service answers questions about permissions. Make one for the whole program, with NewService or NewReplica.
type Service struct {
	baseURL string
	client  *http.Client
	token   *accessToken // nil for a replica
}

// NewService returns the service at this address.
func NewService(baseURL string, credentials Credentials) *Service {
	service := NewReplica(baseURL)
	form := url.Values{
		"grant_type":    {"client_credentials"},
		"client_id":     {credentials.ClientID},
		"client_secret": {credentials.ClientSecret},
	}
	address := service.baseURL + "/proxy/oauth/token"
	service.token = &accessToken{url: address, form: form, client: service.client, lock: make(chan struct{}, 1)}
	return service
}

// NewReplica returns a replica of the service on the same machine, which needs no credentials.
func NewReplica(baseURL string) *Service {
	return &Service{baseURL: strings.TrimRight(baseURL, "/"), client: newClient()}
}

// A Question asks whether a user has a rule at an application.
type Question struct {
	UserID        string
	ApplicationID int
	Rule          string
}

// May answers one question.
func (s *Service) May(ctx context.Context, userID string, applicationID int, rule string) (bool, error) {
	answers, err := s.Check(ctx, []Question{{userID, applicationID, rule}})
	return err == nil && answers[0], err
}

// Check answers questions in their order. What may not be asked is false.
func (s *Service) Check(ctx context.Context, questions []Question) ([]bool, error) {
	answers := make([]bool, 0, len(questions))
	for len(questions) > 0 {
		count := len(questions)
		if count > maxQuestions {
			count = maxQuestions
		}
		some, err := s.ask(ctx, questions[:count])
		if err != nil {
			return nil, err
		}
		answers, questions = append(answers, some...), questions[count:]
	}
	return answers, nil
}

type entity struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

type evaluation struct {
	Subject entity `json:"subject"`
	Action  struct {
		Name string `json:"name"`
	} `json:"action"`
	Resource entity `json:"resource"`
}

func (s *Service) ask(ctx context.Context, questions []Question) ([]bool, error) {
	evaluations := make([]evaluation, len(questions))
	for i, question := range questions {
		evaluations[i].Subject = entity{"user", question.UserID}
		evaluations[i].Action.Name = question.Rule
		evaluations[i].Resource = entity{"application", strconv.Itoa(question.ApplicationID)}
	}
	body, err := json.Marshal(map[string]interface{}{"evaluations": evaluations})
	if err != nil {
		return nil, err
	}
	content, err := post(ctx, s.client, s.baseURL+"/access/v1/evaluations", body, s.token)
	if err != nil {
		return nil, err
	}
	var answer struct{ Evaluations []struct{ Decision *bool } }
	if json.Unmarshal(content, &answer) != nil || len(answer.Evaluations) != len(questions) {
		return nil, refuse(NotAService, "the answers do not fit the questions")
	}
	answers := make([]bool, len(questions))
	for i, item := range answer.Evaluations {
		if item.Decision == nil {
			return nil, refuse(NotAService, "an answer is missing")
		}
		answers[i] = *item.Decision
	}
	return answers, nil
}
