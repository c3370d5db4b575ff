package file

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/trace"
)

// TestFrames: a file with a frame in each line is read as a recording, with who sent what.
func TestFrames(t *testing.T) {
	const agent, client = "> ", "< "
	lines := []string{
		agent + `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`,
		client + `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`,
		agent + `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s"}}`,
		client + `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}`,
		client + `{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s"}}`,
		agent + `{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"cancelled"}}}`,
		client + `{"jsonrpc":"2.0","id":"x","method":"fs/read_text_file","params":{"sessionId":"s"}}`,
		agent + `{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}`,
		client + `{"jsonrpc":"2.0","method":"_mine","params":{}}`,
		agent + `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`,
		client + `{"jsonrpc":"2.0","id":1,"result":{"stopReason":"cancelled"}}`,
		client + `{"jsonrpc":"2.0","id":99,"result":{}}`,
		client + `loading`,
	}
	var text strings.Builder
	text.WriteString("\ufeff\n")
	for _, l := range lines {
		text.WriteString(l[2:] + "\r\n")
	}
	got, err := directions(t, strings.TrimSuffix(text.String(), "\r\n"))
	if d := cmp.Diff(lines, got); d != "" || err != nil {
		t.Error(d, err)
	}
	if got, err := directions(t, `{"jsonrpc":"2.0","method":"session/update","params":"`+strings.Repeat("x", 2*trace.MaxLine)+"\"}\n"+lines[0][2:]); len(got) != 2 || err != nil {
		t.Error(len(got), err)
	}
	for _, other := range []string{`{"jsonrpc` + "\n", "hello\n", ""} {
		if _, err := directions(t, other); !errors.Is(err, trace.ErrNotTrace) {
			t.Errorf("%q: %v", other, err)
		}
	}
}

func directions(t *testing.T, text string) (got []string, err error) {
	a, _ := write(t, text)
	f, err := Open(t.Context(), a, "f")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for {
		rec, err := f.Record()
		if err == io.EOF {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		arrow := "< "
		if rec.Dir == trace.ToAgent {
			arrow = "> "
		}
		got = append(got, arrow+string(rec.Data))
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":0,"method":"initialize"}` + "\n" + `{"jsonrpc":"2.0","id":0,"result":{}}`)
	f.Add(`{"jsonrpc":"2.0","id":null,"error":{}}` + "\n\n{")
	f.Add("2026-01-02T15:04:05Z <- {\"jsonrpc\":\"2.0\"}\n-> x… (12 bytes)\n<- {")
	f.Add(`{"direction":"in","time":"2026-01-02T15:04:05Z","message":"{\"jsonrpc\":\"2.0\"}"}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := recognize(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return
		}
		bounds := 0
		for {
			if bounds++; bounds > len(text)+1 {
				t.Fatal("there are more records than bytes")
			}
			if _, err := r.Next(); err == io.EOF {
				return
			} else if cut := (*trace.CutError)(nil); err != nil && !errors.As(err, &cut) && !errors.Is(err, trace.ErrVersion) {
				t.Fatal(err)
			} else if err != nil && !errors.As(err, &cut) {
				return
			}
		}
	})
}

// TestLongIDs: of a request with a very long id nothing is kept.
func TestLongIDs(t *testing.T) {
	for _, tt := range []struct{ size, kept int }{{MaxID, 1}, {MaxID + 1, 0}, {1 << 20, 0}} {
		id := strings.Repeat("1", tt.size)
		f := newFrames(nil)
		f.direction([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"session/prompt"}`))
		e := newEvents(nil)
		e.ofTools(&event{Type: "request", Protocol: "mcp", ID: []byte(id)}, trace.Hop{})
		if len(f.asked) != tt.kept || len(e.tools) != tt.kept {
			t.Errorf("%d bytes: %d and %d are kept", tt.size, len(f.asked), len(e.tools))
		}
	}
}
