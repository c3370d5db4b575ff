package sample

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Valid returns a random valid value of the named definition, deterministic for a state of
// rng. Over many calls it visits every branch of every union with its catch-all, unknown
// members, nulls, empty and missing optionals, escapes, surrogate pairs and lone surrogates,
// long strings, integers up to the bounds of their format, and unusual number spellings in
// raw places. It panics when the definition does not exist.
func (s *Schema) Valid(rng *rand.Rand, name string) []byte {
	n, err := s.def(name)
	if err != nil {
		panic(err)
	}
	g := &generator{s: s, rng: rng, sparse: rng.IntN(4) == 0, plain: rng.IntN(3) == 0}
	v := g.typed(n, 0)
	return v.append(nil, g.space())
}

type generator struct {
	s      *Schema
	rng    *rand.Rand
	sparse bool // few optional members
	plain  bool // no unknown members
}

func (g *generator) chance(n int) bool { return g.rng.IntN(n) == 0 }

func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

// space returns a source of white space between tokens; mostly there is none.
func (g *generator) space() func() string {
	if !g.chance(5) {
		return nil
	}
	return func() string {
		if !g.chance(4) {
			return ""
		}
		return pick(g.rng, []string{" ", "  ", "\t", "\n", "\r\n", " \n\t"})
	}
}

func (g *generator) typed(n *node, depth int) *value {
	n = g.s.resolve(n)
	if n.any() {
		return g.raw(depth)
	}
	if n.constant != nil {
		return n.constant
	}
	if n.enum != nil {
		return pick(g.rng, n.enum)
	}
	if len(n.types) == 0 || slices.Contains(n.types, "object") && len(n.types) == 1 {
		if len(n.props) == 0 && len(n.types) == 0 && len(n.union()) > 0 && !g.objects(n) {
			return g.typed(pick(g.rng, n.union()), depth)
		}
		return g.object(n, depth)
	}
	typ := n.types[0]
	if len(n.types) > 1 {
		typ = pick(g.rng, n.types)
		if typ == "null" && !g.chance(3) {
			typ = n.types[0]
		}
	}
	switch typ {
	case "null":
		return nullValue()
	case "boolean":
		return boolValue(g.chance(2))
	case "integer":
		return numberValue(g.integer(n))
	case "number":
		return numberValue(g.double(n))
	case "string":
		return g.text(n)
	case "array":
		return g.array(n, depth)
	default:
		return g.object(n, depth)
	}
}

// objects reports a union whose branches are all objects, so that they must be generated
// together with what stands next to the union.
func (g *generator) objects(n *node) bool {
	for _, b := range n.union() {
		b = g.s.resolve(b)
		if !slices.Contains(b.types, "object") && (len(b.union()) == 0 || !g.objects(b)) {
			return false
		}
	}
	return true
}

func (g *generator) array(n *node, depth int) *value {
	v := emptyArray()
	count := n.minItems
	if !g.chance(4) {
		count += g.rng.IntN(4 - min(depth/3, 2))
	}
	for range count {
		if n.items == nil {
			v.items = append(v.items, g.raw(depth+1))
			continue
		}
		v.items = append(v.items, g.typed(n.items, depth+1))
	}
	return v
}

// object generates all that applies to one object value.
func (g *generator) object(n *node, depth int) *value {
	o := &making{value: emptyObject(), decided: map[string]bool{}}
	g.fill(n, o, depth)
	switch {
	case o.payload:
		g.unknown(o, depth, g.rng.IntN(4))
	case o.mapped == nil && !g.plain && g.chance(4):
		g.unknown(o, depth, 1+g.rng.IntN(2))
	case o.mapped != nil:
		for i := range g.rng.IntN(4) {
			name := fmt.Sprintf("%s%d", g.key(), i)
			o.value.members = append(o.value.members, g.member(name, g.typed(o.mapped, depth+1)))
		}
	}
	members := o.value.members
	g.rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	if g.chance(2) && o.tag != "" {
		// A tag in the last place makes a one-pass reader look ahead.
		i := slices.IndexFunc(members, func(m *member) bool { return m.name == o.tag })
		if i >= 0 {
			members[i], members[len(members)-1] = members[len(members)-1], members[i]
		}
	}
	return o.value
}

// making is an object under construction.
type making struct {
	value   *value
	decided map[string]bool // members settled, also those settled to be absent
	payload bool            // free members belong to the value
	mapped  *node           // schema of the free keys of a typed map
	tag     string
}

func (g *generator) fill(n *node, o *making, depth int) {
	n = g.s.resolve(n)
	if n.tag != nil {
		o.tag = n.tag.key
	}
	if u := n.union(); len(u) > 0 {
		b := g.s.resolve(pick(g.rng, u))
		if n.tag != nil && b.not != nil && !o.decided[n.tag.key] {
			o.set(g, n.tag.key, stringValue(g.vendorWord(n.tag.known)))
		}
		if exclusive(g.s, n) || n.tag == nil {
			// Members of the other branches would make the value ambiguous.
			for _, other := range u {
				if other = g.s.resolve(other); other != b {
					for _, p := range other.props {
						if b.propIndex[p.name] == nil {
							o.decided[p.name] = true
						}
					}
				}
			}
		}
		g.fill(b, o, depth)
	}
	for _, sub := range n.allOf {
		g.fill(sub, o, depth)
	}
	for _, p := range n.props {
		if o.decided[p.name] {
			continue
		}
		o.decided[p.name] = true
		need := n.needs(p.name)
		if !need && (g.sparse && !g.chance(5) || g.rng.IntN(10) < 3+min(depth, 4)) {
			continue
		}
		o.set(g, p.name, g.typed(p.node, depth+1))
	}
	o.payload = o.payload || n.rawMembers()
	if n.additional != nil {
		o.mapped = n.additional
	}
}

func (o *making) set(g *generator, name string, v *value) {
	o.decided[name] = true
	o.value.members = append(o.value.members, newMember(name, v))
}

func (g *generator) unknown(o *making, depth, count int) {
	for range count {
		name := g.freshName()
		if !o.decided[name] {
			o.decided[name] = true
			o.value.members = append(o.value.members, g.member(name, g.raw(depth+1)))
		}
	}
}

// member spells the name in one of the ways JSON allows.
func (g *generator) member(name string, v *value) *member {
	m := newMember(name, v)
	if g.chance(12) {
		m.key = escapeFirst(m.key)
	}
	return m
}

// escapeFirst writes the first character of a string literal as an escape sequence.
func escapeFirst(lit string) string {
	if len(lit) > 2 && lit[1] < 0x80 && lit[1] != '\\' {
		return fmt.Sprintf(`"\u%04x%s`, lit[1], lit[2:])
	}
	return lit
}

var keyPool = []string{
	"x", "_x", "_vendor.example/field", "futureMember", "constructor", "toString", "hasOwnProperty", "ключ", "键",
	"emoji😀", "with space", "quo\"te", "back\\slash", "tab\t", "<tag>&", "Text", "TYPE", "sessionid", "0", "12", "é",
}

func (g *generator) key() string { return pick(g.rng, keyPool) }

// freshName is a member name no part of the schema uses.
func (g *generator) freshName() string {
	for {
		name := g.key()
		if g.chance(8) {
			name = ""
		}
		if g.chance(3) {
			name += fmt.Sprint(g.rng.IntN(100))
		}
		if !g.s.known[name] {
			return name
		}
	}
}

func (g *generator) vendorWord(known []string) string {
	for {
		w := pick(g.rng, []string{"_x", "_vendor/thing", "_vendor.example", "future_thing", "", "TEXT", "néw", "_\"q"})
		if !slices.Contains(known, w) {
			return w
		}
	}
}

func (g *generator) text(n *node) *value {
	switch n.format {
	case "uri":
		return stringValue(g.uri())
	case "date-time":
		return stringValue(pick(g.rng, []string{
			"2025-01-31T23:59:59Z", "2024-02-29T00:00:00.123456789+02:00", "1999-12-31T12:00:00.5-23:59", "0001-01-01T00:00:00Z",
		}))
	}
	lit := g.literal()
	if n.minLength > 0 && lit == `""` {
		lit = `"a"`
	}
	return &value{kind: kindString, text: lit}
}

func (g *generator) uri() string {
	return pick(g.rng, []string{
		"https://example.com/a?b=c#d", "file:///home/user/a%20b.txt", "urn:x", "zed:///agent/file?path=%zz", "http://127.0.0.1:8080",
		"data:text/plain,hi", "https://例え.jp/ü", `C:\Users\me`, "mailto:a@b",
	})
}

var literalPool = []string{
	`""`, `"a"`, `"sess_1"`, `"/home/user/file.go"`, `"text with spaces"`, `"42"`, `"null"`,
	`"line\nbreak\r\ttab"`, `"quote \" slash \/ back \\ bell \b feed \f"`, `"\u0000\u0001\u001f\u007f"`, `"<b>&amp;</b>"`,
	`"\u0041\u00e9\u4e2d"`, `"é中文 ελ"`, `"😀 raw"`, `"\ud83d\ude00 escaped"`, `"\uD83D\uDE00"`,
	`"\ud83d"`, `"lone \udc00 low"`, `"cut \ud83d"`, `"\ud83d\ud83d\ude00"`, "\"\u2028\u2029\ufeff\"", "\"\ufffd\"", "\"\x7f\"",
}

// literal is a random string literal.
func (g *generator) literal() string {
	if g.chance(40) {
		return quote(strings.Repeat(pick(g.rng, []string{"x", "long ", "é", "\"\\", "😀\n"}), 100+g.rng.IntN(1500)))
	}
	if g.chance(3) {
		return quote(fmt.Sprintf("id-%d", g.rng.IntN(1000)))
	}
	return pick(g.rng, literalPool)
}

func (g *generator) integer(n *node) string {
	low, high := "-9223372036854775808", "9223372036854775807"
	if b, ok := bounds[n.format]; ok {
		low, high = b[0], b[1]
	}
	if n.minimum != nil {
		low = n.minimum.Num().String()
	}
	if n.maximum != nil {
		high = n.maximum.Num().String()
	}
	small := fmt.Sprint(1 + g.rng.IntN(100))
	options := []string{low, high, small, small, small, "1.0", "1e1", "20E-1", "9007199254740993"}
	if n.minimum == nil || n.minimum.Sign() <= 0 {
		options = append(options, "0", "-0", "0.0")
	}
	if low[0] == '-' {
		options = append(options, "-1", "-7")
	}
	for {
		text := pick(g.rng, options)
		r := reader{s: g.s, dev: IntRange}
		if r.number(n, numberValue(text)) == nil {
			return text
		}
	}
}

func (g *generator) double(n *node) string {
	for {
		text := pick(g.rng, []string{
			"0", "1", "-1", "0.5", "1.50", "1e3", "2.5E-3", "-0.0", "0.1", "1e-400", "1.7976931348623157e308", "5e-324",
			"123456789.123456789", "9007199254740993", fmt.Sprint(g.rng.Float64()), fmt.Sprint(g.rng.NormFloat64() * 1e6),
		})
		r := reader{s: g.s}
		if r.number(n, numberValue(text)) == nil {
			return text
		}
	}
}

// raw is any JSON value, with spellings a decoding and encoding reader would lose.
func (g *generator) raw(depth int) *value {
	n := 10
	if depth > 5 {
		n = 7
	}
	switch g.rng.IntN(n) {
	case 0:
		return nullValue()
	case 1:
		return boolValue(g.chance(2))
	case 2, 3:
		return numberValue(pick(g.rng, []string{
			"0", "-0", "1", "1.0", "1.50", "1e3", "1E+3", "-12.340e-05", "1e400", "18446744073709551616", "9223372036854775807",
			"123456789012345678901234567890", "0.1000", "9007199254740993",
		}))
	case 4, 5, 6:
		return &value{kind: kindString, text: g.literal()}
	case 7:
		v := emptyArray()
		for range g.rng.IntN(4) {
			v.items = append(v.items, g.raw(depth+1))
		}
		return v
	default:
		return g.rawObject(depth)
	}
}

func (g *generator) rawObject(depth int) *value {
	o := &making{value: emptyObject(), decided: map[string]bool{}}
	for range g.rng.IntN(4) {
		name := g.key()
		if g.chance(3) {
			name = pick(g.rng, []string{"type", "text", "_meta", "sessionUpdate", "content", "id"})
		}
		if !o.decided[name] {
			o.decided[name] = true
			o.value.members = append(o.value.members, g.member(name, g.raw(depth+1)))
		}
	}
	return o.value
}
