package acpws_test

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpws"
)

// BenchmarkStream measures a turn of many chunks, and of none, over each transport.
func BenchmarkStream(b *testing.B) {
	agent := &acp.Agent{Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		var n int
		_, _ = fmt.Sscan(t.Text(), &n)
		for range n {
			if err := t.Say("four or five tokens here"); err != nil {
				return "", err
			}
		}
		return acp.StopEndTurn, nil
	}}
	s := &acphttp.Server{Serve: agent.Serve, Upgrade: acpws.Upgrader{}}
	kept := &acphttp.Server{Serve: agent.Serve, Keep: acphttp.Retention{Bytes: 1 << 20}}
	web, keptWeb := httptest.NewServer(s), httptest.NewServer(kept)
	defer web.Close()
	defer keptWeb.Close()
	defer func() { _, _ = s.Close(context.Background()), kept.Close(context.Background()) }()
	for name, transport := range map[string]acp.Transport{
		"http":    acphttp.NewTransport(web.URL),
		"resumed": acphttp.NewTransport(keptWeb.URL),
		"ws":      acpws.NewTransport("ws" + web.URL[4:]),
		"memory":  acp.InProcess(agent),
	} {
		for _, n := range []int{0, 10000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				conn, err := new(acp.Client).Connect(b.Context(), transport)
				if err != nil {
					b.Fatal(err)
				}
				defer conn.Close()
				session, err := conn.NewSession(b.Context(), acp.SessionConfig{Cwd: "/"})
				if err != nil {
					b.Fatal(err)
				}
				text := acp.Text(fmt.Sprint(n))
				b.ReportAllocs()
				for b.Loop() {
					got := 0
					for u, err := range session.Prompt(b.Context(), text).Updates() {
						if err != nil {
							b.Fatal(err)
						}
						if u.Text() != "" {
							got++
						}
					}
					if got != n {
						b.Fatal(io.ErrUnexpectedEOF, got)
					}
				}
				if n > 0 {
					b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds(), "updates/s")
				}
			})
		}
	}
}
