package proxies

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/record/file"
	"github.com/goacp/acp/trace"
)

// frames returns what a recording has.
func frames(t *testing.T, name string) (list []string, cuts int) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for {
		rec, err := r.Next()
		switch cut := (*trace.CutError)(nil); {
		case errors.Is(err, io.EOF):
			return list, cuts
		case errors.As(err, &cut):
			cuts++
		case err != nil:
			t.Fatal(err)
		default:
			list = append(list, string(rec.Dir)+string(rec.Data))
		}
	}
}

// TestRecord holds that what passes is in the file, in both directions, without secrets; that a recording which was cut
// off in the middle of a line, as by a kill, is continued and loses that line only; and that nothing else is
// overwritten.
func TestRecord(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "x.acptrace")
	for round := range 2 {
		t.Run("", func(t *testing.T) {
			p := newPair(t, 1+round, "/", Env{Dir: dir}, "record", "-o", "x.acptrace")
			m := p.prompt("s", "["+text("my token is "+tokenOf)+"]")
			if !strings.Contains(m.text, tokenOf) {
				t.Error(m.text)
			}
			p.update("s", `{"sessionUpdate":"agent_message_chunk","messageId":"1","content":{"type":"text","text":"said"}}`)
			p.client.hears()
			p.agent.answers(m, `{"stopReason":"end_turn"}`)
			p.client.hears()
		})
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			if err := os.WriteFile(name, data[:len(data)-20], 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	list, cuts := frames(t, name)
	all := strings.Join(list, "\n")
	if cuts != 1 || strings.Contains(all, tokenOf) {
		t.Errorf("%d lines are damaged:\n%s", cuts, all)
	}
	for _, want := range []string{`>{"jsonrpc":"2.0","id":1,"method":"initialize"`, `<{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":2`,
		`"method":"session/prompt"`, `<{"jsonrpc":"2.0","method":"session/update"`, "end_turn"} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is not in:\n%s", want, all)
		}
	}
	other := filepath.Join(dir, "other.txt")
	if err := os.WriteFile(other, []byte("precious\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ready, err := Parse([]string{"record", "-o", "other.txt"}, Env{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ready.Start(); err == nil {
		t.Error("another file is recorded to")
	}
	if data, _ := os.ReadFile(other); string(data) != "precious\n" {
		t.Errorf("%q", data)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
}

// TestRecordSessions holds that each of several sessions at a time has a recording of its own, and that --trace of the
// conductor, which is one, does not move.
func TestRecordSessions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("recordings are not locked there")
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "x.acptrace")
	var said strings.Builder
	ready, err := Parse([]string{"record", "-o", "x.acptrace"}, Env{Dir: dir, Stderr: &said})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r, err := ready.Start()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
	}
	pid := os.Getpid()
	for _, want := range []string{"x", fmt.Sprintf("x-%d", pid), fmt.Sprintf("x-%d-2", pid)} {
		want = filepath.Join(dir, want+".acptrace")
		frames(t, want)
		if strings.Contains(said.String(), "recording to "+want) != (want != name) {
			t.Errorf("%s: %s", want, said.String())
		}
	}
	if _, _, err := Record(name, "", false, nil); !errors.Is(err, file.ErrTaken) {
		t.Error(err)
	}
}
