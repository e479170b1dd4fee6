// A web site with the standard library of Go whose users sign in at the service.
package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
)

const (
	issuer   = "http://localhost:8000"
	clientID = "go-site"
	site     = "http://127.0.0.1:3001"
)

// Session is what the site knows about a browser. In production, keep it in a database and let it end.
type Session struct {
	State, Verifier string
	User            *User
}

type User struct {
	ID    string `json:"sub"`
	Name  string `json:"name"`
	Email string `json:"email"`
}

var (
	mutex    sync.Mutex
	sessions = map[string]Session{}
	metadata struct {
		Authorization string `json:"authorization_endpoint"`
		Token         string `json:"token_endpoint"`
		Userinfo      string `json:"userinfo_endpoint"`
		EndSession    string `json:"end_session_endpoint"`
	}
)

func main() {
	request, _ := http.NewRequest("GET", issuer+"/.well-known/openid-configuration", nil)
	if err := fetch(request, &metadata); err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/", home)
	http.HandleFunc("/login", login)
	http.HandleFunc("/callback", callback)
	http.HandleFunc("/logout", logout)
	log.Println("Open " + site)
	log.Fatal(http.ListenAndServe(strings.TrimPrefix(site, "http://"), nil))
}

func home(w http.ResponseWriter, r *http.Request) {
	if session := read(r); session.User != nil {
		fmt.Fprintf(w, "Signed in as %s (%s).\n", session.User.Name, session.User.Email)
	} else {
		fmt.Fprintf(w, "Not signed in. Open %s/login\n", site)
	}
}

func login(w http.ResponseWriter, r *http.Request) {
	session := Session{State: random(), Verifier: random()}
	write(w, session)
	challenge := sha256.Sum256([]byte(session.Verifier))
	http.Redirect(w, r, metadata.Authorization+"?"+url.Values{
		"response_type":         {"code"},
		"client_id":             {clientID},
		"redirect_uri":          {site + "/callback"},
		"scope":                 {"openid email profile"},
		"state":                 {session.State},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(challenge[:])},
		"code_challenge_method": {"S256"},
	}.Encode(), http.StatusFound)
}

func callback(w http.ResponseWriter, r *http.Request) {
	session, query := read(r), r.URL.Query()
	if session.State == "" || query.Get("state") != session.State {
		http.Error(w, "This sign-in did not begin in this browser. Open /login again.", http.StatusBadRequest)
		return
	}
	user, err := redeem(query.Get("code"), session.Verifier)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	write(w, Session{User: user}) // a new session, so that nobody knows its cookie
	http.Redirect(w, r, "/", http.StatusFound)
}

// redeem exchanges the code for an access token, and asks with it who the user is.
func redeem(code, verifier string) (*User, error) {
	form := url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {code},
		"redirect_uri":  {site + "/callback"},
		"code_verifier": {verifier},
	}
	request, _ := http.NewRequest("POST", metadata.Token, strings.NewReader(form.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.SetBasicAuth(clientID, os.Getenv("CLIENT_SECRET"))
	var tokens struct {
		Access string `json:"access_token"`
	}
	if err := fetch(request, &tokens); err != nil {
		return nil, err
	}
	request, _ = http.NewRequest("GET", metadata.Userinfo, nil)
	request.Header.Set("Authorization", "Bearer "+tokens.Access)
	user := new(User)
	return user, fetch(request, user)
}

func logout(w http.ResponseWriter, r *http.Request) {
	write(w, Session{})
	query := url.Values{"client_id": {clientID}, "post_logout_redirect_uri": {site + "/"}}
	http.Redirect(w, r, metadata.EndSession+"?"+query.Encode(), http.StatusFound)
}

func fetch(request *http.Request, answer any) error {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", request.URL.Path, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

func read(r *http.Request) Session {
	cookie, err := r.Cookie("session")
	if err != nil {
		return Session{}
	}
	mutex.Lock()
	defer mutex.Unlock()
	return sessions[cookie.Value]
}

func write(w http.ResponseWriter, session Session) {
	id := random()
	mutex.Lock()
	defer mutex.Unlock()
	sessions[id] = session
	http.SetCookie(w, &http.Cookie{Name: "session", Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

func random() string {
	bytes := make([]byte, 32)
	if _, err := rand.Read(bytes); err != nil {
		log.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(bytes)
}
