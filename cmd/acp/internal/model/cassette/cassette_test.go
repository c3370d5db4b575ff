package cassette

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func get(t *testing.T, c *http.Client, url, body string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer key-of-mine")
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header.Get("Content-Type") + ": " + string(data), err
}

// TestRoundTrip: what was recorded is played in its order, without the keys; another base
// URL does not matter.
func TestRoundTrip(t *testing.T) {
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		w.Header().Set("Content-Type", "text/event-stream")
		if n == 2 {
			w.WriteHeader(http.StatusTooManyRequests)
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, "data: <answer> \u2028 "+string(body)+"\n\n")
	}))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "cassette")
	rec := Record(file)
	c := &http.Client{Transport: rec.For("lab/m", nil)}
	var want []string
	for _, body := range []string{`{"a":1}`, `{"a":2}`, `not json`} {
		status, got, err := get(t, c, s.URL+"/v1/messages?key=secret", body)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, http.StatusText(status)+got)
	}
	data, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(data), "key-of-mine") || strings.Contains(string(data), "secret") || strings.Count(string(data), "\n") != 3 {
		t.Errorf("%s, %v", data, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	p, err := Open(file)
	if err != nil || p.Model != "lab/m" {
		t.Fatalf("%+v, %v", p, err)
	}
	player := &http.Client{Transport: p}
	for _, w := range want {
		status, got, err := get(t, player, "http://elsewhere/base/messages", `{"changed":true}`)
		if err != nil || http.StatusText(status)+got != w {
			t.Errorf("%d %q, %v, want %q", status, got, err, w)
		}
	}
	if _, _, err := get(t, player, "http://elsewhere/messages", "{}"); !errors.Is(err, ErrEnd) {
		t.Error(err)
	}
}

// TestCut: an answer that was not read to its end is kept as far as it was read.
func TestCut(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
	}))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "cassette")
	c := &http.Client{Transport: Record(file).For("lab/m", nil)}
	resp, err := c.Get(s.URL + "/v1/chat")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := resp.Body.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), `"cut":true`) {
		t.Errorf("%.200s, %v", data, err)
	}
	c.CloseIdleConnections()
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"": "the cassette is empty", "oops\n": ":1: this is not a line of a cassette",
		"{\"model\":\"a/b\",\"status\":200}\n{\"model\":\"a/c\",\"status\":200}\n": ":2: the cassette is of more than one model: a/b and a/c",
	} {
		file := filepath.Join(t.TempDir(), "cassette")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// FuzzOpen: any file can be read.
func FuzzOpen(f *testing.F) {
	f.Add("{\"model\":\"a/b\",\"status\":200,\"body\":\"x\"}\n")
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), "cassette")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := Open(file); err == nil && (p.Model == "" || len(p.takes) == 0) {
			t.Error("a cassette of nothing")
		}
	})
}
