package journal

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"testing"
	"time"
)

// TestFormat: the bytes of a line. If they change, so must Format.
func TestFormat(t *testing.T) {
	d := Draft{Kind: KindEnd, At: time.Date(2026, 11, 29, 7, 40, 0, 500_000_000, time.UTC), Data: []byte(`{"stop":"end_turn"}`)}
	kind, body, err := d.body(time.Time{})
	if err != nil || kind != KindEnd {
		t.Fatal(kind, err)
	}
	r := Record{Seq: 7, Epoch: 2, Hash: sum("abc", [sha256.Size]byte{1}, 7, 2, body), Body: body}
	const want = `{"seq":7,"epoch":2,"hash":"77777777","record":{"at":"2026-11-29T07:40:00.5Z","kind":"end","data":{"stop":"end_turn"}}}` + "\n"
	const hash = "9e980662dbaec56abc6d77459b856ab017a71c9548f9ce31ceb4a4dc36090481"
	if got := string(AppendLine(nil, &r)); got != strings.Replace(want, "77777777", hash, 1) {
		t.Errorf("the line is %s", got)
	}
}

// FuzzParseLine: what is parsed as a line is that line, whatever it is; nothing of it is read beyond its end.
func FuzzParseLine(f *testing.F) {
	f.Add([]byte(`{"seq":7,"epoch":2,"hash":"` + strings.Repeat("0a", 32) + `","record":{"at":"2026-11-29T07:40:00.5Z","kind":"end","data":{}}}`))
	f.Add([]byte(`{"seq":9007199254740991,"epoch":4294967295,"hash":"` + strings.Repeat("ff", 32) + `","record":{"kind":"gap","data":{"from":1,"seal":"x"}}}`))
	f.Add([]byte(`{"seq":07,"epoch":2`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := ParseLine(line)
		seq := SeqOf(line)
		for _, piece := range Pieces(line) {
			hashIn(piece)
		}
		if err != nil {
			return
		}
		if r.Seq == 0 || seq != r.Seq {
			t.Errorf("%q has number %d, or %d", line, r.Seq, seq)
		}
		// Only the case of hexadecimal digits may differ.
		if again := AppendLine(nil, &r); !bytes.EqualFold(again, append(line, '\n')) || !bytes.HasSuffix(line, append(r.Body, lineEnd...)) {
			t.Errorf("%q is written as %q", line, again)
		}
		c := newChecker("s")
		c.line(line, func(r *Record) bool {
			if r.From < 1 || r.From > r.Seq || c.damage.Records() == 0 && r.Seq > 1 && !c.damage.Altered {
				t.Errorf("%q became %+v", line, r)
			}
			return true
		})
		c.finish()
		c.end()
	})
}
