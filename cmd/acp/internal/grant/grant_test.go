package grant

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/shellline"
)

// TestBounded: what is remembered is bounded, in number and in bytes.
func TestBounded(t *testing.T) {
	if long := strings.Repeat("y", maxKey*4); len(Read(long)) > maxKey || len(Run(new(acphost.Policy), long, "/")) > maxKey || Read(long) == Read(long+"y") {
		t.Error("a long act is not remembered by its sum")
	}
	var g Set
	var noted map[string]bool
	for i := range 2 * maxGranted {
		what := strings.Repeat("y", i)
		g.Deny(what, false)
		g.Keep(what)
		Note(&noted, what)
	}
	if len(g.denied) > maxGranted || len(g.kept) > maxGranted || len(noted) > maxGranted {
		t.Errorf("%d, %d, %d are remembered", len(g.denied), len(g.kept), len(noted))
	}
}

// TestGrantedAlways: “always” is for as long as the turns run, and there is a bound.
func TestGrantedAlways(t *testing.T) {
	var g Set
	g.Allow("x", true)
	g.Allow("x", false)
	for i := range 3 {
		if !g.Take("x") {
			t.Errorf("always is for %d times", i)
		}
	}
	g.Clear()
	for i := range 2 * maxGranted {
		g.Allow(strings.Repeat("y", i), false)
	}
	if len(g.left) != maxGranted {
		t.Errorf("%d are remembered", len(g.left))
	}
	if g.Take("x") {
		t.Error("clear has left something")
	}
}

// TestActsOfReader: what a reader says it would run is not what was allowed.
func TestActsOfReader(t *testing.T) {
	if got := ActsOf(new(acphost.Policy), acphost.Request{Kind: "read", RawInput: json.RawMessage(`{"command":"x"}`)}); got != nil {
		t.Errorf("a reader is granted %q", got)
	}
}

// TestRunning: two spellings of an act are one, and two acts are two.
func TestRunning(t *testing.T) {
	type cmd struct{ line, cwd string }
	for _, tt := range []struct {
		a, b cmd
		same bool
	}{
		{cmd{"touch x", "/p"}, cmd{"/bin/bash -c 'touch x'", "/p"}, true},
		{cmd{"touch x", "/p"}, cmd{`bash -lc "touch x"`, "/p/."}, true},
		{cmd{"touch x", "/p"}, cmd{`/bin/bash -c 'cd '\''/p'\'' && touch x'`, "/p"}, true},
		{cmd{"touch x", "/p/q"}, cmd{"cd q && touch x", "/p"}, true},
		{cmd{"cd q && touch x", "/p"}, cmd{"cd 'q' && touch x", "/p"}, true},
		{cmd{"touch x", "/p"}, cmd{"cd q && touch x", "/p"}, false},
		{cmd{"touch x; rm y", "/p/q"}, cmd{"cd q && touch x; rm y", "/p"}, false},
		{cmd{"touch x; rm y", "/p"}, cmd{"cd /p && touch x; rm y", "/p"}, true},
		{cmd{"touch x", "/p"}, cmd{"touch  x", "/p"}, true},
		{cmd{"touch x y", "/p"}, cmd{"touch 'x y'", "/p"}, false},
		{cmd{"touch x", "/p/q r"}, cmd{`sh -c "cd 'q r' &&  touch x"`, "/p"}, true},
		{cmd{"touch x", "/p/q"}, cmd{"cd q&&touch x", "/p"}, true},
		{cmd{"touch x", "/p/q"}, cmd{"cd q && cd r && touch x", "/p"}, false},
		{cmd{"touch x", "/p/q/r"}, cmd{"cd q && cd r && touch x", "/p"}, true},
		{cmd{"touch x || rm y", "/p/q"}, cmd{"cd q && touch x || rm y", "/p"}, false},
		{cmd{"touch x & rm y", "/p/q"}, cmd{"cd q && touch x & rm y", "/p"}, false},
		{cmd{"touch x", "/p/q"}, cmd{"! cd q && touch x", "/p"}, false},
		{cmd{"touch x", "/p/q"}, cmd{"CDPATH=/ cd q && touch x", "/p"}, false},
		{cmd{"touch x", "/p/q"}, cmd{"cd q > f && touch x", "/p"}, false},
		{cmd{"touch x", "/p/q"}, cmd{"cd $q && touch x", "/p"}, false},
		{cmd{"touch x", "/p/q"}, cmd{"cd q; touch x", "/p"}, false},
		{cmd{"touch x", "/p/q"}, cmd{"cd -P q && touch x", "/p"}, false},
		{cmd{"touch x", "/p"}, cmd{"./bash -c 'touch x'", "/p"}, false},
		{cmd{"touch x", "/p"}, cmd{"bash -c 'touch x' y", "/p"}, false},
		{cmd{"touch x", "/p"}, cmd{`bash -c "touch $x"`, "/p"}, false},
		{cmd{"touch $x", "/p"}, cmd{`bash -c "touch $x"`, "/p"}, false},
		{cmd{"touch x", "/p"}, cmd{"cd ~ && touch x", "/p"}, false},
		{cmd{"touch x", "/p"}, cmd{"cd - && touch x", "/p"}, false},
		{cmd{"touch x", "/p"}, cmd{"cd && touch x", "/p"}, false},
		{cmd{"touch x", "/p"}, cmd{"X=1 touch x", "/p"}, false},
	} {
		p := &acphost.Policy{Commands: shellline.Parser{}}
		if got := Run(p, tt.a.line, tt.a.cwd) == Run(p, tt.b.line, tt.b.cwd); got != tt.same {
			t.Errorf("%q and %q: %t", tt.a, tt.b, got)
		}
	}
}
