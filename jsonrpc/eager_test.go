package jsonrpc

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

// TestHandledBeforeReading: a complete message is handled without waiting for
// more input, whatever follows it: blank lines (S1), or a part of the next
// frame, of any length.
func TestHandledBeforeReading(t *testing.T) {
	req := func(id int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"s"}}`, id)
	}
	line := func(s string) string { return s + "\n" }
	header := func(s string) string {
		return fmt.Sprintf("Content-Length: %d\r\nX-Other: y\r\n\r\n%s", len(s), s)
	}
	for _, tt := range []struct {
		name    string
		framing func(io.ReadCloser, io.WriteCloser) Stream
		frame   func(string) string
		blank   string
	}{
		{"lines", NewLineStream, line, "\n\r\n \t\n"},
		{"headers", newHeaderStream, header, "\r\n\n"},
		{"detected lines", NewDetectStream, line, "\n\r\n \t\n"},
		{"detected headers", NewDetectStream, header, "\r\n\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := rawPeerStream(Config{Mux: echoMux()}, tt.framing)
				var out strings.Builder
				go func() { _, _ = io.Copy(&out, p.out) }()
				id := 0
				answered := func(what string) {
					t.Helper()
					synctest.Wait()
					if !strings.Contains(out.String(), fmt.Sprintf(`"id":%d,`, id)) {
						t.Errorf("request %d is not answered: behind it were %s", id, what)
					}
					out.Reset()
				}
				p.write(tt.frame(req(id)) + tt.blank)
				answered("blank lines")
				for n := range tt.frame(req(1)) {
					id++
					p.write(tt.frame(req(id)))
					next := tt.frame(req(id + 1))
					n = min(n, len(next)-1)
					id++
					p.write(tt.blank + next[:n])
					id--
					answered(fmt.Sprintf("%d bytes of the next frame", n))
					p.write(next[n:])
					id++
					answered("nothing")
					// In one read with what goes before.
					id++
					next = tt.frame(req(id + 1))
					p.write(tt.frame(req(id)) + tt.blank + next[:n])
					answered(fmt.Sprintf("%d bytes of the next frame in the same read", n))
					p.write(next[n:])
					id++
					answered("nothing")
				}
				p.close()
			})
		})
	}
}

// foreign is a Stream that offers no more than a Stream does.
type foreign struct{ Stream }

// TestForeignStream: the same for streams of others, whose frames have their
// limit from the connection (S3).
func TestForeignStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe()
		var ev events
		c := NewConn(foreign{a}, Config{Mux: echoMux(), Settings: Settings{MaxFrame: 1000, Diagnose: ev.add}})
		for i, tt := range []struct{ text, want string }{
			{"x", `"result"`},
			{strings.Repeat("x", 1000), `"data":{"limit":1000}`},
			{"y", `"result"`},
		} {
			if err := b.WriteFrame([]byte(`{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"s","text":"` + tt.text + `"}}`)); err != nil {
				t.Fatal(err)
			}
			f, err := b.ReadFrame()
			if err != nil || !strings.Contains(string(f.Data), tt.want) || !strings.Contains(string(f.Data), `"id":7`) {
				t.Errorf("%d: %s, %v", i, f.Data, err)
			}
		}
		if ev.count(EventFrameTooLarge) != 1 || c.Stats().Oversize != 1 || c.Stats().FramesIn != 3 {
			t.Error(ev.kinds(), c.Stats())
		}
		_ = b.Close()
		<-c.Done()
	})
}
