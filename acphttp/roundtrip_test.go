package acphttp_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/internal/remotetest"
)

// serve starts a server.
func serve(t *testing.T, s *acphttp.Server) string {
	t.Helper()
	s.Logger = cmp.Or(s.Logger, logtest.New(t))
	web := httptest.NewUnstartedServer(s)
	web.Config.Protocols = new(http.Protocols)
	web.Config.Protocols.SetHTTP1(true)
	web.Config.Protocols.SetUnencryptedHTTP2(true)
	web.Start()
	t.Cleanup(func() {
		if err := s.Close(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
		web.Close()
	})
	return web.URL + "/acp"
}

func TestCounting(t *testing.T) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			s := &acphttp.Server{Serve: remotetest.Counting(t).Serve}
			url := serve(t, s)
			client := &acp.Client{MinVersion: version, MaxVersion: version}
			conn, err := client.Connect(t.Context(), acphttp.NewTransport(url))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			session, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/"})
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{3, 20000} {
				text, _, err := session.Prompt(t.Context(), acp.Text(fmt.Sprint(n))).Text()
				if err != nil {
					t.Fatal(err)
				}
				if text != remotetest.Numbers(n) {
					t.Errorf("got %d bytes, want %d", len(text), len(remotetest.Numbers(n)))
				}
			}
		})
	}
}
