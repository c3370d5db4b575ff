package acphttp_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/internal/remotetest"
)

// TestInterrupted: a client hears of an outage.
func TestInterrupted(t *testing.T) {
	target := serve(t, &acphttp.Server{Serve: remotetest.Counting(t).Serve, Keep: acphttp.Retention{Bytes: 1 << 20}})
	remotetest.Interrupted(t, func(client *http.Client, retryFor time.Duration, interrupted func(error)) acp.Transport {
		return &acphttp.Transport{URL: target, Client: client, RetryFor: retryFor, Interrupted: interrupted}
	})
}
