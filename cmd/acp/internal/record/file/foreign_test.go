package file

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/trace"
)

// shown reads a file and returns its records in short: part, hop, time, direction and content.
func shown(t *testing.T, name, text string, together bool) (got []string, told string) {
	t.Helper()
	c, out := write(t, text)
	opener := Open
	if together {
		opener = OpenTogether
	}
	f, err := opener(t.Context(), c, name)
	if err != nil {
		t.Fatal(err)
	}
	for {
		rec, err := f.Record()
		if err == io.EOF {
			f.Close()
			return got, out.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if rec.Hop != f.Hop() {
			t.Errorf("the record is of %v, the file of %v", rec.Hop, f.Hop())
		}
		hop := ""
		if rec.Hop != (trace.Hop{}) {
			hop = rec.Hop.Client + "/" + rec.Hop.Agent + " "
		}
		what := string(rec.Data)
		if rec.Kind == trace.Event {
			what = rec.Name + " " + rec.Detail.Text
		}
		if rec.Kind == trace.Text {
			what = "text " + what
		}
		if rec.Size > int64(len(rec.Data)) {
			what += fmt.Sprintf(" of %d", rec.Size)
		}
		got = append(got, fmt.Sprintf("%d %s%v%c%s", f.Part(), hop, rec.At, max(rec.Dir, ' '), what))
	}
}

const (
	hello  = `{"jsonrpc":"2.0","id":0,"method":"initialize"}`
	hi     = `{"jsonrpc":"2.0","id":0,"result":{}}`
	asked  = `{"jsonrpc":"2.0","id":0,"method":"session/request_permission"}`
	mine   = `{"jsonrpc":"2.0","method":"_mine"}`
	steers = `{"jsonrpc":"2.0","id":7,"method":"_session/steering"}`
)

// TestDirected: lines that say who sent a frame, and when.
func TestDirected(t *testing.T) {
	quoted := func(s string) string { return strings.ReplaceAll(s, `"`, `\"`) }
	for _, c := range []struct {
		name string
		in   []string
		want []string
	}{
		{"the log of a transport", []string{
			"2026-01-02T15:04:05.000001Z -> " + hello,
			"2026-01-02T15:04:05.000003Z <- " + hi,
			"2026-01-02T15:04:05.000004Z <- loading",
			"2026-01-02T15:04:05.000005Z -> " + mine,
			`2026-01-02T15:04:06.000001Z <- {"jsonrpc":"2.0","method":"x"… (99999 bytes)`,
		}, []string{"1 0s>" + hello, "1 2µs<" + hi, "1 3µs<text loading", "1 4µs>" + mine,
			`1 1s<text {"jsonrpc":"2.0","method":"x"… (99999 bytes) of 99999`}},
		{"that of an agent", []string{"<- " + hello, "-> " + hi, "-> " + mine, "<- " + mine},
			[]string{"1 1ms>" + hello, "1 2ms<" + hi, "1 3ms<" + mine, "1 4ms>" + mine}},
		{"arrows", []string{"→ " + hello, "← " + hi, "> " + mine, "[<<] " + mine, "recv: " + mine},
			[]string{"1 1ms>" + hello, "1 2ms<" + hi, "1 3ms>" + mine, "1 4ms<" + mine, "1 5ms<" + mine}},
		{"text that begins with such a word", []string{hello, "in progress", "> quoted", "<- "},
			[]string{"1 1ms>" + hello, "1 2ms<text in progress", "1 3ms<text > quoted", "1 4ms<text <-"}},
		{"objects", []string{
			`{"direction":"outgoing","timestamp":"2026-01-02T15:04:05Z","message":` + hello + `}`,
			`{"time":"2026-01-02T15:04:07+00:00","dir":"incoming","data":"` + quoted(hi) + `"}`,
			`{"dir":"in","msg":"loading"}`,
			`{"dir":"sideways","msg":` + asked + `}`,
			`{"dir":"client","msg":` + mine + `}`,
		}, []string{"1 0s>" + hello, "1 2s<" + hi, "1 2.001s<text loading", "1 2.002s<" + asked, "1 2.003s>" + mine}},
		{"without", []string{hello, hi, steers, `{"jsonrpc":"2.0","id":7,"result":{"outcome":"injected"}}`},
			[]string{"1 1ms>" + hello, "1 2ms<" + hi, "1 3ms>" + steers, `1 4ms<{"jsonrpc":"2.0","id":7,"result":{"outcome":"injected"}}`}},
		{"a clock that goes back", []string{"2026-01-02T15:04:05Z -> " + hello, "2026-01-02T15:04:04Z <- " + hi},
			[]string{"1 0s>" + hello, "1 0s<" + hi}},
	} {
		got, told := shown(t, "f", strings.Join(c.in, "\n"), false)
		if d := cmp.Diff(c.want, got); d != "" || told != "" {
			t.Errorf("%s: %s%s", c.name, d, told)
		}
	}
}

// TestNoRecording: what begins as nothing that is known, and what is said of it.
func TestNoRecording(t *testing.T) {
	for _, text := range []string{"hello\n", "{}\n", "[]", `{"type":"request"}`, `{"ts":1,"type":"x","from":"a"}`, "-> hello", "> {}", "\x00\xff", "\n\n",
		`{"dir":"in"}`, `{"t":1,"d":">","f":{}}`, strings.Repeat("x", 2*recognizeIn)} {
		c, _ := write(t, text)
		_, err := Open(t.Context(), c, "f")
		if !errors.Is(err, trace.ErrNotTrace) || !strings.HasPrefix(err.Error(), "f: not a trace: it begins with ") || !strings.HasSuffix(err.Error(), expected) {
			t.Errorf("%q: %v", text[:min(len(text), 20)], err)
		}
		if len(err.Error()) > 400 {
			t.Errorf("a long error: %v", err)
		}
	}
}

func compress(t testing.TB, text string) string {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write([]byte(text))
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestCompressed: everything may be compressed. What was cut off is read up to there.
func TestCompressed(t *testing.T) {
	want := []string{"1 1ns>" + `{"a":1}`}
	for name, text := range map[string]string{"f": compress(t, head+frame), "-": compress(t, head) + compress(t, frame)} {
		got, told := shown(t, name, text, false)
		if d := cmp.Diff(want, got); d != "" || told != "" {
			t.Errorf("%s: %s%s", name, d, told)
		}
	}
	if got, told := shown(t, "f", compress(t, hello+"\n"+hi), false); len(got) != 2 || told != "" {
		t.Error(got, told)
	}
	var long strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&long, `{"t":%d,"d":">","f":{"a":%d}}`+"\n", i, i*i)
	}
	whole := compress(t, head+long.String())
	if got, told := shown(t, "f", whole[:len(whole)-5], false); len(got) != 20000 || told != "acp: f: the compressed file was cut off\n" {
		t.Error(len(got), told)
	}
	if got, told := shown(t, "f", whole[:len(whole)/2], false); len(got) == 0 || len(got) > 15000 || !strings.Contains(told, "the compressed file was cut off\n") {
		t.Error(len(got), told)
	}
	for want, text := range map[string]string{
		"begins as a file compressed":         "\x1f\x8bxxxxxxxxxxxxx",
		"it is empty":                         compress(t, ""),
		`not a trace: it begins with "\x1f\b`: compress(t, compress(t, head)),
	} {
		c, _ := write(t, text)
		if _, err := Open(t.Context(), c, "f"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestBomb: a small file does not expand for ever.
func TestBomb(t *testing.T) {
	defer func(n int64) { maxExpanded = n }(maxExpanded)
	maxExpanded = 1 << 20
	c, _ := write(t, compress(t, head+strings.Repeat(frame, 1<<20/len(frame)+1)))
	f, err := Open(t.Context(), c, "f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := read(f); n == 0 || err == nil || !strings.HasSuffix(err.Error(), "it expands to more than 1 MiB") {
		t.Error(n, err)
	}
}

// conducted is what a conductor records of a client, two proxies and an agent.
const conducted = `{"type":"request","ts":0.5,"protocol":"acp","from":"Client","to":"Proxy(0)","id":"a","method":"proxy/initialize","params":{"protocolVersion":1}}
{"type":"request","ts":0.75,"protocol":"acp","from":"Proxy(0)","to":"Agent","id":"b","method":"initialize","params":{"protocolVersion":1.0}}

{"type":"response","ts":1,"from":"Agent","to":"Proxy(0)","id":"b","is_error":false,"payload":{"protocolVersion":1}}
{"type":"response","ts":1.5,"from":"Proxy(0)","to":"Client","id":"a","is_error":true,"payload":{"code":-1,"message":"no"}}
{"type":"a new one","ts":2}
{"type":"request","ts":2,"protocol":"mcp","from":"Agent","to":"Proxy(0)","id":7,"method":"tools/call","params":{"name":"x"}}
{"type":"response","ts":2,"from":"Proxy(0)","to":"Agent","id":7,"is_error":false,"payload":{}}
{"type":"notification","ts":2.5,"protocol":"acp","from":"Proxy(0)","to":"Client","method":"session/update","session":"s","params":null}
`

// TestConductor: the events of a conductor, with a part for each connection, from a file and from what can be read
// only once.
func TestConductor(t *testing.T) {
	want := []string{
		`1 Client/Proxy(0) 500ms>{"jsonrpc":"2.0","id":"a","method":"proxy/initialize","params":{"protocolVersion":1}}`,
		`1 Client/Proxy(0) 1.5s<{"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":"no"}}`,
		`1 Client/Proxy(0) 2.5s<{"jsonrpc":"2.0","method":"session/update"}`,
		`2 Proxy(0)/Agent 750ms>{"jsonrpc":"2.0","id":"b","method":"initialize","params":{"protocolVersion":1.0}}`,
		`2 Proxy(0)/Agent 1s<{"jsonrpc":"2.0","id":"b","result":{"protocolVersion":1}}`,
		`2 Proxy(0)/Agent 2s mcp to Proxy(0): {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}`,
		`2 Proxy(0)/Agent 2s mcp to Agent: {"jsonrpc":"2.0","id":7,"result":{}}`,
	}
	for _, name := range []string{"f", "-"} {
		for _, text := range []string{conducted, compress(t, conducted)} {
			got, told := shown(t, name, text, false)
			if d := cmp.Diff(want, got); d != "" || told != "" {
				t.Errorf("%s: %s%s", name, d, told)
			}
		}
	}
	got, _ := shown(t, "f", conducted, true)
	if len(got) != len(want) || got[1] != "1"+want[3][1:] || got[3] != want[1] {
		t.Errorf("together: %q", got)
	}
}

// TestConductorNames: components have roles by their names, or by what they say.
func TestConductorNames(t *testing.T) {
	say := func(from, to, method string) string {
		return fmt.Sprintf(`{"type":"notification","ts":0,"protocol":"acp","from":%q,"to":%q,"method":%q}`+"\n", from, to, method)
	}
	for _, c := range []struct{ text, want string }{
		{say("Proxy(10)", "Proxy(2)", "session/update"), "1 Proxy(2)/Proxy(10) 0s<"},
		{say("Agent", "Client", "session/cancel"), "1 Client/Agent 0s<"},
		{say("proxy:1", "proxy:0", "x"), "1 proxy:0/proxy:1 0s<"},
		{say("editor", "helper", "session/cancel"), "1 editor/helper 0s>"},
		{say("helper", "editor", "session/update"), "1 editor/helper 0s<"},
	} {
		got, _ := shown(t, "f", c.text, false)
		if len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
			t.Errorf("%s: %q", c.text, got)
		}
	}
}

// TestConductorDamage: events that cannot be messages are damaged lines, in all connections.
func TestConductorDamage(t *testing.T) {
	first, _, _ := strings.Cut(conducted, "\n")
	for _, line := range []string{"{", "[]", `{"type":"request","ts":1,"from":"a","to":"b","id":1}`, `{"type":"request","ts":1,"from":"a","to":"b","method":"m"}`,
		`{"type":"response","ts":1,"from":"a","to":"b","id":1}`, `{"type":"notification","ts":1,"to":"b","method":"m"}`, `{"type":"notification","ts":"1"}`,
		`{"type":"notification","ts":1,"from":"a","to":"` + strings.Repeat("x", 300) + `","method":"m"}`} {
		got, told := shown(t, "f", first+"\n"+line+"\n"+conducted, false)
		if len(got) != 8 || strings.Count(told, "\n") != 1 || !strings.Contains(told, "line 2 (at byte ") {
			t.Errorf("%s: %d records, %q", line, len(got), told)
		}
	}
}

// TestHops: a recording of ours with several connections, some parts without.
func TestHops(t *testing.T) {
	line := func(at int, hop, frame string) string {
		return fmt.Sprintf(`{"t":%d,"d":">",%s"f":%s}`+"\n", at, hop, frame)
	}
	const a, b = `"hop":["c","p"],`, `"hop":["p","a"],`
	text := head + line(1, "", "1") + head + line(1, a, "2") + line(2, b, "3") + `{"t":3,"e":"start","text":"x"}` + "\n" + line(4, a, "4") +
		"damaged\n" + head + line(1, b, "5") + head + line(1, "", "6")
	want := []string{"1 1ns>1", "2 c/p 1ns>2", "2 3ns start x", "2 c/p 4ns>4", "4 1ns>6", "5 p/a 2ns>3", "6 p/a 1ns>5"}
	for _, name := range []string{"f", "-"} {
		got, told := shown(t, name, text, false)
		if d := cmp.Diff(want, got); d != "" || strings.Count(told, "\n") != 1 {
			t.Errorf("%s: %s%s", name, d, told)
		}
	}
}

// TestManyHops: the connections of a chain are bounded, and so is what is kept of standard input.
func TestManyHops(t *testing.T) {
	var text strings.Builder
	text.WriteString(head)
	for i := range 2 * maxHops {
		fmt.Fprintf(&text, `{"t":1,"d":">","hop":["c","%d"],"f":{}}`+"\n", i)
	}
	for _, name := range []string{"f", "-"} {
		if got, told := shown(t, name, text.String(), false); len(got) != maxHops || !strings.Contains(told, "64 records were left out") {
			t.Error(name, len(got), told)
		}
	}
	s := new(spool)
	src := newEvents(nil)
	big := trace.Record{Kind: trace.Frame, Dir: trace.ToAgent, Data: []byte(`"` + strings.Repeat("x", maxSpooled/3) + `"`)}
	n := 0
	for s.add(&big, src) {
		n++
	}
	if n != 2 || s.buf.Len() > maxSpooled {
		t.Errorf("%d records, %d bytes", n, s.buf.Len())
	}
}

// TestHopsOfPipe: what is no regular file is read once.
func TestHopsOfPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	path := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skip(err)
	}
	if _, err := w.WriteString(conducted); err != nil {
		t.Fatal(err)
	}
	w.Close()
	f, err := Open(t.Context(), Console{Dir: filepath.Dir(path), Err: io.Discard}, path)
	if err != nil {
		t.Skip(err) // such files cannot be opened here
	}
	defer f.Close()
	if n, err := read(f); n != 7 || err != io.EOF || f.Part() != 2 {
		t.Error(n, err, f.Part())
	}
}

func FuzzConductor(f *testing.F) {
	f.Add(conducted)
	f.Add(`{"type":"response","ts":-1e300,"from":"Agent","to":"Agent","id":null,"payload":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		e := newEvents(bufio.NewReader(strings.NewReader(text)))
		for range len(text) + 2 {
			rec, err := e.Next()
			var cut *trace.CutError
			if err == io.EOF {
				return
			}
			if errors.As(err, &cut) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if rec.At < 0 || rec.At > 40*365*24*time.Hour || len(rec.Hop.Client) > trace.MaxHopName {
				t.Fatalf("%+v", rec)
			}
			if w, _ := trace.NewWriter(io.Discard, trace.Header{}); w.Write(rec) != nil {
				t.Fatalf("%+v cannot be written", rec)
			}
		}
		t.Fatal("there are more records than bytes")
	})
}

func FuzzCompressed(f *testing.F) {
	f.Add([]byte(compress(f, head+frame)))
	f.Add([]byte(compress(f, conducted))[:60])
	f.Fuzz(func(t *testing.T, data []byte) {
		in, _, err := expand(bufio.NewReader(bytes.NewReader(data)))
		if err != nil {
			return
		}
		r, err := recognize(in)
		for err == nil {
			_, err = r.Next()
			if cut := (*trace.CutError)(nil); errors.As(err, &cut) {
				err = nil
			}
		}
	})
}
