package trace

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// full is a disk that takes room bytes, then fails.
type full struct {
	bytes.Buffer
	room int
}

func (f *full) Write(b []byte) (int, error) {
	n := min(len(b), f.room)
	f.Buffer.Write(b[:n])
	f.room -= n
	if n < len(b) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// TestFull writes to a disk that is full at any byte and has room again later:
// no line is torn.
func TestFull(t *testing.T) {
	want := write(t, header, talk())
	for room := range len(want) {
		disk := &full{room: room}
		w, err := NewWriter(disk, header)
		told := err != nil
		for _, r := range talk() {
			if err := w.Write(&r); err != nil {
				t.Fatal(err)
			}
			told = w.Flush() != nil || told
		}
		if !told {
			t.Fatalf("room for %d bytes: no error", room)
		}
		disk.room = 1 << 20
		if err := w.Flush(); err != nil || w.Pending() != 0 {
			t.Fatal(err, w.Pending())
		}
		if !bytes.Equal(disk.Bytes(), want) {
			t.Fatalf("room for %d bytes: wrote\n%s", room, disk.Bytes())
		}
	}
}

// TestFullForever holds the bound of what is kept, and that refused records are
// the last ones.
func TestFullForever(t *testing.T) {
	disk := &full{}
	w, _ := NewWriter(disk, header)
	rec := Record{Kind: Text, Dir: ToAgent, Data: bytes.Repeat([]byte("x"), 10_000)}
	taken := 0
	for range 1000 {
		err := w.Write(&rec)
		if err == nil {
			taken++
		} else if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	if w.Pending() > maxBuffer+20_000 || taken == 1000 {
		t.Errorf("kept %d bytes of %d records", w.Pending(), taken)
	}
	disk.room = 1 << 30
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	got, cuts, err := read(t, &disk.Buffer)
	if err != nil || len(cuts) > 0 || len(got) != taken {
		t.Errorf("took %d records, wrote %d, %v %v", taken, len(got), cuts, err)
	}
}

// TestLongTexts cuts what is too long and says how long it was.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("é", MaxText) // an odd byte in front: cut within a character
	tests := []struct {
		name string
		max  int
		rec  Record
		want Record
	}{
		{"text", 0,
			Record{Kind: Text, Dir: ToAgent, Data: []byte("x" + long)},
			Record{Kind: Text, Dir: ToAgent, Data: []byte(("x" + long)[:MaxText-1]), Size: 2*MaxText + 1}},
		{"stderr", 0,
			Record{Kind: Stderr, Data: []byte(long)},
			Record{Kind: Stderr, Data: []byte(long[:MaxText]), Size: 2 * MaxText}},
		{"frame within the limit", 40,
			Record{Kind: Frame, Dir: ToAgent, Data: []byte(`{"a":"` + strings.Repeat("x", 32) + `"}`)},
			Record{Kind: Frame, Dir: ToAgent, Data: []byte(`{"a":"` + strings.Repeat("x", 32) + `"}`), Size: 40}},
		{"frame beyond the limit", 39,
			Record{Kind: Frame, Dir: ToAgent, Data: []byte(`{"a":"` + strings.Repeat("x", 32) + `"}`), Size: 41},
			Record{Kind: Text, Dir: ToAgent, Data: []byte(`{"a":"` + strings.Repeat("x", 32) + `"}`), Size: 41}},
		{"line breaks", 0,
			Record{Kind: Frame, Dir: ToAgent, Data: []byte(" {\n\"a\":\r\n1}\r\n")},
			Record{Kind: Frame, Dir: ToAgent, Data: []byte(`{ "a":  1}`), Size: 10}},
		{"event", 0,
			Record{Kind: Event, Name: "policy", Detail: Detail{Text: long}},
			Record{Kind: Event, Name: "policy", Detail: Detail{Text: long[:MaxText]}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var buf bytes.Buffer
			w, err := NewWriter(&buf, header)
			if err != nil {
				t.Fatal(err)
			}
			w.MaxFrame = tt.max
			if err := errors.Join(w.Write(&tt.rec), w.Flush()); err != nil {
				t.Fatal(err)
			}
			got, cuts, err := read(t, &buf)
			if err != nil || len(cuts) > 0 {
				t.Fatal(cuts, err)
			}
			if diff := cmp.Diff([]Record{tt.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLongHop: long names of components are cut between characters, so that they can be read.
func TestLongHop(t *testing.T) {
	rec := Record{Kind: Frame, Dir: ToAgent, Hop: Hop{Client: "x" + strings.Repeat("é", 200), Agent: "a\xff"}, Data: []byte("{}")}
	r, err := NewReader(bytes.NewReader(write(t, header, []Record{rec})))
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if want := (Hop{Client: "x" + strings.Repeat("é", 127), Agent: "a\ufffd"}); got.Hop != want {
		t.Errorf("%+v, want %+v", got.Hop, want)
	}
}

func TestNoRecord(t *testing.T) {
	var buf bytes.Buffer
	w, err := NewWriter(&buf, header)
	if err != nil {
		t.Fatal(err)
	}
	before := buf.Len()
	for _, r := range []Record{
		{Kind: Frame, Data: []byte("{}")},
		{Kind: Frame, Dir: 'x', Data: []byte("{}")},
		{Kind: Event},
		{Kind: Event, Name: "stderr"},
		{Kind: 9},
	} {
		if err := w.Write(&r); err == nil {
			t.Errorf("wrote %v", r)
		}
	}
	if err := w.Flush(); err != nil || buf.Len() != before {
		t.Error(err, buf.String())
	}
}

// TestAnyRecords writes and reads random records.
func TestAnyRecords(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	bits := []string{`{"a":1}`, "x", "\xff", "é", `"`, "\\", "\x00", "\r", "{", "]", "\u2028", "\U0001F600", "\ufffd"}
	var recs []Record
	for range 3000 {
		r := Record{At: time.Duration(rnd.Int64N(1 << 40)), Data: []byte{}}
		for range rnd.IntN(6) {
			r.Data = append(r.Data, bits[rnd.IntN(len(bits))]...)
		}
		switch rnd.IntN(4) {
		case 0:
			r.Kind, r.Dir = Text, ToAgent
		case 1:
			r.Kind = Stderr
		case 2:
			r.Kind, r.Dir, r.Data = Frame, ToClient, []byte(bits[0])
		case 3:
			r.Kind, r.Name, r.Data = Event, "x"+strings.ToValidUTF8(string(r.Data), ""), nil
		}
		recs = append(recs, r)
	}
	got, cuts, err := read(t, bytes.NewReader(write(t, header, recs)))
	if err != nil || len(cuts) > 0 {
		t.Fatal(cuts, err)
	}
	if diff := cmp.Diff(sized(recs), got); diff != "" {
		t.Error(diff)
	}
}

// FuzzReader reads anything: it never panics, comes to an end, and what it
// returns can be written and read again.
func FuzzReader(f *testing.F) {
	data := write(f, header, talk())
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte(`{"acpTrace":1}` + "\n" + `{"t":1,"e":"x","base64":"eA==","f":1,"d":">"}` + "\n{}\n[\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		recs, cuts, err := read(t, bytes.NewReader(in))
		if n := bytes.Count(in, []byte("\n")) + 1; len(recs)+len(cuts) > n {
			t.Fatalf("%d records and %d errors of %d lines", len(recs), len(cuts), n)
		}
		if err != nil && !errors.Is(err, ErrNotTrace) && !errors.Is(err, ErrVersion) {
			t.Fatal(err)
		}
		var keptRecs []Record
		for _, r := range recs {
			if len(r.Data) <= MaxText && len(r.Detail.Text) <= MaxText {
				if r.Kind == Frame {
					r.Data = bytes.TrimSpace(r.Data)
				}
				keptRecs = append(keptRecs, r)
			}
		}
		again, cuts, err := read(t, bytes.NewReader(write(t, header, keptRecs)))
		if err != nil || len(cuts) > 0 {
			t.Fatal(cuts, err)
		}
		for i := range again {
			// A frame has no size of its own in what is written.
			again[i].Size, keptRecs[i].Size = 0, 0
		}
		if diff := cmp.Diff(keptRecs, again); diff != "" {
			t.Fatal(diff)
		}
	})
}

// drip returns a byte or two per read, and errors with data.
type drip struct {
	in  []byte
	err error
}

func (d *drip) Read(b []byte) (int, error) {
	if len(d.in) == 0 {
		return 0, d.err
	}
	n := copy(b[:min(len(b), 2)], d.in)
	d.in = d.in[n:]
	if len(d.in) == 0 {
		return n, d.err
	}
	return n, nil
}

func TestSlowReader(t *testing.T) {
	broken := errors.New("cable pulled")
	for _, end := range []error{io.EOF, broken} {
		got, cuts, err := read(t, &drip{write(t, header, talk()), end})
		if len(cuts) > 0 || end == broken && !errors.Is(err, broken) || end == io.EOF && err != nil {
			t.Error(cuts, err)
		}
		if diff := cmp.Diff(sized(talk()), got); diff != "" {
			t.Error(diff)
		}
	}
}

func BenchmarkReader(b *testing.B) {
	chunk := Record{At: time.Minute, Kind: Frame, Dir: ToClient, Data: []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + strings.Repeat("word ", 160) + `"}}}}`)}
	recs := make([]Record, 10_000)
	for i := range recs {
		recs[i] = chunk
	}
	data := write(b, header, recs)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := NewReader(bytes.NewReader(data))
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for {
			if _, err := r.Next(); err != nil {
				break
			}
			n++
		}
		if n != len(recs) {
			b.Fatal(n)
		}
	}
}
