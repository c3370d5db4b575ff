package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/jsonrpc"
)

// listen starts a listener that knows some keys and sends back what it gets.
func listen(t *testing.T, known func(key string) bool) *Listener {
	t.Helper()
	l, err := Listen(t.Context(), "127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	work.Go(func() {
		err := l.Serve(ctx, func(_ context.Context, key string) (bool, error) { return known(key), nil }, func(_ context.Context, s jsonrpc.Stream) error {
			defer s.Close()
			for {
				f, err := s.ReadFrame()
				if err != nil {
					return err
				}
				if err := s.WriteFrame(bytes.Clone(f.Data)); err != nil {
					return err
				}
			}
		}, logtest.New(t))
		if err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		cancel()
		work.Wait()
	})
	return l
}

// TestDial: a node that is known is served, with frames of any size.
func TestDial(t *testing.T) {
	var a *Listener
	b := listen(t, func(key string) bool { return key == a.info.Key })
	a = listen(t, func(string) bool { return false })
	s, err := a.Dial(t.Context(), b.Info())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`{}`, `{"x":"` + string(bytes.Repeat([]byte("y"), 3<<20)) + `"}`} {
		if err := s.WriteFrame([]byte(text)); err != nil {
			t.Fatal(err)
		}
		f, err := s.ReadFrame()
		if err != nil || string(f.Data) != text {
			t.Fatalf("%d bytes, %v", len(f.Data), err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestStranger: neither end accepts another key than the one it expects.
func TestStranger(t *testing.T) {
	b := listen(t, func(string) bool { return false })
	a := listen(t, func(string) bool { return false })
	s, err := a.Dial(t.Context(), b.Info())
	if err == nil { // the other end refuses once it has seen the certificate
		_ = s.WriteFrame([]byte(`{}`))
		if _, err = s.ReadFrame(); err == nil {
			t.Error("a node that nobody knows is served")
		}
		_ = s.Close()
	}
	info, err := json.Marshal(Info{Address: b.info.Address, Key: a.info.Key})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Dial(t.Context(), info); err == nil {
		t.Error("another node than the one that was meant")
	}
	if _, err := a.Dial(t.Context(), json.RawMessage(`[]`)); err == nil {
		t.Error("no address")
	}
}

// TestUnspecified: an address that other machines cannot use is refused, unless it is said what they use.
func TestUnspecified(t *testing.T) {
	if _, err := Listen(t.Context(), "0.0.0.0:0", ""); err == nil {
		t.Error("nobody can reach 0.0.0.0")
	}
	l, err := Listen(t.Context(), "0.0.0.0:0", "gateway-1.example:7843")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var info Info
	if err := json.Unmarshal(l.Info(), &info); err != nil || info.Address != "gateway-1.example:7843" {
		t.Error(info, err)
	}
}

// TestSilence: an end that hears nothing from the other one gives up; two that have nothing to say do not.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		s := newStream(a)
		begun := time.Now()
		go func() { // takes what comes and says nothing
			buf := make([]byte, 100)
			for {
				if _, err := b.Read(buf); err != nil {
					return
				}
			}
		}()
		if _, err := s.ReadFrame(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		if d := time.Since(begun); d != silence {
			t.Error(d)
		}
		_ = s.Close()

		c, d := net.Pipe()
		one, other := newStream(c), newStream(d)
		got := make(chan error, 1)
		go func() {
			_, err := one.ReadFrame()
			got <- err
		}()
		go func() { _, _ = other.ReadFrame() }()
		select {
		case err := <-got:
			t.Error("gave up:", err)
		case <-time.After(time.Minute):
		}
		_ = other.Close()
		<-got
		_ = one.Close()
	})
}

// TestStall: an end whose frames are not taken gives up.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer b.Close()
		s := newStream(a)
		if err := s.WriteFrame([]byte(`{}`)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		_ = s.Close()
	})
}
