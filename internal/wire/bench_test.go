package wire

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestAllocations: what is read or written without keeping anything costs no
// allocation, and a kept string one.
func TestAllocations(t *testing.T) {
	doc := []byte(`{"type":"text","n":-12,"u":65535,"f":1.5,"b":true,"z":null,"id":"session-1","s":"short","esc":"a\nb","list":[1,2,3],"meta":{"a":[{}]}}`)
	long := strings.Repeat("0123456789abcdef", 200)
	longDoc := []byte(`"` + long + `"`)
	var d Decoder
	d.In = new(Interner)
	buf := make([]byte, 0, 64<<10)
	raw := json.RawMessage(`{"a":[1,2],"b":"c"}`)
	walk := func(str func()) func() {
		return func() {
			d.Reset(doc, false)
			d.Open("type")
			for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
				switch string(k) {
				case "n":
					d.Int64()
				case "u":
					d.Uint16()
				case "f":
					d.Float64()
				case "b":
					d.Bool()
				case "z":
					d.Null()
				case "id":
					d.ID()
				case "s":
					str()
				case "esc":
					d.Bytes()
				case "list":
					for ok := d.FirstElem(); ok; ok = d.NextElem() {
						d.Int32()
					}
				default:
					d.Raw()
				}
			}
			if d.err != nil || d.Bad() {
				t.Fatal(d.Finish())
			}
		}
	}
	for _, x := range []struct {
		name string
		want float64
		run  func()
	}{
		{"every verb that keeps nothing", 0, walk(func() { d.Skip() })},
		{"one kept string", 1, walk(func() { sink = d.Str() })},
		{"a long string of an owned input", 0, func() { d.Reset(longDoc, true); sink = d.Str() }},
		{"a long string", 1, func() { d.Reset(longDoc, false); sink = d.Str() }},
		{"tag in another place", 0, func() {
			d.Reset(doc, false)
			if string(d.Open("s")) != "short" {
				t.Fatal("not found")
			}
		}},
		{"Skip", 0, func() { d.Reset(doc, false); d.Skip() }},
		{"Valid", 0, func() {
			if Valid(doc) != nil {
				t.Fatal("not valid")
			}
		}},
		{"lenient field", 0, func() { d.Reset(doc, false); was := d.Try(); d.Int64(); d.Failed(was) }},
		{"AppendString", 0, func() { buf = AppendString(buf[:0], long) }},
		{"AppendRaw", 0, func() { buf, _ = AppendRaw(buf[:0], raw) }},
		{"AppendMembers", 0, func() { buf, _ = AppendMembers(buf[:0], raw, "x", "y") }},
	} {
		if got := testing.AllocsPerRun(50, x.run); got > x.want {
			t.Errorf("%s: %v allocations, want %v", x.name, got, x.want)
		}
	}
}

var sink string

// source is code, where escapes come at irregular distances.
func source(b *testing.B) string {
	src, err := os.ReadFile("decode.go")
	if err != nil {
		b.Fatal(err)
	}
	return string(src[:10_000])
}

func BenchmarkStr(b *testing.B) {
	for name, body := range map[string]string{
		"short": "hello, world", "ascii-4k": strings.Repeat("plain text. ", 341), "escaped-4k": strings.Repeat(`line of code;\n\t`, 256),
		"unicode-4k": strings.Repeat(`\u4e2d\u6587, \ud83d\ude00 `, 140),
		"utf8-4k":    strings.Repeat("déjà vu — ", 300),
		"code-10k":   strings.Trim(string(AppendString(nil, source(b))), `"`),
	} {
		data := []byte(`"` + body + `"`)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			var d Decoder
			for b.Loop() {
				d.Reset(data, false)
				sink = d.Str()
			}
		})
	}
}

func BenchmarkSkip(b *testing.B) {
	data := bytes.Repeat([]byte(`{"type":"content","content":{"type":"text","text":"some text of a message"},"n":[1,2,3.5,true,null]},`), 40)
	data = append(append([]byte{'['}, data[:len(data)-1]...), ']')
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	var d Decoder
	for b.Loop() {
		d.Reset(data, false)
		d.Skip()
	}
	if d.err != nil {
		b.Fatal(d.err)
	}
}

func BenchmarkOpen(b *testing.B) {
	for name, doc := range map[string]string{
		"first": `{"type":"text","text":"some text of a message","n":1}`,
		"last":  `{"text":"some text of a message","n":1,"type":"text"}`,
	} {
		b.Run(name, func(b *testing.B) {
			var d Decoder
			for b.Loop() {
				d.Reset([]byte(doc), false)
				if len(d.Open("type")) != 4 {
					b.Fatal("no tag")
				}
			}
		})
	}
}

func BenchmarkAppendString(b *testing.B) {
	for name, s := range map[string]string{
		"short": "hello, world", "ascii-4k": strings.Repeat("plain text. ", 341), "escaped-4k": strings.Repeat("line of code;\n\t", 273),
		"utf8-4k": strings.Repeat("déjà vu — ", 300), "code-10k": source(b),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				buf = AppendString(buf[:0], s)
			}
		})
	}
}

func BenchmarkAppendRaw(b *testing.B) {
	raw := []byte(`{"command":"go test ./...","timeout":120,"env":{"A":"b"},"args":["x","y",1.5,true]}`)
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		var err error
		if buf, err = AppendRaw(buf[:0], raw); err != nil {
			b.Fatal(err)
		}
	}
}
