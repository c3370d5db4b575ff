package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/jsonrpc"
)

// FuzzMethods: whatever a client says in the parameters of the gateway's own methods, it gets an answer, or an error that is
// its own. "S" stands for its session.
func FuzzMethods(f *testing.F) {
	methods := []string{"history", "export", "files", "share", "hidden", "agents", "nodes", "lend"}
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"sessionId":"S"}`, `{"sessionId":"s_none"}`, `{"sessionId":3}`,
		`{"sessionId":"S","before":3,"limit":1}`, `{"sessionId":"S","after":1}`, `{"sessionId":"S","after":18446744073709551615}`,
		`{"sessionId":"S","before":0,"limit":2000}`, `{"sessionId":"S","limit":-1}`, `{"sessionId":"S","before":1,"after":1}`,
		`{"sessionId":"S","offset":3,"cursor":2}`, `{"sessionId":"S","offset":-1}`, `{"sessionId":"S","offset":9223372036854775807}`,
		`{"sessionId":"S","query":"a/b","limit":50}`, `{"sessionId":"S","query":"\u0000"}`,
		`{"sessionId":"S","user":"jo","role":"viewer"}`, `{"sessionId":"S","user":"jo","role":"none"}`, `{"sessionId":"S","user":"\u0001","role":"x"}`,
		`{"hidden":true,"shows":"S"}`, `{"hidden":false,"shows":""}`, `{"shows":null}`,
		`{"sessionId":"S","readTextFile":true,"terminal":true}`,
	} {
		for i := range methods {
			f.Add(uint8(i), []byte(seed))
		}
	}
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("x"), 0o600); err != nil {
		f.Fatal(err)
	}
	log, err := sqlite.Open(context.Background(), f.TempDir(), "test", engine.Options{Says: Says})
	if err != nil {
		f.Fatal(err)
	}
	lease, err := log.Lease(context.Background(), "node")
	if err != nil {
		f.Fatal(err)
	}
	g := New(Config{Log: log, Lease: lease, Agent: "test", Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Start: func(context.Context, string, string) (acp.Transport, error) {
		theirs, ours := jsonrpc.Pipe()
		_, err := talking(nil).Connect(context.Background(), acp.Over(theirs))
		return acp.Over(ours), err
	}})
	a, b := acp.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = g.Serve(context.Background(), a)
	}()
	c, err := new(acp.Client).Connect(context.Background(), b)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		_ = c.Close()
		<-served
		_ = g.Close()
		_ = lease.Release(context.Background())
		_ = log.Close()
	})
	s, err := c.NewSession(context.Background(), acp.SessionConfig{Cwd: dir})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := s.Prompt(context.Background(), acp.Text("one two three")).Wait(); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method uint8, data []byte) {
		if !json.Valid(data) {
			return
		}
		name := methods[int(method)%len(methods)]
		params := bytes.ReplaceAll(data, []byte(`"S"`), []byte(`"`+string(s.ID())+`"`))
		var answer json.RawMessage
		err := c.Conn().Call(t.Context(), ownmeta.Method+name, json.RawMessage(params), &answer)
		if e, ok := errorOf(err); err != nil && (!ok || e.Code == jsonrpc.CodeInternalError) {
			t.Errorf("%s %s: %v", name, params, err)
		}
		var page HistoryAnswer
		if err == nil && name == "history" && (json.Unmarshal(answer, &page) != nil || page.From > page.To || len(page.Updates) > maxHistory) {
			t.Errorf("%s: %s", params, answer)
		}
	})
}

func errorOf(err error) (e *jsonrpc.Error, ok bool) {
	e, ok = errors.AsType[*jsonrpc.Error](err)
	return e, ok
}
