package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp/internal/wire"
)

// fuzzRead checks a reader against the same input in pieces: framing must not
// depend on how the bytes arrive, no frame may exceed the limit, and reading
// ends.
func fuzzRead(t *testing.T, framing func(io.ReadCloser, io.WriteCloser) Stream, data []byte, cut int) {
	const limit = 300
	var want []string
	var wantErr error
	for i, parts := range [][]string{{string(data)}, pieces(data, cut)} {
		s := framing(io.NopCloser(&chunks{parts}), nopCloser{io.Discard})
		s.(limitedStream).setMaxFrame(limit)
		got, err := readAll(s)
		for _, f := range got {
			if len(f) > limit {
				t.Fatalf("a frame of %d bytes", len(f))
			}
		}
		if i == 0 {
			want, wantErr = got, err
		} else if strings.Join(got, "|") != strings.Join(want, "|") || err != wantErr {
			t.Fatalf("in pieces of %d: %q, %v\nwhole: %q, %v", cut, got, err, want, wantErr)
		}
		if err != io.EOF && err != io.ErrUnexpectedEOF {
			t.Fatal(err)
		}
	}
}

func pieces(data []byte, cut int) (parts []string) {
	cut = max(1, cut%17)
	for len(data) > 0 {
		n := min(cut, len(data))
		parts, data = append(parts, string(data[:n])), data[n:]
	}
	return parts
}

func FuzzLineReader(f *testing.F) {
	for _, s := range []string{"{}\n", "\xef\xbb\xbf{}\r\n\r\n[]", "{\"a\":1}\n \t\nlog line\n{", strings.Repeat("x", 400) + "\n{}\n"} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		fuzzRead(t, NewLineStream, data, cut)
		fuzzRead(t, NewDetectStream, data, cut)
	})
}

func FuzzHeaderReader(f *testing.F) {
	for _, s := range []string{
		"Content-Length: 2\r\n\r\n{}Content-Length: 2\r\n\r\n[]",
		"content-length:2\nX: y\n\n{}noise\r\nContent-Length: -1\r\n\r\n",
		"Content-Length: 400\r\n\r\n" + strings.Repeat("x", 400) + "Content-Length: 2\r\n\r\n{}",
		"Content-Length: 9\r\n\r\n{", "Content-Length: 99999999999999999999\r\n\r\n", "Content-Length: 0\r\n\r\n",
	} {
		f.Add([]byte(s), 5)
	}
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		fuzzRead(t, newHeaderStream, data, cut)
	})
}

// FuzzEnvelope compares what one frame is taken for with encoding/json's view
// of it.
func FuzzEnvelope(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","text":"x"}}`,
		`{"params":{"sessionId":"s"},"method":"session/prompt","id":"a","jsonrpc":"2.0"}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"},"id":null}`,
		`{"jsonrpc":"2.0","id":0,"result":{"text":"x"}}`, `{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"m"}}`,
		`{"jsonrpc":"2.0","id":1.5,"method":"_echo","params":[1]}`, `[{}]`, `17`, `noise`, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1,"method":"_echo","params":null,"params":1}`, `{"jsonrpc":"2.0","id":{},"method":"x"}`, `{"id":"\ud800","method":"_plain","jsonrpc":"2.0","params":{"A":1}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.ContainsAny(data, "\r\n") {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			a, b := Pipe()
			c := NewConn(a, Config{Mux: echoMux(), Lane: laneOf})
			call := make(chan error, 1)
			go func() {
				_, err := prompt.Call(bg, c, &note{})
				call <- err
			}()
			if _, err := b.ReadFrame(); err != nil {
				t.Fatal(err)
			}
			if err := b.WriteFrame(data); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			_ = b.WriteFrame([]byte(`{"jsonrpc":"2.0","id":"last one","method":"_plain"}`))
			var answers [][]byte
			for {
				f, err := b.ReadFrame()
				if err != nil {
					t.Fatal("the connection did not live on:", err)
				}
				if bytes.Contains(f.Data, []byte("last one")) && !bytes.Contains(data, []byte("last one")) {
					break
				}
				if !json.Valid(f.Data) || wire.Valid(f.Data) != nil {
					t.Fatalf("answered with %q", f.Data)
				}
				if answers = append(answers, f.Data); len(answers) > 1 {
					break
				}
			}
			checkAnswers(t, data, answers)
			_ = b.Close()
			<-c.Done()
			<-call
		})
	})
}

// checkAnswers holds the rules of S5–S9 and S20, S21 against an independent
// parser, where that agrees with ours on what is JSON.
func checkAnswers(t *testing.T, data []byte, answers [][]byte) {
	t.Helper()
	if bytes.Contains(data, []byte("last one")) {
		return
	}
	if wire.Valid(data) != nil {
		if len(answers) != 1 || !bytes.Contains(answers[0], []byte("-32700")) {
			t.Fatalf("%q is not JSON: %q", data, answers)
		}
		return
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(data, &m) != nil || m == nil {
		if len(answers) != 1 || !bytes.Contains(answers[0], []byte("-32600")) {
			t.Fatalf("%q is not an object: %q", data, answers)
		}
		return
	}
	_, method := m["method"]
	id, hasID := m["id"]
	_, result := m["result"]
	_, failure := m["error"]
	switch {
	case !method && (hasID || result || failure):
		if len(answers) != 0 {
			t.Fatalf("the response %q was answered: %q", data, answers)
		}
	case len(answers) > 1, len(answers) == 0 && (hasID || !method):
		t.Fatalf("%q: %d answers: %q", data, len(answers), answers)
	case len(answers) == 1 && hasID:
		var have struct{ ID json.RawMessage }
		_ = json.Unmarshal(answers[0], &have)
		var want, got ID
		if want.UnmarshalJSON(id) == nil && got.UnmarshalJSON(have.ID) == nil && !got.IsNull() && !got.Equal(want) {
			t.Fatalf("%q answered with id %s", data, have.ID)
		}
	}
}

// FuzzEngine lets a peer write anything, in frames, while calls are made and
// cancelled in both directions. The engine must neither panic nor hang nor
// leave anything behind; a bubble fails on either of the latter.
func FuzzEngine(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":0,"result":{}}`+"\n"+`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s"}}`+"\n"), uint16(0b10110))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","n":1}}`+"\n"+`{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"wait"}}`+"\n"+`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}`+"\n"), uint16(0b01))
	f.Add([]byte("noise\n{oops\n[]\n17\n"+`{"jsonrpc":"2.0","id":0,"error":{"code":1,"message":""}}`), uint16(0xffff))
	f.Fuzz(func(t *testing.T, data []byte, how uint16) {
		synctest.Test(t, func(t *testing.T) {
			mux := new(Mux)
			prompt.Handle(mux, func(ctx context.Context, n *note) (*reply, error) {
				if n.Session == "wait" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return &reply{n.Text}, nil
			})
			update.Handle(mux, func(ctx context.Context, n *note) error {
				if n.N > 0 {
					ctx, stop := context.WithTimeout(ctx, DefaultGrace/4)
					defer stop()
					_, err := prompt.Call(ctx, RequestFrom(ctx).Conn(), n)
					return err
				}
				return nil
			})
			p := newRawPeer(Config{Mux: mux, Lane: laneOf, Settings: Settings{MaxQueued: 8 << 10, MaxRequests: 3, MaxFrame: 1 << 12}})
			var calls []chan error
			for i := range 3 {
				done := make(chan error, 1)
				calls = append(calls, done)
				ctx, stop := context.WithTimeout(bg, DefaultGrace*100)
				if how&(1<<i) != 0 {
					stop()
					ctx, stop = context.WithTimeout(bg, DefaultGrace/8)
				}
				go func() {
					defer stop()
					_, err := prompt.Call(ctx, p.conn, &note{Session: "s"})
					done <- err
				}()
			}
			synctest.Wait()
			p.write(string(data))
			if how&8 != 0 {
				synctest.Wait()
				if n := len(p.conn.reader.stage); n > 0 {
					t.Errorf("%d messages wait for more input", n)
				}
			}
			if how&16 != 0 {
				_ = p.conn.Close()
			}
			p.close()
			for _, done := range calls {
				if err := <-done; err != nil && !errors.Is(err, ErrClosed) && !errors.Is(err, context.DeadlineExceeded) &&
					!errors.Is(err, ErrInvalidResponse) && !errors.Is(err, ErrFrameTooLarge) && !errors.Is(err, ErrTooDeep) {
					var we *Error
					if !errors.As(err, &we) {
						t.Error(err)
					}
				}
			}
			for _, line := range p.take() {
				if wire.Valid([]byte(line)) != nil {
					t.Errorf("wrote %q", line)
				}
			}
		})
	})
}
