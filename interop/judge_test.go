package interop

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/sample"
)

// target is a decoder under test holding one value.
type target interface {
	json.Marshaler
	json.Unmarshaler
}

func decode(tgt target, data []byte) verdict {
	if err := tgt.UnmarshalJSON(data); err != nil {
		return verdict{err: err}
	}
	again, err := tgt.MarshalJSON()
	if err != nil {
		return verdict{err: fmt.Errorf("decoded, but does not encode: %w", err)}
	}
	return verdict{again: again}
}

// Every value of every type of every profile is accepted, refused and salvaged by our types
// as by the official validators, or oracle-exceptions.txt says why not. S67-S83
func TestDecodersAgreeWithOracle(t *testing.T) {
	need(t)
	f, err := os.Open("oracle-exceptions.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	listed, err := readExceptions(f)
	if err != nil {
		t.Fatalf("oracle-exceptions.txt: %v", err)
	}
	table := []string{summaryHead}
	for _, p := range profiles {
		s := ask(t, p)
		j := newJudge(p, s.schema, listed, t.Errorf)
		last := ""
		for _, q := range s.questions {
			tgt, ok := newTarget(p.version, q.typ)
			if !ok {
				j.missing(q.typ)
				continue
			}
			if q.typ != last {
				j.types, last = j.types+1, q.typ
			}
			j.compare(q, decode(tgt, q.value))
		}
		table = append(table, j.summary())
		if j.failed > 0 {
			t.Errorf("%s: %d disagreements not listed", p.name, j.failed)
		}
	}
	for _, e := range listed {
		if e.used == 0 {
			t.Errorf("oracle-exceptions.txt:%d matches nothing: %s", e.line, e.text)
			continue
		}
		t.Logf("%7d x %s\n\te.g. %s %.200s", e.used, e.text, e.exampleT, e.example)
	}
	t.Log("\n" + strings.Join(table, "\n"))
}

const shapes = `{"$defs": {
	"Kind": {"oneOf": [{"type": "string", "const": "a"}, {"type": "string", "const": "b"}]},
	"Count": {"type": "integer", "format": "int64"},
	"Thing": {"type": "object", "required": ["kind"], "properties": {
		"kind": {"$ref": "#/$defs/Kind"},
		"count": {"$ref": "#/$defs/Count"},
		"note": {"type": ["string", "null"], "x-deserialize-default-on-error": true}}}
}}`

// modelTarget decodes as the model does with some deviations.
func modelVerdict(s *sample.Schema, typ string, data []byte, dev sample.Deviation) verdict {
	kept, err := s.Salvage(typ, data, dev)
	return verdict{err: err, again: kept}
}

func smallSweep(t *testing.T) (*sample.Schema, []question) {
	t.Helper()
	s, err := sample.Load(strings.NewReader(shapes))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var qs []question
	for range 400 {
		value := s.Mutate(rng, "Thing", s.Valid(rng, "Thing"))
		kept, err := s.Salvage("Thing", value, 0)
		q := question{typ: "Thing", value: value, accept: err == nil, kept: kept}
		qs = append(qs, q)
	}
	return s, qs
}

// The judge itself: what it lets pass, what it reports, and when a line counts as used.
func TestJudge(t *testing.T) {
	s, qs := smallSweep(t)
	tests := []struct {
		name   string
		dev    sample.Deviation
		lines  string
		fails  bool
		unused int
	}{
		{"reference", 0, "", false, 0},
		{"unlisted", sample.OpenEnums, "", true, 0},
		{"listed", sample.OpenEnums, "v1 Thing accept open-enum # kept", false, 0},
		{"other kind", sample.OpenEnums, "v1 Thing reject open-enum # kept", true, 1},
		{"other type", sample.OpenEnums, "v1 Thong accept open-enum # kept", true, 1},
		{"other profile", sample.OpenEnums, "v2* Thing accept open-enum # kept", true, 1},
		{"other deviation", sample.OpenEnums, "v1 Thing accept any-uri # kept", true, 1},
		{"unused", 0, "v1 Thing accept open-enum # kept", false, 1},
		{"two", sample.OpenEnums | sample.IntRange, "v* T* accept open-enum # kept\nv1 Thing reject int-range # not 64 bits", false, 0},
		{"absent unused", 0, "v1 Thing absent - # no such type", false, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			listed, err := readExceptions(strings.NewReader(tt.lines))
			if err != nil {
				t.Fatal(err)
			}
			j := newJudge(profiles[0], s, listed, t.Logf)
			for _, q := range qs {
				j.compare(q, modelVerdict(s, q.typ, q.value, tt.dev))
			}
			if (j.failed > 0) != tt.fails {
				t.Errorf("failed = %d, want failures: %v", j.failed, tt.fails)
			}
			if j.values != len(qs) || j.agree+j.excepted+j.failed != j.values {
				t.Errorf("counts do not add up: %s", j.summary())
			}
			unused := 0
			for _, e := range listed {
				if e.used == 0 {
					unused++
				}
			}
			if unused != tt.unused {
				t.Errorf("unused lines = %d, want %d", unused, tt.unused)
			}
		})
	}
}

// A wrong value is reported even though both sides accept.
func TestJudgeComparesValues(t *testing.T) {
	s, _ := smallSweep(t)
	q := question{typ: "Thing", value: []byte(`{"kind":"a","count":1.0,"x":1}`), accept: true, kept: []byte(`{"kind":"a","count":1}`)}
	for _, tt := range []struct {
		again string
		fails int
	}{
		{`{"count":1,"kind":"a","x":1}`, 0}, // unknown members may stay
		{`{"count":1,"kind":"a","note":null}`, 0},
		{`{"count":2,"kind":"a"}`, 1},
		{`{"kind":"a"}`, 1},
		{`{"count":1}`, 1},
		{`[]`, 1},
	} {
		j := newJudge(profiles[0], s, nil, t.Logf)
		j.compare(q, verdict{again: []byte(tt.again)})
		if j.failed != tt.fails {
			t.Errorf("%s: failed = %d, want %d", tt.again, j.failed, tt.fails)
		}
	}
}

func TestReadExceptionsRefuses(t *testing.T) {
	for _, line := range []string{
		"v1 Thing accept open-enum",          // no reason
		"v1 Thing accept open-enum #  ",      // empty reason
		"v1 Thing accept # why",              // no matcher
		"v1 Thing perhaps open-enum # why",   // unknown kind
		"v1 Thing accept looks-odd # why",    // unknown matcher
		"v1 Thing accept - # why",            // no matcher
		"v1 Thing absent open-enum # why",    // absent has none
		"v1 [ accept open-enum # why",        // bad glob
		"v1 Thing accept open-enum more # x", // too many words
	} {
		if _, err := readExceptions(strings.NewReader("# comment\n\n" + line)); err == nil || !strings.Contains(err.Error(), "line 3") {
			t.Errorf("%q: error = %v, want one naming line 3", line, err)
		}
	}
}
