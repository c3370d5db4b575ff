package acpws_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpws"
)

// A server that upgrades serves HTTP and WebSocket at one URL.
func Example() {
	agent := acp.Agent{Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		return acp.StopEndTurn, t.Say("Hello!")
	}}
	server := &acphttp.Server{Serve: agent.Serve, Upgrade: acpws.Upgrader{}}
	web := httptest.NewServer(server)
	defer web.Close()
	defer server.Close(context.Background())

	url := "ws" + strings.TrimPrefix(web.URL, "http")
	conn, err := new(acp.Client).Connect(context.Background(), acpws.NewTransport(url))
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
	// Output: Hello! <nil>
}
