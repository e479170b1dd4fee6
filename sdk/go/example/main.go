// A game server: example BASE_URL, with SSO_CLIENT_ID, SSO_CLIENT_SECRET and WEBHOOK_SECRET. Prints its port.
// With REQUIRE_FACTOR it also requires the factor of the player's device.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"

	"example.com/sso"
)

func main() {
	baseURL := os.Args[1]
	verifier := sso.NewVerifier(baseURL)
	verifier.RequireFactor = os.Getenv("REQUIRE_FACTOR") != ""
	service := sso.NewService(baseURL, sso.Credentials{
		ClientID:     os.Getenv("SSO_CLIENT_ID"),
		ClientSecret: os.Getenv("SSO_CLIENT_SECRET"),
	})

	game := http.NewServeMux()
	game.HandleFunc("/me", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"user_id": sso.PlayerOf(r).UserID})
	})
	game.Handle("/kick", service.RequireRule(10, "chat.kick", done("kicked")))
	game.Handle("/say", service.RequireRule(10, "chat.write", done("said")))

	all := http.NewServeMux()
	all.Handle("/webhook", sso.WebhookHandler(os.Getenv("WEBHOOK_SECRET"), func(_ context.Context, event sso.Change) error {
		fmt.Println(string(event.Data)) // a real program compares event.ID with the last one that it has handled
		return nil
	}))
	all.Handle("/", verifier.RequirePlayer(game))

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, all))
}

func done(what string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]bool{what: true})
	})
}
