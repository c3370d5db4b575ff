//go:build unix

package holder

import (
	"bytes"
	"testing"

	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// frame200 is a frame of 200 bytes.
var frame200 = append(append([]byte(`{"jsonrpc":"2.0","x":"`), bytes.Repeat([]byte("x"), 176)...), `"}`...)

// BenchmarkEcho measures the way to an agent that returns what it gets, and back: with a holder between,
// which gets an acknowledgement for each frame, and over pipes.
func BenchmarkEcho(b *testing.B) {
	echo := func(b *testing.B, s jsonrpc.Stream, ack func() error) {
		b.ReportAllocs()
		for b.Loop() {
			if err := s.WriteFrame(frame200); err != nil {
				b.Fatal(err)
			}
			if _, err := s.ReadFrame(); err != nil {
				b.Fatal(err)
			}
			if err := ack(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("held", func(b *testing.B) {
		a := begin(b, spec(b, "/bin/cat"))
		echo(b, a, func() error { return a.Ack(a.Seq()) })
	})
	b.Run("pipes", func(b *testing.B) {
		p, err := process.Start(b.Context(), process.Config{Path: "/bin/cat"})
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = p.Stop(b.Context()) }()
		echo(b, jsonrpc.NewLineStream(p.Stdout(), p.Stdin()), func() error { return nil })
	})
}

// BenchmarkEvents measures how fast the lines of an agent pass that writes as fast as it can, with an
// acknowledgement for every hundred of them.
func BenchmarkEvents(b *testing.B) {
	b.SetBytes(int64(len(frame200)))
	a := begin(b, spec(b, "/usr/bin/yes", string(frame200)))
	for b.Loop() {
		if _, err := a.ReadFrame(); err != nil {
			b.Fatal(err)
		}
		if n := a.Seq(); n%100 == 0 {
			if err := a.Ack(n); err != nil {
				b.Fatal(err)
			}
		}
	}
}
