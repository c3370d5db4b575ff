package sample

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/overlay"
)

var schemaFiles = []string{"v1.json", "v1.unstable.json", "v2.json", "v2.unstable.json"}

func loadFile(t *testing.T, file string) *Schema {
	t.Helper()
	set, err := overlay.Read("../../schema")
	if err != nil {
		t.Fatal(err)
	}
	data, err := set.Schema(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Load(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return s
}

// envelope matches the definitions that list all messages of one direction: an extension's
// payload reads as whatever message comes first, so nothing can be said about them.
var envelope = regexp.MustCompile(`^(Agent|Client|Proxy)(Request|Response|Notification)$`)

// Everything Valid makes passes the checker, which shares no code path with it, and a
// lenient reader loses none of it but unknown members.
func TestValidIsValid(t *testing.T) {
	for _, file := range schemaFiles {
		s := loadFile(t, file)
		if len(s.Names()) < 150 {
			t.Errorf("%s: only %d definitions", file, len(s.Names()))
		}
		rng := rand.New(rand.NewPCG(1, 1))
		for _, typ := range s.Names() {
			if envelope.MatchString(typ) {
				continue
			}
			for range 14 {
				data := s.Valid(rng, typ)
				if err := s.Check(typ, data); err != nil {
					t.Fatalf("%s %s: %v\n%s", file, typ, err, data)
				}
				kept, err := s.Salvage(typ, data, 0)
				if err != nil {
					t.Fatalf("%s %s: %v\n%s", file, typ, err, data)
				}
				o := Options{Strip: true, KeepNull: true, KeepEmpty: true, KeepDefault: true}
				want, err := o.Canonical(s, typ, data)
				if err != nil {
					t.Fatalf("%s %s: %v\n%s", file, typ, err, data)
				}
				got, err := o.Canonical(s, typ, kept)
				if err != nil || !bytes.Equal(got, want) {
					t.Fatalf("%s %s: salvage lost something\n%s\n%s\n%v", file, typ, want, got, err)
				}
			}
		}
	}
}

func TestValidIsDeterministic(t *testing.T) {
	s := loadFile(t, "v2.unstable.json")
	make100 := func(seed uint64) []byte {
		rng := rand.New(rand.NewPCG(seed, 0))
		var all []byte
		for range 100 {
			v := s.Valid(rng, "SessionUpdate")
			all = append(append(all, v...), s.Mutate(rng, "SessionUpdate", v)...)
		}
		return all
	}
	if !bytes.Equal(make100(1), make100(1)) {
		t.Error("one seed gave two results")
	}
	if bytes.Equal(make100(1), make100(2)) {
		t.Error("two seeds gave one result")
	}
}

// Every branch of every tagged union is visited: each tag, a vendor's and another unknown
// tag where the union is open, and no tag where a branch has none.
func TestValidVisitsEveryVariant(t *testing.T) {
	for _, file := range schemaFiles {
		s := loadFile(t, file)
		for _, typ := range s.Names() {
			n := s.defs[typ]
			if n.tag == nil {
				continue
			}
			seen := map[string]bool{}
			rng := rand.New(rand.NewPCG(3, 3))
			for range 60 * (len(n.tag.known) + 2) {
				v, err := parse(s.Valid(rng, typ))
				if err != nil {
					t.Fatal(err)
				}
				word := v.get(n.tag.key)
				switch {
				case word == nil || word.kind == kindNull:
					seen["no tag"] = true
				case slices.Contains(n.tag.known, word.str()):
					seen[word.str()] = true
				case strings.HasPrefix(word.str(), "_"):
					seen["vendor tag"] = true
				default:
					seen["unknown tag"] = true
				}
			}
			want := slices.Clone(n.tag.known)
			if n.tag.catchAll {
				want = append(want, "vendor tag", "unknown tag")
			}
			if n.tag.leftover {
				want = append(want, "no tag")
			}
			for _, w := range want {
				if !seen[w] {
					t.Errorf("%s %s: never %q", file, typ, w)
				}
				delete(seen, w)
			}
			for w := range seen {
				t.Errorf("%s %s: unexpected %q", file, typ, w)
			}
		}
	}
}

// Every optional property of every definition occurs and is missing, and is null where it
// may be.
func TestValidVisitsEveryProperty(t *testing.T) {
	s := loadFile(t, "v2.unstable.json")
	for _, typ := range s.Names() {
		n := s.defs[typ]
		rng := rand.New(rand.NewPCG(4, 4))
		count := map[string]int{}
		const rounds = 150
		for range rounds {
			v, err := parse(s.Valid(rng, typ))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range n.props {
				if got := v.get(p.name); got != nil {
					count[p.name]++
					if got.kind == kindNull {
						count[p.name+" null"]++
					}
				}
			}
		}
		for _, p := range n.props {
			if count[p.name] == 0 {
				t.Errorf("%s.%s never occurs", typ, p.name)
			}
			if n.needs(p.name) != (count[p.name] == rounds) && n.tag == nil {
				t.Errorf("%s.%s: %d times of %d, required: %v", typ, p.name, count[p.name], rounds, n.needs(p.name))
			}
			if !n.needs(p.name) && s.nullable(p.node) && count[p.name+" null"] == 0 {
				t.Errorf("%s.%s is never null", typ, p.name)
			}
		}
	}
}

// The spellings that readers get wrong all occur.
func TestValidSpellings(t *testing.T) {
	s := loadFile(t, "v2.unstable.json")
	rng := rand.New(rand.NewPCG(5, 5))
	var all bytes.Buffer
	longest, tagLast, tagFirst := 0, 0, 0
	for range 1500 {
		data := s.Valid(rng, "UpdateSessionNotification")
		all.Write(data)
		v, err := parse(data)
		if err != nil {
			t.Fatal(err)
		}
		update := v.get("update").members
		switch {
		case update[len(update)-1].name == "sessionUpdate":
			tagLast++
		case update[0].name == "sessionUpdate":
			tagFirst++
		}
		for _, m := range update {
			if m.value.kind == kindString {
				longest = max(longest, len(m.value.text))
			}
		}
		all.WriteByte('\n')
	}
	for range 200 {
		all.Write(s.Valid(rng, "IntegerPropertySchema"))
	}
	for _, want := range []string{
		`\u0000`, `\"`, `\/`, `\\`, `\n`, `\ud83d\ude00`, `"\ud83d"`, `\udc00 low`, "😀", "中文", "\u2028", "\ufeff", "<b>&amp;</b>",
		`:""`, `:[]`, `:{}`, `:null`, `"_meta":{`, `1.50`, `1e3`, `-12.340e-05`, `1e400`, `18446744073709551615`, `-9223372036854775808`,
		`9223372036854775807`, `123456789012345678901234567890`, `1.0`, "\r\n", "\t", `"_vendor`, `"constructor`, `"\u005f`, `"`,
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("%q never occurs", want)
		}
	}
	if longest < 2000 || tagLast < 100 || tagFirst < 50 {
		t.Errorf("longest string %d, tag last %d times, first %d times", longest, tagLast, tagFirst)
	}
}

func TestUnknownNames(t *testing.T) {
	for _, text := range []string{"Valid", "Mutate"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s of an unknown definition does not panic", text)
				}
			}()
			s := load(t, tiny)
			rng := rand.New(rand.NewPCG(0, 0))
			if text == "Valid" {
				s.Valid(rng, "Nope")
			} else {
				s.Mutate(rng, "Nope", []byte(`1`))
			}
		}()
	}
}

// Mutate always gives JSON, mostly breaks the value, and reaches every kind of breakage.
func TestMutate(t *testing.T) {
	for _, file := range schemaFiles {
		s := loadFile(t, file)
		rng := rand.New(rand.NewPCG(6, 6))
		total, invalid, refused, salvaged := 0, 0, 0, 0
		for _, typ := range s.Names() {
			broke := false
			for i := 0; i < 14 || !broke && i < 100; i++ {
				data := s.Valid(rng, typ)
				before := bytes.Clone(data)
				out := s.Mutate(rng, typ, data)
				if !bytes.Equal(data, before) {
					t.Fatalf("%s: Mutate changed its argument", typ)
				}
				if !json.Valid(out) {
					t.Fatalf("%s: not JSON: %s", typ, out)
				}
				total++
				if s.Check(typ, out) == nil {
					continue
				}
				broke = true
				invalid++
				if _, err := s.Salvage(typ, out, 0); err != nil {
					refused++
				} else {
					salvaged++
				}
			}
			if n := s.resolve(s.defs[typ]); !broke && !n.any() && !slices.ContainsFunc(n.union(), (*node).any) {
				t.Errorf("%s %s: never broken", file, typ)
			}
		}
		t.Logf("%s: %d mutated, %d invalid, %d refused, %d salvaged", file, total, invalid, refused, salvaged)
		if invalid < total/2 || refused < total/5 || salvaged < total/10 {
			t.Errorf("%s: of %d mutated values %d are invalid, %d refused, %d salvaged: too few", file, total, invalid, refused, salvaged)
		}
	}
}

func TestMutateKinds(t *testing.T) {
	s := load(t, tiny)
	breakages := map[string]struct {
		typ, in string
		seen    func(v *value) bool
	}{
		"missing member":     {"Item", `{"id":"a"}`, func(v *value) bool { return v.kind == kindObject && v.get("id") == nil }},
		"null member":        {"Item", `{"id":"a"}`, func(v *value) bool { m := v.get("id"); return m != nil && m.kind == kindNull }},
		"wrong type":         {"Item", `{"id":"a"}`, func(v *value) bool { m := v.get("id"); return m != nil && m.kind == kindObject }},
		"wrong root":         {"Item", `{"id":"a"}`, func(v *value) bool { return v.kind == kindArray }},
		"repeated member":    {"Item", `{"id":"a"}`, func(v *value) bool { return len(v.members) == 2 && v.members[1].name == "id" }},
		"out of range":       {"Port", `5`, func(v *value) bool { return v.text == "65536" }},
		"fraction":           {"Port", `5`, func(v *value) bool { return v.text == "1.5" }},
		"empty list":         {"Some", `["a"]`, func(v *value) bool { return v.kind == kindArray && len(v.items) == 0 }},
		"bad item":           {"Some", `["a"]`, func(v *value) bool { return len(v.items) == 2 && v.items[1].kind != kindString }},
		"item replaced":      {"Some", `["a"]`, func(v *value) bool { return len(v.items) == 1 && v.items[0].kind != kindString }},
		"unknown word":       {"Word", `"a"`, func(v *value) bool { return v.kind == kindString && v.str() == "future_thing" }},
		"bad uri":            {"Link", `"a:b"`, func(v *value) bool { return v.kind == kindString && v.str() == "relative/path" }},
		"unknown tag":        {"Closed", `{"type":"item","id":"a"}`, func(v *value) bool { m := v.get("type"); return m != nil && m.kind == kindString && m.str() == "_x" }},
		"another known tag":  {"Closed", `{"type":"item","id":"a"}`, func(v *value) bool { m := v.get("type"); return m != nil && m.text == `"env"` }},
		"tag is not a word":  {"Closed", `{"type":"item","id":"a"}`, func(v *value) bool { m := v.get("type"); return m != nil && m.kind == kindNumber }},
		"malformed optional": {"Forgiving", `{"must":[]}`, func(v *value) bool { m := v.get("text"); return m != nil && m.kind == kindObject }},
		"bad _meta":          {"Forgiving", `{"must":[]}`, func(v *value) bool { m := v.get("_meta"); return m != nil && m.kind == kindArray }},
		"empty text":         {"Item", `{"id":"a"}`, func(v *value) bool { m := v.get("id"); return m != nil && m.text == `""` }},
		"deep": {"Forgiving", `{"must":[{"id":"a"}]}`, func(v *value) bool {
			m := v.get("must")
			return m != nil && len(m.items) == 1 && len(m.items[0].members) == 0
		}},
	}
	for name, b := range breakages {
		rng := rand.New(rand.NewPCG(8, 8))
		found := false
		for range 3000 {
			v, err := parse(s.Mutate(rng, b.typ, []byte(b.in)))
			if err != nil {
				t.Fatal(err)
			}
			if found = b.seen(v); found {
				break
			}
		}
		if !found {
			t.Errorf("never: %s", name)
		}
	}
}
