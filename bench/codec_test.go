package main

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/goacp/acp/internal/wire"
)

// TestMessages makes sure that the benchmarks compare the same work: all three
// codecs decode every message and encode what says the same.
func TestMessages(t *testing.T) {
	for _, m := range messages() {
		t.Run(m.name, func(t *testing.T) {
			v := m.ours()
			if err := decodeOurs(new(wire.Decoder), m.text, v); err != nil {
				t.Fatal("ours:", err)
			}
			b, err := v.AppendJSON(nil)
			if err != nil {
				t.Fatal("ours:", err)
			}
			equal(t, "ours", m.text, b)
			for name, v := range map[string]any{"coder": m.coder(), "plain": m.plain()} {
				if err := json.Unmarshal([]byte(m.text), v); err != nil {
					t.Fatal(name, err)
				}
				b, err := json.Marshal(v)
				if err != nil {
					t.Fatal(name, err)
				}
				if name == "plain" && m.name != "initialize" && m.name != "permission" {
					equal(t, name, m.text, b)
				}
				if len(b) < len(m.text)*3/4 {
					t.Errorf("%s lost much of %s:\n%s", name, m.text, b)
				}
			}
		})
	}
}

func equal(t *testing.T, who, want string, got []byte) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(want), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &b); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%s: decoded\n%s\nand encoded\n%s", who, want, got)
	}
}

func decodeOurs(d *wire.Decoder, text string, v generated) error {
	d.Reset([]byte(text), false)
	wire.Decode(v, d)
	return d.Finish()
}

func BenchmarkDecode(b *testing.B) {
	for _, m := range messages() {
		data := []byte(m.text)
		b.Run(m.name+"/ours", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			d := wire.Decoder{In: new(wire.Interner)} // as a connection has them
			for b.Loop() {
				v := m.ours()
				d.Reset(data, false)
				wire.Decode(v, &d)
				if err := d.Finish(); err != nil {
					b.Fatal(err)
				}
			}
		})
		for name, mk := range map[string]func() any{"coder": m.coder, "encoding-json": m.plain} {
			b.Run(m.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(data)))
				for b.Loop() {
					if err := json.Unmarshal(data, mk()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, m := range messages() {
		b.Run(m.name+"/ours", func(b *testing.B) {
			v := m.ours()
			if err := decodeOurs(new(wire.Decoder), m.text, v); err != nil {
				b.Fatal(err)
			}
			var buf []byte
			var err error
			b.ReportAllocs()
			b.SetBytes(int64(len(m.text)))
			for b.Loop() {
				if buf, err = v.AppendJSON(buf[:0]); err != nil {
					b.Fatal(err)
				}
			}
		})
		for name, v := range map[string]any{"coder": m.coder(), "encoding-json": m.plain()} {
			b.Run(m.name+"/"+name, func(b *testing.B) {
				if err := json.NewDecoder(bytes.NewReader([]byte(m.text))).Decode(v); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				b.SetBytes(int64(len(m.text)))
				for b.Loop() {
					if _, err := json.Marshal(v); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
