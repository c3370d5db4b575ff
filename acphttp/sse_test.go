package acphttp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// read returns the events of a stream as "id data".
func read(r io.Reader, most int) (events []string, err error) {
	err = readStream(r, most, func(id string, data []byte) error {
		events = append(events, fmt.Sprintf("%s %s", id, data))
		return nil
	})
	return events, err
}

var streams = []struct {
	name, text string
	want       []string
	err        error
}{
	{"one", "data: {\"a\":1}\n\n", []string{` {"a":1}`}, io.EOF},
	{"no space", "data:{}\n\n", []string{" {}"}, io.EOF},
	{"two spaces", "data:  {}\n\n", []string{"  {}"}, io.EOF},
	{"ids", "id: 1\ndata: {}\n\ndata: {}\n\nid: 2\ndata: {}\n\n", []string{"1 {}", "1 {}", "2 {}"}, io.EOF},
	{"an id alone", "id: 7\n\n", []string{"7 "}, io.EOF},
	{"an id with NUL", "id: 7\nid: a\x00b\ndata: {}\n\n", []string{"7 {}"}, io.EOF},
	{"an id that is too long", "id: " + strings.Repeat("x", 1030) + "\ndata: {}\n\n", []string{" {}"}, io.EOF},
	{"CRLF", "data: {}\r\n\r\ndata: {}\r\n\r\n", []string{" {}", " {}"}, io.EOF},
	{"CR", "data: {}\r\rdata: {}\r\r", []string{" {}", " {}"}, io.EOF},
	{"several lines", "data: {\ndata: }\n\n", []string{" {\n}"}, io.EOF},
	{"a mark", "\xef\xbb\xbfdata: {}\n\n", []string{" {}"}, io.EOF},
	{"comments", ":\n\n: x\ndata: {}\n:\n\n", []string{" {}"}, io.EOF},
	{"other fields", "event: x\nretry: 5\ndata\nfoo: bar\ndata: {}\n\n", []string{" \n{}"}, io.EOF},
	{"not an object", "data: 1\n\ndata: []\n\ndata: x\n\ndata:\n\ndata: {}\n\n", []string{" {}"}, io.EOF},
	{"incomplete", "data: {}\n\ndata: {\"a\":", []string{" {}"}, io.EOF},
	{"no blank line", "data: {}\n", nil, io.EOF},
	{"too long a line", "data: {" + strings.Repeat("x", 2000) + "}\n\n", nil, errTooLarge},
	{"too long an event", strings.Repeat("data: {"+strings.Repeat("x", 400)+"}\n", 4) + "\n", nil, errTooLarge},
}

func TestReadStream(t *testing.T) {
	for _, test := range streams {
		for name, r := range map[string]io.Reader{
			"whole":        strings.NewReader(test.text),
			"byte by byte": iotest.OneByteReader(strings.NewReader(test.text)),
			"with the end": iotest.DataErrReader(strings.NewReader(test.text)),
		} {
			got, err := read(r, 1000)
			if !errors.Is(err, test.err) || !cmp.Equal(got, test.want) {
				t.Errorf("%s, %s: %q, %v", test.name, name, got, err)
			}
		}
	}
}

func FuzzReadStream(f *testing.F) {
	for _, s := range streams {
		f.Add([]byte(s.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		whole, err := read(bytes.NewReader(text), 1000)
		pieces, err2 := read(iotest.OneByteReader(bytes.NewReader(text)), 1000)
		if !cmp.Equal(whole, pieces) || !errors.Is(err2, err) {
			t.Errorf("%q %v, byte by byte %q %v", whole, err, pieces, err2)
		}
	})
}

// FuzzEvents: what a server writes is what a client reads, whatever the message.
func FuzzEvents(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0"}`), 3)
	f.Add([]byte("{\n\"a\"\r:1}"), 1)
	f.Fuzz(func(t *testing.T, frame []byte, n int) {
		if _, ok := peek(frame); !ok || frame[0] != '{' {
			return
		}
		log := NewLog(Retention{})
		for range n%50 + 1 {
			_ = log.Append(oneLine(frame))
		}
		var text []byte
		_ = log.Read(0, func(seq uint64, frame []byte) bool {
			text = fmt.Appendf(text, "id: x-%d\ndata: %s\n\n", seq, frame)
			return true
		})
		i := 0
		err := readStream(bytes.NewReader(text), len(frame)+100, func(id string, data []byte) error {
			i++
			if id != fmt.Sprint("x-", i) || !bytes.Equal(data, oneLine(frame)) {
				t.Errorf("%d: %s %q, want %q", i, id, data, frame)
			}
			return nil
		})
		if !errors.Is(err, io.EOF) || i != max(n%50+1, 0) && n > 0 {
			t.Error(i, err)
		}
	})
}

// TestRing: a log keeps what was not taken and, of the rest, at least what it must.
func TestRing(t *testing.T) {
	for _, keep := range []int{0, 1000, 100_000} {
		l := NewLog(Retention{Bytes: keep}).(*ring)
		frame := func(seq uint64) string {
			return fmt.Sprintf(`{"n":%d,"x":"%s"}`, seq, strings.Repeat("x", int(seq*37%900)))
		}
		var all, bytes int
		sizes := map[uint64]int{}
		for seq := uint64(1); seq <= 3000; seq++ {
			if err := l.Append([]byte(frame(seq))); err != nil {
				t.Fatal(err)
			}
			sizes[seq] = len(frame(seq))
			all++
			if seq%7 == 0 {
				l.Taken(seq - 3)
			}
			bytes = 0
			for s := l.first; s < l.next; s++ {
				bytes += sizes[s]
			}
			if bytes != l.bytes {
				t.Fatalf("%d bytes, counted as %d", bytes, l.bytes)
			}
		}
		kept := 0
		next := l.first
		if err := l.Read(l.first-1, func(seq uint64, text []byte) bool {
			if seq != next || string(text) != frame(seq) {
				t.Fatalf("%d: %s", seq, text)
			}
			if seq <= l.taken {
				kept += len(text)
			}
			next++
			return true
		}); err != nil || next != 3001 {
			t.Fatal(next, err)
		}
		if kept < min(keep, 1_000_000) && l.first > 1 || kept > keep+2*chunkMax {
			t.Errorf("%d bytes are kept of %d", kept, keep)
		}
		if l.first > 1 {
			if err := l.Read(l.first-2, func(uint64, []byte) bool { return true }); !errors.Is(err, ErrGap) {
				t.Error(err)
			}
		}
		if err := l.Read(3001, func(uint64, []byte) bool { return true }); !errors.Is(err, ErrGap) {
			t.Error(err)
		}
		l.Taken(3000)
		if keep == 0 && len(l.chunks) > 0 {
			t.Error("what was taken is kept")
		}
	}
}

// TestWindow compares a window with a set.
func TestWindow(t *testing.T) {
	var w window
	for _, n := range []uint64{2, 1, 3, 3, 7, 5, 4, 6} {
		w.add(n)
		if !w.has(n) {
			t.Error(n)
		}
	}
	if w.base != 7 || len(w.seen) > 0 || w.has(8) {
		t.Error(w)
	}
	for n := uint64(9); n < 5000; n++ { // 8 never comes
		w.add(n)
	}
	if len(w.seen) > windowMax || len(w.missed) > windowMax || !w.has(4999) || w.has(5000) || w.has(8) {
		t.Error(len(w.seen), w.base, w.missed)
	}
	if w.add(8); !w.has(8) { // late, and not lost
		t.Error("8 is not there")
	}
	for n := uint64(6000); n < 1<<40; n += 1 << 28 { // mostly gaps
		w.add(n)
	}
	if len(w.seen) > windowMax || len(w.missed) > 2*windowMax {
		t.Error(len(w.seen), len(w.missed))
	}
}

// TestPeek: what a transport reads of messages.
func TestPeek(t *testing.T) {
	deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	for _, test := range []struct {
		text string
		ok   bool
		want head
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":{"sessionId":"no"},"sessionId":"s"}}`, true,
			head{method: "m", id: "1", object: true, session: "s"}},
		{`{"params":{"sessionId":"s"},"method":"m","id":"x"}`, true, head{method: "m", id: `"x"`, object: true, session: "s"}},
		{`{"method":"m","params":{"sessionId":7}}`, true, head{method: "m", object: true}},
		{`{"method":"$/cancel_request","params":{"requestId":7}}`, true, head{method: "$/cancel_request", object: true, cancels: "7"}},
		{`{"id":1,"result":{"sessionId":"s"}}`, true, head{id: "1", object: true, opened: "s", outcome: true}},
		{`{"id":1,"result":null}`, true, head{id: "1", object: true, outcome: true}},
		{`{"id":1,"error":{}}`, true, head{id: "1", object: true, outcome: true, failed: true}},
		{`{"id":null,"error":{}}`, true, head{object: true, outcome: true, failed: true}},
		{`{"method":7}`, true, head{object: true}},
		{`{"id":3,"method":"m","params":` + deep + `}`, true, head{method: "m", id: "3", object: true}},
		{`[]`, true, head{batch: true}},
		{`1`, true, head{}},
		{``, false, head{}},
		{`{`, false, head{object: true}},
		{`{} x`, false, head{object: true}},
	} {
		got, ok := peek([]byte(test.text))
		if ok != test.ok || got != test.want {
			t.Errorf("%.80s: %+v %v", test.text, got, ok)
		}
	}
}
