package acphttp_test

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
)

var greeter = acp.Agent{
	Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		return acp.StopEndTurn, t.Say("Hello, " + acphttp.Principal(ctx) + "!")
	},
}

// An agent is mounted like any handler, and a client reaches it by its URL.
func Example() {
	server := &acphttp.Server{Serve: greeter.Serve}
	mux := http.NewServeMux()
	mux.Handle("/acp", server)
	web := httptest.NewServer(mux) // or http.Server
	defer web.Close()
	defer server.Close(context.Background())

	conn, err := new(acp.Client).Connect(context.Background(), acphttp.NewTransport(web.URL+"/acp"))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.NewSession(context.Background(), acp.SessionConfig{Cwd: "/"})
	if err != nil {
		log.Fatal(err)
	}
	text, _, err := session.Prompt(context.Background(), acp.Text("hello")).Text()
	fmt.Println(text, err)
	// Output: Hello, ! <nil>
}

// Clients with a token have a name, which hooks of the agent see.
func ExampleServer_authenticate() {
	token := "3f786850e387550fdab836ed7e6dc881de23001b"
	header := sha256.Sum256([]byte("Bearer " + token)) // so that lengths do not differ
	server := &acphttp.Server{
		Serve: greeter.Serve,
		Authenticate: func(r *http.Request) (string, error) {
			got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
			if subtle.ConstantTimeCompare(got[:], header[:]) == 1 {
				return "anne", nil
			}
			return "", errors.New("unknown token")
		},
		Keep: acphttp.Retention{Bytes: 1 << 20}, // so that clients can resume
	}
	web := httptest.NewServer(server)
	defer web.Close()
	defer server.Close(context.Background())

	transport := &acphttp.Transport{URL: web.URL, Token: func(context.Context) (string, error) {
		return token, nil
	}}
	conn, err := new(acp.Client).Connect(context.Background(), transport)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.NewSession(context.Background(), acp.SessionConfig{Cwd: "/"})
	if err != nil {
		log.Fatal(err)
	}
	text, _, err := session.Prompt(context.Background(), acp.Text("hello")).Text()
	fmt.Println(text, err)
	// Output: Hello, anne! <nil>
}
