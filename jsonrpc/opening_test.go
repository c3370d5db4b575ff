package jsonrpc

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// seen is what became of a frame.
type seen struct {
	Answers []string
	Events  []EventKind
	Notes   []note
}

// outcomes gives frames to one connection, or each to one of its own, and tells
// what became of each.
func outcomes(t *testing.T, together bool, frames []string) (all []seen) {
	synctest.Test(t, func(t *testing.T) {
		var notes []note
		var ev events
		var p *rawPeer
		for i, f := range frames {
			if i == 0 || !together {
				if p != nil {
					p.close()
				}
				ev, notes = events{}, nil
				mux := new(Mux)
				update.Handle(mux, func(_ context.Context, n *note) error { notes = append(notes, *n); return nil })
				prompt.Handle(mux, func(_ context.Context, n *note) (*reply, error) { return &reply{n.Text}, nil })
				p = newRawPeer(Config{Mux: mux, Settings: Settings{Diagnose: ev.add}})
			}
			before, heard := len(ev.kinds()), len(notes)
			p.write(f + "\n")
			s := seen{Answers: p.take()}
			s.Events = append(s.Events, ev.kinds()[before:]...)
			s.Notes = append(s.Notes, notes[heard:]...)
			all = append(all, s)
		}
		p.close()
	})
	return all
}

// TestOpening: what is remembered of how a notification began changes nothing
// for the frames that begin alike, or nearly.
func TestOpening(t *testing.T) {
	const first = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","text":"x"}}`
	frames := []string{
		first,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","text":"x"},"id":1}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","text":"x"},"params":{}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"},"method":"session/prompt"}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"},"jsonrpc":"1.0"}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"},"result":1}`,
		`{"jsonrpc":"2.0","method":"session/update","params":null}`,
		`{"jsonrpc":"2.0","method":"session/update","params": {"sessionId":5}} `,
		`{"jsonrpc":"2.0","method":"session/prompt","params":{"sessionId":"s","text":"x"},"id":1}`,
		`{"jsonrpc":"2.0","x":[1],"method":"session/updat\u0065","params":{"sessionId":"s","text":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"session/update","params":{"sessionId":"s","text":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","text":"x"}}`,
		`{"jsonrpc":"2.0","result":1,"method":"session/update","params":{"sessionId":"s","text":"x"}}`,
		`{"jsonrpc":"1.0","method":"session/update","params":{"sessionId":"s","text":"x"}}`,
		`{"jsonrpc":"2.0","method":"session/other","params":{"sessionId":"s","text":"x"}}`,
	}
	for i := range first {
		frames = append(frames, first[:i]+first[i+1:])
		for _, c := range []string{"{", "}", `"`, ",", " ", "1", "\xff"} {
			frames = append(frames, first[:i]+c+first[i+1:], first[:i]+c+first[i:])
		}
		if i > 0 {
			frames = append(frames, first[:i])
		}
	}
	alone := outcomes(t, false, frames)
	var after []string
	for _, f := range frames {
		after = append(after, first, f, f)
	}
	got := outcomes(t, true, after)
	for i, f := range frames {
		for j, before := range []string{first, f} {
			if diff := cmp.Diff(alone[i], got[3*i+1+j]); diff != "" {
				t.Errorf("%s: behind %s:\n%s", f, before, diff)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	var order []int
	var mixed []string
	for range 2000 {
		order = append(order, r.IntN(len(frames)))
		mixed = append(mixed, frames[order[len(order)-1]])
	}
	for i, s := range outcomes(t, true, mixed) {
		if diff := cmp.Diff(alone[order[i]], s); diff != "" {
			t.Fatalf("%s: among others:\n%s", mixed[i], diff)
		}
	}
}

// TestOpeningAndSetMux: the handlers that are current count.
func TestOpeningAndSetMux(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard []string
		muxOf := func(name string) *Mux {
			mux := new(Mux)
			update.Handle(mux, func(context.Context, *note) error { heard = append(heard, name); return nil })
			return mux
		}
		p := newRawPeer(Config{Mux: muxOf("a")})
		defer p.close()
		send := func() {
			p.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}` + "\n")
			p.take()
		}
		send()
		send()
		p.conn.SetMux(muxOf("b"))
		send()
		send()
		p.conn.SetMux(new(Mux))
		send()
		if diff := cmp.Diff([]string{"a", "a", "b", "b"}, heard); diff != "" {
			t.Error(diff)
		}
	})
}
