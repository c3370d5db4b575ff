package conformance

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
)

func TestOwnServer(t *testing.T) {
	agent := &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		return acp.StopEndTurn, t.Say("hello")
	}}
	s := &acphttp.Server{Serve: agent.Serve}
	web := httptest.NewServer(s)
	defer web.Close()
	defer s.Close(context.Background())
	r, err := CheckServer(t.Context(), &Endpoint{URL: web.URL + "/acp"}, Options{Prompts: map[string]string{"text": "hi"}, Skip: []string{"server/stream/keep-alive"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r.Broken)
	for _, x := range r.Results {
		if x.Status != Pass && x.Status != Skip {
			t.Errorf("%s %s: %s: %s\n%s", x.Rule.Level, x.Rule.ID, x.Status, x.Why, seenText(x))
		}
	}
}
