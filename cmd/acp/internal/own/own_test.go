package own

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestLinger: a gateway ends once nothing was left to keep for a time, which begins anew whenever there is something.
func TestLinger(t *testing.T) {
	for _, tt := range []struct {
		name string
		busy time.Duration // until when
		want time.Duration // when it ends
	}{
		{"never used", 0, 10 * time.Minute},
		{"a turn of an hour", time.Hour, 70 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				if err := Linger(t.Context(), 10*time.Minute, func() bool { return time.Since(began) < tt.busy }); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < tt.want-2*time.Second || took > tt.want {
					t.Errorf("it ended after %v, want %v", took, tt.want)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(enough) })
		if err := Linger(ctx, time.Hour, func() bool { return true }); err != enough {
			t.Error(err)
		}
	})
}

// TestFind: a server is found while it listens, and what one that was killed has left is not taken for one.
func TestFind(t *testing.T) {
	state := t.TempDir()
	if _, ok, err := Find(t.Context(), state); ok || err != nil {
		t.Errorf("without any: %v, %v", ok, err)
	}
	if _, ok, err := Find(t.Context(), ""); ok || err != nil {
		t.Errorf("without a home: %v, %v", ok, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	want := Server{PID: os.Getpid(), URL: "http://" + l.Addr().String() + "/acp", Started: time.Now().UTC().Truncate(time.Second)}
	end, err := Announce(state, want)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(announced(state)); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if got, ok, err := Find(t.Context(), state); !ok || err != nil || !cmp.Equal(got, want) {
		t.Errorf("%+v, %v, %v", got, ok, err)
	}
	_ = l.Close()
	if _, ok, err := Find(t.Context(), state); ok || err != nil {
		t.Errorf("killed: %v, %v", ok, err)
	}
	for _, bad := range []string{"", "{", `{"url":"x"}`, `{"url":":"}`, strings.Repeat("x", maxAnnounced+1)} {
		if err := os.WriteFile(announced(state), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := Find(t.Context(), state); ok || err != nil {
			t.Errorf("%.20q: %v, %v", bad, ok, err)
		}
	}
	end()
	if left, _ := filepath.Glob(filepath.Join(dir(state), "*")); len(left) > 0 {
		t.Error(left)
	}
}

// TestLog: a log is bounded, also if one write is larger.
func TestLog(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	for range 2 { // it continues where it was
		l, err := OpenLog(name)
		if err != nil {
			t.Fatal(err)
		}
		line := []byte(strings.Repeat("x", 1000) + "\n")
		for range 2 * MaxLog / len(line) {
			if n, err := l.Write(line); n != len(line) || err != nil {
				t.Fatal(n, err)
			}
		}
		if n, err := l.Write(make([]byte, 2*MaxLog)); n != 2*MaxLog || err != nil {
			t.Fatal(n, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{name, name + ".1"} {
		if info, err := os.Stat(f); err != nil || info.Size() > MaxLog || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f, info, err)
		}
	}
	if all, _ := filepath.Glob(name + "*"); len(all) != 2 {
		t.Error(all)
	}
}
