package acphttp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
)

// FuzzServer sends one request to a server that has a connection and a session, and
// then the usual ones: whatever the first was, the server answers with a status of the
// table, and serves everybody else as before.
func FuzzServer(f *testing.F) {
	for _, body := range []string{initialize, newSession, `{}`, `[]`, `{"id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`, `{`, ``, `17`} {
		f.Add(uint8(0), body, "application/json", "s", "", "1", true)
	}
	f.Add(uint8(1), "", "text/event-stream", "s", "x-1", "", true)
	f.Add(uint8(1), "", "text/event-stream, x", "", "", "", false)
	f.Add(uint8(2), "", "", "", "", "", true)
	f.Add(uint8(3), "", "", "", "", "", true)
	known := map[int]bool{200: true, 202: true, 400: true, 404: true, 405: true, 406: true, 409: true, 413: true, 415: true, 500: true, 501: true, 503: true}
	f.Fuzz(func(t *testing.T, method uint8, body, kind, session, cursor, number string, connected bool) {
		s := &acphttp.Server{Serve: echo, Keep: acphttp.Retention{Bytes: 1 << 10}, Limits: acphttp.Limits{MaxMessage: 1 << 16}}
		defer s.Close(context.Background())
		do := func(ctx context.Context, method, body string, headers map[string]string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(ctx, method, "http://agent/acp", strings.NewReader(body))
			for k, v := range headers {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			return w
		}
		post := map[string]string{"Content-Type": "application/json"}
		w := do(t.Context(), http.MethodPost, initialize, post)
		id := w.Header().Get(acphttp.HeaderConnectionID)
		if w.Code != 200 || id == "" {
			t.Fatal(w.Code, w.Body)
		}
		headers := map[string]string{"Content-Type": kind, "Accept": kind}
		for k, v := range map[string]string{acphttp.HeaderSessionID: session, "Last-Event-ID": cursor, acphttp.HeaderMessage: number} {
			if v != "" {
				headers[k] = v
			}
		}
		if connected {
			headers[acphttp.HeaderConnectionID] = id
		}
		// A stream that is opened ends at once, since its client has left.
		ctx, cancel := context.WithCancel(t.Context())
		verb := []string{http.MethodPost, http.MethodGet, http.MethodDelete, http.MethodPatch}[method%4]
		if verb == http.MethodGet {
			cancel()
		}
		w = do(ctx, verb, body, headers)
		cancel()
		if !known[w.Code] {
			t.Fatalf("%s %q %q: %d", verb, body, headers, w.Code)
		}
		post[acphttp.HeaderConnectionID] = id
		want := 202
		if connected && verb == http.MethodDelete {
			want = 404
		}
		if w := do(t.Context(), http.MethodPost, `{"jsonrpc":"2.0","method":"_x"}`, post); w.Code != want {
			t.Fatalf("after %s %q %q: %d %s", verb, body, headers, w.Code, w.Body)
		}
	})
}

// echo answers everything that has an id with an empty result, and other messages with
// themselves.
func echo(ctx context.Context, t acp.Transport) error {
	stream, err := t.Open(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	for {
		f, err := stream.ReadFrame()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		answer := f.Data
		if bytes.Contains(f.Data, []byte(`"id":1`)) {
			answer = []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		}
		if err := stream.WriteFrame(answer); err != nil {
			return err
		}
	}
}
