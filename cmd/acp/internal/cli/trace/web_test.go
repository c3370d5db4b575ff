package trace

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/trace"
)

func TestWeb(t *testing.T) {
	var b bytes.Buffer
	w, err := trace.NewWriter(&b, trace.Header{Started: time.Unix(0, 0), Tool: "acp test"})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{`{"id":1,"method":"initialize"}`, `{"id":2,"method":"session/list"}`} {
		if err := w.Write(&trace.Record{Kind: trace.Frame, Dir: trace.ToAgent, Data: []byte(f)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "x.acptrace")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, out := io.Pipe()
	o := &WebOptions{App: &app.App{Out: out, Err: io.Discard}, File: name}
	done := make(chan error, 1)
	go func() {
		err := o.run(ctx)
		out.Close()
		done <- err
	}()
	url, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url = strings.TrimSpace(url)
	jar, _ := cookiejar.New(nil)
	c := &http.Client{Jar: jar, Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	res, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	res, err = c.Get(url[:strings.Index(url, "?")] + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "session/list") {
	}
	if !strings.Contains(lines.Text(), `"body":"{\"id\":2`) {
		t.Errorf("the page gets %q", lines.Text())
	}
	res.Body.Close()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("it ends with %v", err)
	}
}

func TestWebErrors(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ file, addr, want string }{
		{filepath.Join(dir, "none"), "", "none"},
		{other, "", "not a trace"},
		{dir, "", "is a directory"},
	} {
		o := &WebOptions{App: &app.App{Out: io.Discard, Err: io.Discard}, File: tt.file, Addr: tt.addr}
		err := o.run(t.Context())
		if err == nil || exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", tt.file, err)
		}
	}
}
