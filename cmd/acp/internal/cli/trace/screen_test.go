package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/conformance"
	"github.com/goacp/acp/trace"
)

// TestRowsFit holds that rows take one line of a terminal, whatever is in them, and that what is said
// of a row takes as many as it needs.
func TestRowsFit(t *testing.T) {
	long := strings.Repeat("世界 session/", 40)
	finding := conformance.Finding{Why: "params.x: " + long, Path: "params.y", Rule: &conformance.Rule{ID: "agent/x/y", Level: conformance.Must}}
	for _, width := range []int{0, 20, 80, 109, 110, 200} {
		var b bytes.Buffer
		r := rowsFor(width)
		if err := r.writeRow(&b, 123456, 12.3456, "→", long, "sess-世界-0123456789", "999 kB", "99.9 s", long); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(b.String(), "\n"); n != 1 || ansi.StringWidth(b.String()) < width-2 {
			t.Errorf("%d columns: %d lines, %d wide", width, n, ansi.StringWidth(b.String()))
		}
		if err := r.writeFindings(&b, []conformance.Finding{finding}); err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(b.String()) {
			if n := ansi.StringWidth(strings.TrimSuffix(l, "\n")); width >= 80 && n > width {
				t.Errorf("%d columns: %d in %q", width, n, l)
			}
		}
		if !strings.HasSuffix(strings.Join(strings.Fields(b.String()), " "), "at params.y (agent/x/y)") {
			t.Errorf("%d columns: %s", width, b.String())
		}
	}
}

// TestStatsFit holds that sums fit into terminals.
func TestStatsFit(t *testing.T) {
	s := &report{Command: []string{"agent"}, Broken: []rule{{Rule: "agent/x/y", Level: conformance.Should, Count: 12345, Line: 999999, Why: strings.Repeat("why ", 40)}}}
	m := &methodSum{Method: strings.Repeat("世", 40), From: asClient, Count: 999999, Errors: 9999, Unanswered: 999, Latency: &times{1e11, 1e11, 1e11}, Size: sizes{P50: 9e8, Max: 9e8}}
	s.Methods = []methodSum{*m}
	s.Sessions = []session{{ID: strings.Repeat("x", 40), Turns: 999999, Updates: 99999999, FirstChunk: m.Latency, Turn: m.Latency, Tokens: map[string]int64{"totalTokens": 1 << 40}, Cost: &cost{1, "USD"}}, {ID: "y"}}
	for _, width := range []int{0, 80, 99, 106, 107, 130} {
		var b bytes.Buffer
		if err := s.print(&b, width, true); err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(b.String()) {
			if n := ansi.StringWidth(strings.TrimSuffix(l, "\n")); width > 0 && n > width {
				t.Errorf("%d columns: %d in %q", width, n, l)
			}
		}
		for _, want := range []string{"999999", "9999", "OPEN", "900 MB", "tokens", "1 USD", "why why"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%d columns: no %s in %s", width, want, b.String())
			}
		}
	}
}

// TestCut cuts a recording at each byte: every command reads it up to there, or says that it is none.
func TestCut(t *testing.T) {
	name := recording(t,
		`{"t":0,"e":"start","pid":7}`,
		`{"t":1,"d":">","f":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}}`,
		`{"t":2,"d":"<","f":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}}`,
		`{"acpTrace":1,"started":"2026-11-21T15:00:00Z"}`,
		`{"t":3,"d":"<","text":"noise"}`)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head := bytes.IndexByte(data, '\n')
	for n := range len(data) + 1 {
		cut := data[:n]
		for _, o := range []*Options{
			{Verb: verbShow, Check: true}, {Verb: verbShow, JSON: true, Full: true}, {Verb: verbShow, Transcript: true},
			{Verb: verbStats, Check: true}, {Verb: verbRedact},
		} {
			var out, errs bytes.Buffer
			o.App, o.Files = &app.App{In: io.NopCloser(bytes.NewReader(cut)), Out: &out, Err: &errs}, []string{"-"}
			if o.Verb == verbRedact {
				o.Files = append(o.Files, "-")
			}
			err := o.run(context.Background())
			if n < head && errors.Is(err, trace.ErrNotTrace) && exitcode.Of(err) == exitcode.Usage && out.Len() == 0 {
				continue
			}
			if err != nil {
				t.Fatalf("%s at %d: %v", o.Verb, n, err)
			}
			torn := n > 0 && n < len(data) && cut[n-1] != '\n' && data[n] != '\n'
			if told := strings.Contains(errs.String(), "was cut off"); told != torn {
				t.Fatalf("%s at %d: cut off is %v, told: %q", o.Verb, n, torn, errs.String())
			}
			if o.JSON {
				want := 0
				for i, l := range bytes.Split(data, []byte{'\n'}) {
					if end := len(bytes.Join(bytes.Split(data, []byte{'\n'})[:i+1], []byte{'\n'})); len(l) > 0 && l[1] == '"' && l[2] != 'a' && end <= n {
						want++
					}
				}
				if got := strings.Count(out.String(), "\n"); got != want {
					t.Fatalf("at %d: %d records, want %d", n, got, want)
				}
			}
		}
	}
}

// TestJSONDocumented holds that docs/trace.md names every member of what is printed as JSON.
func TestJSONDocumented(t *testing.T) {
	data, err := os.ReadFile("../../../../../docs/trace.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "## What the commands print as JSON\n")
	text, _, _ = strings.Cut(text, "\n## ")
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(typ.Elem())
		case reflect.Struct:
			if seen[typ] {
				return
			}
			seen[typ] = true
			for _, f := range reflect.VisibleFields(typ) {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if name != "" && !strings.Contains(text, "`"+name+"`") {
					t.Errorf("%v: %s is not described", typ, name)
				}
				walk(f.Type)
			}
		}
	}
	for _, v := range []any{shown{}, report{}, comparison{}} {
		walk(reflect.TypeOf(v))
	}
	if len(seen) < 10 {
		t.Errorf("only %v was looked at", seen)
	}
}

// TestDiffers holds what people are told of the first difference.
func TestDiffers(t *testing.T) {
	long := strings.Repeat("世界 ", 20)
	for _, tt := range []struct{ a, b, path, atA, atB string }{
		{`{"a":{"b":"x"}}`, `{"a":{"b":"y"}}`, "a.b", `"x"`, `"y"`},
		{`{"a":{}}`, `{"a":{"b":[1]}}`, "a.b", "nothing", "[1]"},
		{`{"a":[1,2]}`, `{"a":[1]}`, "a[1]", "2", "nothing"},
		{`{"a":[1]}`, `{"a":[1,{"c":2}]}`, "a[1]", "nothing", `{"c":2}`},
		{`{"a":[{"b":1}]}`, `{"a":[{"b":null}]}`, "a[0].b", "1", "null"},
		{`{"a":[]}`, `{"a":{}}`, "a", "[]", "{}"},
		{`{"a":"` + long + `x"}`, `{"a":"` + long + `y"}`, "a", `…世界 世界 世界 x"`, `…世界 世界 世界 y"`},
		{`[1]`, `{}`, "", "[1]", "{}"},
		{`{"id":1,"method":"x"}`, `{"id":2,"method":"y"}`, "method", `"x"`, `"y"`},
		{`{"id":1}`, `{"id":2,"params":3}`, "id", "1", "2"},
	} {
		var a, b any
		if json.Unmarshal([]byte(tt.a), &a) != nil || json.Unmarshal([]byte(tt.b), &b) != nil {
			t.Fatal(tt)
		}
		path, va, vb := differs(a, b, "")
		atA, atB := shorten(jsonText(va), jsonText(vb))
		if got := []string{path, atA, atB}; !slices.Equal(got, []string{tt.path, tt.atA, tt.atB}) {
			t.Errorf("%s and %s differ at %q", tt.a, tt.b, got)
		}
	}
}
