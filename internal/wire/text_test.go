package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

// reading returns decoders over a text of its own, one for each way of reading.
func reading(text string) map[string]*Decoder {
	out := map[string]*Decoder{"copied": {}, "owned": {}}
	out["copied"].Reset([]byte(text), false)
	out["owned"].Reset([]byte(text), true)
	return out
}

// check compares what Finish returns with want: the text of the error, or "".
func check(t *testing.T, d *Decoder, want string) {
	t.Helper()
	got := ""
	if err := d.Finish(); err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("Finish: %q, want %q", got, want)
	}
}

func TestStr(t *testing.T) {
	for _, x := range []struct {
		name, in, want string
		replaced       int
	}{
		{"empty", `""`, "", 0},
		{"plain", `"plain"`, "plain", 0},
		{"short escapes", `"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t", 0},
		{"unicode escapes", `"\u0041\u00e9\u20AC\u0000\u001F"`, "Aé€\x00\x1f", 0},
		{"escaped delete and separators", `"\u007f\u2028\u2029"`, "\x7f\u2028\u2029", 0},
		{"surrogate pair", `"\ud83d\ude00"`, "😀", 0},
		{"surrogate pair, capitals", `"\uD83D\uDE00"`, "😀", 0},
		{"escaped backslash before u", `"\\u0041"`, `\u0041`, 0},
		{"escaped replacement character", `"\ufffd"`, "\uFFFD", 0},
		{"UTF-8 of 2, 3 and 4 bytes", `"é€😀"`, "é€😀", 0},
		{"replacement character as such", "\"\uFFFD\"", "\uFFFD", 0},
		{"delete as such", "\"\x7f\"", "\x7f", 0},
		// JavaScript peers cut streamed text between the halves of a pair.
		{"lone high surrogate", `"\ud83d"`, "\uFFFD", 1},
		{"lone low surrogate", `"\ude00"`, "\uFFFD", 1},
		{"lone surrogate before text", `"\ud83dabc"`, "\uFFFDabc", 1},
		{"high surrogate before another escape", `"\ud83d\n"`, "\uFFFD\n", 1},
		{"high surrogate before a plain unicode escape", `"\ud83d\u0041"`, "\uFFFDA", 1},
		{"high surrogate before a pair", `"\ud83d\ud83d\ude00"`, "\uFFFD😀", 1},
		{"surrogates the wrong way round", `"\ude00\ud83d"`, "\uFFFD\uFFFD", 2},
		{"stray continuation byte", "\"a\x80b\"", "a\uFFFDb", 1},
		{"cut UTF-8", "\"\xe2\x82\"", "\uFFFD\uFFFD", 2},
		{"surrogate in UTF-8", "\"\xed\xa0\xbd\"", "\uFFFD\uFFFD\uFFFD", 3},
		{"overlong UTF-8", "\"\xc0\xaf\"", "\uFFFD\uFFFD", 2},
		{"bytes that never occur", "\"\xfe\xff\"", "\uFFFD\uFFFD", 2},
		{"invalid UTF-8 beside escapes", "\"\x80\\n\xff\\ud800\"", "\uFFFD\n\uFFFD\uFFFD", 3},
	} {
		t.Run(x.name, func(t *testing.T) {
			// Plain text around it moves the case through every lane of the
			// word-wise scanners, and beyond the length that is aliased.
			for _, n := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 31, 32, 33, 63, 64, 100, 2000} {
				pad := strings.Repeat("p", n)
				in := ` "` + pad + x.in[1:len(x.in)-1] + pad + `" `
				want := pad + x.want + pad
				for how, d := range reading(in) {
					if got := d.Str(); got != want {
						t.Fatalf("%s, %d bytes around: %q, want %q", how, n, got, want)
					}
					if d.Replaced() != x.replaced {
						t.Fatalf("%s: %d replaced, want %d", how, d.Replaced(), x.replaced)
					}
					check(t, d, "")
				}
				d := reading(in)["owned"]
				if got := d.Bytes(); string(got) != want || d.Replaced() != x.replaced {
					t.Fatalf("Bytes: %q with %d replaced", got, d.Replaced())
				}
				check(t, d, "")
				d = reading(in)["owned"]
				if got := d.ID(); got != want {
					t.Fatalf("ID: %q", got)
				}
				check(t, d, "")
			}
		})
	}
}

// TestMalformedStrings: all that reads or skips a string says no (S5).
func TestMalformedStrings(t *testing.T) {
	bad := []string{`"`, `"abc`, `"\`, `"\"`, `"\x"`, `"\u"`, `"\u12"`, `"\u123"`, `"\u123g"`, `"\U0041"`,
		`"\ud83d\u"`, `"\ud83d\u12`, `"\ud83d\u12zz"`, `"\ud83d\x"`, `"\ud83d\`, `"\u00`, `"\'"`, "\"\\\n\"", `"\ud83d`}
	for c := range 0x20 {
		bad = append(bad, fmt.Sprintf("\"%c\"", c), fmt.Sprintf(`"\t%c"`, c))
	}
	verbs := map[string]func(*Decoder){
		"Str":   func(d *Decoder) { d.Str() },
		"Bytes": func(d *Decoder) { d.Bytes() },
		"ID":    func(d *Decoder) { d.ID() },
		"Skip":  (*Decoder).Skip,
		"Raw":   func(d *Decoder) { d.Raw() },
		"Tag":   func(d *Decoder) { d.Tag("") },
	}
	for _, b := range bad {
		for n := range 34 {
			in := `"` + strings.Repeat("p", n) + b[1:]
			for name, verb := range verbs {
				for how, d := range reading(in) {
					verb(d)
					err, ok := d.Finish().(*SyntaxError)
					if !ok || err.Reason != "malformed string" {
						t.Fatalf("%s, %s: %q is accepted: %v", name, how, in, d.Finish())
					}
					if d.SyntaxErr() != error(err) {
						t.Fatalf("SyntaxErr: %v", d.SyntaxErr())
					}
				}
			}
			// As a key, and as a discriminator that comes first and last.
			for _, doc := range []string{`{` + in + `:1}`, `{"type":` + in + `}`, `{"x":1,"type":` + in + `}`} {
				d := reading(doc)["copied"]
				d.Open("type")
				d.Skip()
				if _, ok := d.Finish().(*SyntaxError); !ok {
					t.Fatalf("%q is accepted", doc)
				}
			}
		}
	}
}

func TestStrWrongKind(t *testing.T) {
	for _, in := range []string{`1`, `null`, `true`, `{"a":"b"}`, `["a"]`} {
		for _, verb := range []func(*Decoder) string{(*Decoder).Str, (*Decoder).ID, func(d *Decoder) string { return string(d.Bytes()) }} {
			for _, d := range reading(in) {
				if got := verb(d); got != "" {
					t.Errorf("%s: %q", in, got)
				}
				check(t, d, "expected a string")
			}
		}
	}
}

// within reports whether s lies in b.
func within(s string, b []byte) bool {
	if s == "" {
		return false
	}
	p, start := uintptr(unsafe.Pointer(unsafe.StringData(s))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return p >= start && p < start+uintptr(len(b))
}

// TestOwnership: values own their memory, except that long ones take over an
// input that was given away.
func TestOwnership(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 100)
	text := fmt.Sprintf(`{"short":"abc","long":%q,"escaped":"\n%s\"%s\u00e9","raw":{"a":%q,"b":"\n"},"id":"session-1","more":%q,"bad":"%s`+"\xff"+`"}`,
		long, long, long, long, long, long)
	type values struct {
		Short, Long, Escaped, ID, Bad string
		Raw, Unknown                  json.RawMessage
		Map                           map[string]string
	}
	read := func(d *Decoder) (v values) {
		for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
			switch string(k) {
			case "short":
				v.Short = d.Str()
			case "long":
				v.Long = d.Str()
			case "escaped":
				v.Escaped = d.Str()
			case "raw":
				v.Raw = d.RawCopy()
			case "id":
				v.ID = d.ID()
			case "bad":
				v.Bad = d.Str()
			default:
				d.Keep(&v.Unknown)
			}
		}
		return v
	}
	want := values{
		Short: "abc", Long: long, Escaped: "\n" + long + `"` + long + "é", ID: "session-1", Bad: long + "\uFFFD",
		Raw:     json.RawMessage(fmt.Sprintf(`{"a":%q,"b":"\n"}`, long)),
		Unknown: json.RawMessage(fmt.Sprintf(`{"more":%q}`, long)),
	}

	frame := []byte(text)
	var d Decoder
	d.Reset(frame, false)
	got := read(&d)
	check(t, &d, "")
	if string(frame) != text {
		t.Error("decoding changed an input that it does not own")
	}
	for i := range frame {
		frame[i] = 'X' // as a pool does
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the values alias the input:\n%s", diff)
	}

	frame = []byte(text)
	d.Reset(frame, true)
	got = read(&d)
	check(t, &d, "")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("owned:\n%s", diff)
	}
	for name, s := range map[string]string{"long": got.Long, "escaped": got.Escaped, "raw": unsafe.String(&got.Raw[0], len(got.Raw))} {
		if !within(s, frame) {
			t.Errorf("%s was copied, though the input was given away", name)
		}
	}
	for name, s := range map[string]string{"short": got.Short, "id": got.ID, "bad": got.Bad} {
		if within(s, frame) {
			t.Errorf("%s keeps the whole input alive", name)
		}
	}
	got.Raw = append(got.Raw, "overwritten?"...)
	if got.ID != "session-1" || !bytes.Contains(frame, []byte("session-1")) {
		t.Error("appending to a raw value reached its neighbours")
	}
}

// TestStrLengths holds the border between copied and aliased strings, with and
// without escapes.
func TestStrLengths(t *testing.T) {
	for _, n := range []int{aliasMin - 2, aliasMin - 1, aliasMin, aliasMin + 1} {
		for _, esc := range []string{"", `\n`, `\u0041`} {
			plain := map[string]string{"": "", `\n`: "\n", `\u0041`: "A"}[esc]
			body := strings.Repeat("x", n-len(plain))
			frame := []byte(`["` + esc + body + `","` + body + esc + `"]`)
			var d Decoder
			d.Reset(frame, true)
			got := Slice(&d, String[string])
			check(t, &d, "")
			if diff := cmp.Diff([]string{plain + body, body + plain}, got); diff != "" {
				t.Fatal(diff)
			}
			for _, s := range got {
				if within(s, frame) != (n >= aliasMin) {
					t.Errorf("a string of %d bytes aliases the input: %t", n, within(s, frame))
				}
			}
		}
	}
}

// randomString mixes plain runs, everything that needs an escape, long UTF-8
// and invalid bytes.
func randomString(r *rand.Rand, invalid bool) string {
	var b strings.Builder
	for range r.IntN(12) {
		switch r.IntN(8) {
		case 0:
			b.WriteByte(byte(r.IntN(0x20)))
		case 1:
			b.WriteString([]string{`"`, `\`, `/`, "<", "&", "\x7f", `""`, `\\\`}[r.IntN(8)])
		case 2:
			b.WriteRune(rune(0x80 + r.IntN(0x700)))
		case 3:
			b.WriteRune(rune(0x10000 + r.IntN(0xfffff)))
		case 4:
			if invalid {
				b.WriteByte(byte(0x80 + r.IntN(0x80)))
			}
		default:
			b.WriteString(strings.Repeat(string(rune('a'+r.IntN(26))), r.IntN(40)))
		}
	}
	return b.String()
}

// each replaces every invalid byte by U+FFFD.
func each(s string) string { return string([]rune(s)) }

func TestAppendString(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	inputs := []string{"", "a", "1234567", "12345678", "\x00", "\x1f\x7f", `"`, `\`, "\n\r\t\b\f", "<b>&amp;</b>", "\u2028\u2029", "\xff",
		"abcdefgh\xff", strings.Repeat("\x01", 100), strings.Repeat(`"`, 100), strings.Repeat("plain ", 1000) + "\n", strings.Repeat("é", 77)}
	for range 4000 {
		inputs = append(inputs, randomString(r, r.IntN(4) == 0))
	}
	for _, s := range inputs {
		// The room there is decides which path is taken; what is there stays.
		for _, room := range []int{0, 1, r.IntN(64), len(s) + 2, len(s) + 40} {
			dst := append(make([]byte, 0, 4+room), "pre:"...)
			got := string(AppendString(dst, s))
			text, ok := strings.CutPrefix(got, "pre:")
			if !ok {
				t.Fatalf("%q: what was there before is lost: %q", s, got)
			}
			var back string
			if err := json.Unmarshal([]byte(text), &back); err != nil || back != each(s) {
				t.Fatalf("%q became %s, which reads as %q, %v", s, text, back, err)
			}
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\n\r") {
				t.Fatalf("%q became %q", s, text)
			}
			// encoding/json escapes these two even when asked not to think of HTML.
			if utf8.ValidString(s) && !strings.ContainsAny(s, "\u2028\u2029") {
				var want bytes.Buffer
				enc := json.NewEncoder(&want)
				enc.SetEscapeHTML(false)
				if err := enc.Encode(s); err != nil {
					t.Fatal(err)
				}
				if text+"\n" != want.String() {
					t.Fatalf("%q became %s, want %s", s, text, want.String())
				}
			}
		}
	}
}

func TestInterner(t *testing.T) {
	var in Interner
	read := func(id string) string {
		d := Decoder{In: &in}
		d.Reset([]byte(`"`+id+`"`), false)
		s := d.ID()
		check(t, &d, "")
		return s
	}
	shared := func(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }
	a, b := read("session-1"), read("session-1")
	if a != "session-1" || b != "session-1" || !shared(a, b) {
		t.Errorf("%q and %q are not one string", a, b)
	}
	edge := strings.Repeat("x", internMax)
	if !shared(read(edge), read(edge)) {
		t.Error("the longest id is not shared")
	}
	if shared(read(edge+"x"), read(edge+"x")) {
		t.Error("a string longer than an id is remembered")
	}
	if read("") != "" {
		t.Error("the empty string")
	}
	// More ids than the interner has room for: never the wrong one.
	for i := range 2000 {
		if id := fmt.Sprint("id-", i%700); read(id) != id {
			t.Fatalf("%q for %q", read(id), id)
		}
	}
	var none Decoder
	none.Reset([]byte(`"x"`), false)
	if got := none.ID(); got != "x" {
		t.Errorf("without an interner: %q", got)
	}
}
