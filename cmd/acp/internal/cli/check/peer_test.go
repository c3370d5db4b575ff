package check

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/trace"
)

// TestStderrWriter has lines that come in pieces, together and without an end.
func TestStderrWriter(t *testing.T) {
	long := strings.Repeat("x", trace.MaxText)
	for _, c := range []struct {
		name         string
		writes, want []string
	}{
		{"in pieces", []string{"API_KEY=sec", "ret", "\nb"}, []string{"API_KEY=secret", "b"}},
		{"together", []string{"a\n\nb\nc\n"}, []string{"a", "b", "c"}},
		{"nothing", []string{"", "\n"}, nil},
		{"as long as may be", []string{long + "\n"}, []string{long}},
		{"longer", []string{long[:10], long + "yz\n"}, []string{long, "xxxxxxxxxxyz"}},
	} {
		var got []string
		w := &stderrWriter{to: func(line []byte) { got = append(got, string(line)) }}
		for _, b := range c.writes {
			if n, err := w.Write([]byte(b)); n != len(b) || err != nil {
				t.Errorf("%s: %d, %v", c.name, n, err)
			}
		}
		w.end()
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestJoinEnds has a client end its agent while both ends are open.
func TestJoinEnds(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	in, client := io.Pipe()
	defer client.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("SIGTERM")
	cancel(why)
	if err := join(ctx, &app.App{In: in, Out: io.Discard}, ours); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}
