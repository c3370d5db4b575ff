package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var header = Header{
	Started: time.Date(2026, 11, 21, 14, 0, 0, 123456789, time.UTC),
	Tool:    "acp 1.2.3", Command: []string{"agent", "--acp"},
}

func code(n int) *int { return &n }

// talk is a little of everything.
func talk() []Record {
	return []Record{
		{At: 1, Kind: Event, Name: "start", Detail: Detail{PID: 4711, Text: "agent --acp"}},
		{At: 20, Kind: Frame, Dir: ToAgent, Data: []byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)},
		{At: 300, Kind: Frame, Dir: ToClient, Data: []byte(`{"jsonrpc":"2.0","id":0,"result":{"text":"ä \ud800 \u0000 } \" "}}`)},
		{At: 4000, Kind: Text, Dir: ToClient, Data: []byte("Loading \x1b[1mmodel\x1b[0m \"x\" é")},
		{At: 50000, Kind: Text, Dir: ToAgent, Data: []byte("\xff\xfe\x00binary\r")},
		{At: 60000, Kind: Text, Dir: ToAgent, Data: []byte{}},
		{At: 700000, Kind: Stderr, Data: []byte("warning: {}")},
		{At: 7000000, Kind: Event, Name: "lost", Detail: Detail{Count: 3, Text: "300 bytes"}},
		{At: 80000000, Kind: Frame, Dir: ToClient, Data: []byte(`[]`)},
		{At: 80000000, Kind: Frame, Dir: ToClient, Data: []byte(`{"f":{"t":1,"d":">"}}`)},
		{At: 80000000, Kind: Frame, Dir: ToClient, Hop: Hop{Client: "Client", Agent: "Proxy(0)"}, Data: []byte(`{"id":1}`)},
		{At: 80000000, Kind: Text, Dir: ToAgent, Hop: Hop{Client: "ä \"", Agent: ""}, Data: []byte("x")},
		{At: 80000000, Kind: Stderr, Hop: Hop{Agent: "Agent"}, Data: []byte("x")},
		{At: 80000000, Kind: Event, Hop: Hop{Client: "Proxy(0)", Agent: "Agent"}, Name: "mcp", Detail: Detail{Text: "x"}},
		{At: time.Hour * 9000, Kind: Event, Name: "exit", Detail: Detail{Code: code(0)}},
	}
}

func write(t testing.TB, h Header, recs []Record) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := NewWriter(&buf, h)
	if err != nil {
		t.Fatal(err)
	}
	for i := range recs {
		if err := w.Write(&recs[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// keep returns a copy of what a Reader returned, with the size it stands for.
func keep(r *Record) Record {
	out := *r
	out.Data = bytes.Clone(r.Data)
	if r.Data == nil && r.Kind != Event {
		out.Data = []byte{}
	}
	if r.Detail.Code != nil {
		out.Detail.Code = code(*r.Detail.Code)
	}
	return out
}

// read returns what can be read of a trace and the errors on the way.
func read(t testing.TB, in io.Reader) (recs []Record, cuts []*CutError, err error) {
	t.Helper()
	r, err := NewReader(in)
	if err != nil {
		return nil, nil, err
	}
	for {
		rec, err := r.Next()
		var cut *CutError
		switch {
		case errors.As(err, &cut):
			cuts = append(cuts, cut)
		case err == io.EOF:
			return recs, cuts, nil
		case err != nil:
			return recs, cuts, err
		default:
			recs = append(recs, keep(rec))
		}
	}
}

// sized returns recs as they are read.
func sized(recs []Record) []Record {
	var out []Record
	for _, r := range recs {
		if r.Kind != Event {
			r.Size = max(r.Size, int64(len(r.Data)))
		}
		out = append(out, r)
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	data := write(t, header, talk())
	r, err := NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	want := header
	want.Version = Version
	if diff := cmp.Diff(want, r.Header()); diff != "" {
		t.Error(diff)
	}
	got, cuts, err := read(t, bytes.NewReader(data))
	if err != nil || len(cuts) > 0 {
		t.Fatal(cuts, err)
	}
	if diff := cmp.Diff(sized(talk()), got); diff != "" {
		t.Error(diff)
	}
}

// TestCut cuts a trace at each byte: all records whose lines are whole are read,
// and a trace that is written to again has those and the new ones.
func TestCut(t *testing.T) {
	data := write(t, header, talk())
	want := sized(talk())
	dir := t.TempDir()
	for n := range len(data) + 1 {
		cut := data[:n]
		lines := bytes.Count(cut, []byte("\n"))
		whole := max(0, lines-1)
		if n < len(data) && data[n] == '\n' && lines > 0 {
			whole++ // all but the end of the line is there
		}
		got, cuts, err := read(t, bytes.NewReader(cut))
		if errors.Is(err, ErrNotTrace) && lines == 0 {
			continue // not even a header
		}
		if err != nil {
			t.Fatalf("at %d: %v", n, err)
		}
		if diff := cmp.Diff(want[:whole], got); diff != "" && whole+len(got) > 0 {
			t.Fatalf("at %d: %s", n, diff)
		}
		torn := n > 0 && data[n-1] != '\n' && (n == len(data) || data[n] != '\n')
		if (len(cuts) == 1) != torn || len(cuts) > 1 {
			t.Fatalf("at %d: torn is %v, told %v", n, torn, cuts)
		}

		f, err := os.OpenFile(filepath.Join(dir, "trace"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(cut); err != nil {
			t.Fatal(err)
		}
		w, err := Append(f, header)
		if err != nil {
			t.Fatalf("at %d: %v", n, err)
		}
		again := talk()[1]
		if err := errors.Join(w.Write(&again), w.Flush(), f.Close()); err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		got, _, err = read(t, bytes.NewReader(after))
		if err != nil {
			t.Fatalf("at %d: %v", n, err)
		}
		if diff := cmp.Diff(append(want[:whole:whole], want[1]), got); diff != "" {
			t.Fatalf("appended at %d: %s", n, diff)
		}
	}
}

func TestNoTrace(t *testing.T) {
	future := `{"acpTrace":2,"started":"2030-01-01T00:00:00Z","frames":"elsewhere"}` + "\n"
	now := `{"acpTrace":1,"started":"2026-01-01T00:00:00Z"}` + "\n"
	tests := []struct {
		name, in string
		want     error
	}{
		{"empty", "", ErrNotTrace},
		{"text", "hello\nworld\n", ErrNotTrace},
		{"frame", `{"jsonrpc":"2.0","id":1}` + "\n", ErrNotTrace},
		{"noise", "\x00\xff\x01\x7fELF\n\n\n\x89PNG", ErrNotTrace},
		{"endless line", strings.Repeat("x", 3<<20), ErrNotTrace},
		{"version 0", `{"acpTrace":0}` + "\n", nil},
		{"future", future, ErrVersion},
		{"future after the present", now + future, ErrVersion},
		{"spaced", "\ufeff { \"started\": \"x\", \"acpTrace\" : 1 }\r\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := read(t, strings.NewReader(tt.in))
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a line: %v", err)
			}
		})
	}
}

// TestEndlessHeader reads no more of what is no trace than it has to.
func TestEndlessHeader(t *testing.T) {
	in := &endless{}
	if _, err := NewReader(in); !errors.Is(err, ErrNotTrace) {
		t.Fatal(err)
	}
	if in.n > 4<<20 {
		t.Errorf("read %d bytes", in.n)
	}
}

type endless struct{ n int }

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	e.n += len(b)
	return len(b), nil
}

// TestDamage has lines that cannot be read between some that can.
func TestDamage(t *testing.T) {
	first := `{"acpTrace":1,"started":"2026-01-01T00:00:00Z"}` + "\n"
	frame := func(n int) string { return fmt.Sprintf(`{"t":%d,"d":">","f":{"n":%d}}`+"\n", n, n) }
	long := strings.Repeat("y", MaxLine+10)
	tests := []struct{ name, line, reason string }{
		{"cut frame", `{"t":5,"d":">","f":{"a":{"b":1}`, "damaged"},
		{"noise", "\x00\x01\xff", "damaged"},
		{"array", `[1]`, "damaged"},
		{"hop is a word", `{"t":5,"d":">","hop":"a","f":{}}`, "damaged"},
		{"hop with one name", `{"t":5,"d":">","hop":["a"],"f":{}}`, "damaged"},
		{"hop with three", `{"t":5,"d":">","hop":["a","b","c"],"f":{}}`, "damaged"},
		{"hop with numbers", `{"t":5,"d":">","hop":["a",1],"f":{}}`, "damaged"},
		{"hop with a long name", `{"t":5,"d":">","hop":["a","` + strings.Repeat("x", MaxHopName+1) + `"],"f":{}}`, "damaged"},
		{"too long", long, "longer than"},
		{"base64", `{"t":5,"d":">","base64":"!"}`, "base64"},
		{"time", `{"t":"now","d":">","f":{}}`, "t:"},
		{"header", `{"acpTrace":"x"}`, "header"},
		{"huge version", `{"acpTrace":1e99}`, "header"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := first + frame(1) + tt.line + "\n" + frame(2)
			got, cuts, err := read(t, strings.NewReader(in))
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 2 || got[1].At != 2 {
				t.Errorf("read %v", got)
			}
			if len(cuts) != 1 || cuts[0].Line != 3 || cuts[0].Offset != int64(len(first)+len(frame(1))) ||
				!strings.Contains(cuts[0].Error(), tt.reason) {
				t.Errorf("told %v", cuts)
			}
		})
	}
}

// TestOtherWriters reads lines that are not spelled as ours, and leaves out what
// it does not know.
func TestOtherWriters(t *testing.T) {
	in := `{"tool":"other","acpTrace":1,"x":{}}
{ "d" : "<", "f" : { "a" : 1 } , "t" : 7, "more": [1] }` + "\r\n" + `
{"t":8,"e":"pause","code":3,"new":true}
{"t":9,"unknown":"line"}
{"t":10,"d":"?","f":{}}
{"t":-5,"d":">","f":null}
{"t":99999999999999999999,"d":">","f":1}
`
	got, cuts, err := read(t, strings.NewReader(in))
	if err != nil || len(cuts) != 1 {
		t.Fatal(cuts, err)
	}
	want := []Record{
		{At: 7, Kind: Frame, Dir: ToClient, Data: []byte(`{ "a" : 1 }`), Size: 11},
		{At: 8, Kind: Event, Name: "pause", Detail: Detail{Code: code(3)}},
		{Kind: Frame, Dir: ToAgent, Data: []byte("null"), Size: 4},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestParts says which part of a trace a record is in.
func TestParts(t *testing.T) {
	later := header
	later.Started, later.Tool = header.Started.Add(time.Hour), "acp 2"
	data := append(write(t, header, talk()[:2]), write(t, later, talk()[:1])...)
	r, err := NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		if _, err := r.Next(); err != nil {
			break
		}
		got = append(got, fmt.Sprint(r.Part(), " ", r.Header().Tool, " ", r.Line()))
	}
	want := []string{"1 acp 1.2.3 2", "1 acp 1.2.3 3", "2 acp 2 5"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if r.Offset() != int64(len(data)) {
		t.Errorf("read %d of %d bytes", r.Offset(), len(data))
	}
}
