package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRecorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var buf, tee bytes.Buffer
		r := NewRecorder(&buf, RecorderOptions{
			Header: Header{Tool: "test", Command: []string{"agent", "--api-key", "abc"}}, Redactor: new(Redactor),
			Tee: func(rec *Record) { fmt.Fprintf(&tee, "%d %s%s\n", rec.At, rec.Data, rec.Detail.Text) },
		})
		data := []byte(`{"env":[{"name":"A","value":"one"}]}`)
		r.Frame(ToAgent, data)
		copy(data, "changed afterwards")
		time.Sleep(time.Second)
		r.Frame(ToClient, []byte("no JSON"))
		r.Stderr([]byte("API_KEY=12345678"))
		n := 3
		r.Event("exit", Detail{Code: &n, Text: "Bearer 0123456789abc"})
		n = 4
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		r.Frame(ToAgent, []byte("late"))
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		got, cuts, err := read(t, bytes.NewReader(buf.Bytes()))
		if err != nil || len(cuts) > 0 {
			t.Fatal(cuts, err)
		}
		want := sized([]Record{
			{Kind: Frame, Dir: ToAgent, Data: []byte(`{"env":[{"name":"A","value":"«redacted 2»"}]}`)},
			{At: time.Second, Kind: Text, Dir: ToClient, Data: []byte("no JSON")},
			{At: time.Second, Kind: Stderr, Data: []byte("API_KEY=«redacted 3»")},
			{At: time.Second, Kind: Event, Name: "exit", Detail: Detail{Code: code(3), Text: "Bearer «redacted 4»"}},
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		rd, _ := NewReader(bytes.NewReader(buf.Bytes()))
		h := Header{Version: 1, Started: r.Started().Round(0), Tool: "test", Redacted: true, Command: []string{"agent", "--api-key", "«redacted 1»"}}
		if diff := cmp.Diff(h, rd.Header()); diff != "" {
			t.Error(diff)
		}
		wantTee := "0 {\"env\":[{\"name\":\"A\",\"value\":\"«redacted 2»\"}]}\n1000000000 no JSON\n1000000000 API_KEY=«redacted 3»\n1000000000 Bearer «redacted 4»\n"
		if diff := cmp.Diff(wantTee, tee.String()); diff != "" {
			t.Error(diff)
		}
	})
}

// gate is a writer that waits until it is opened.
type gate struct {
	bytes.Buffer
	open chan struct{}
}

func (g *gate) Write(b []byte) (int, error) {
	<-g.open
	return g.Buffer.Write(b)
}

// TestRecorderSlow records more than fits while the writer hangs: nothing waits,
// and what is missing is counted where it is missing.
func TestRecorderSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{open: make(chan struct{})}
		r := NewRecorder(g, RecorderOptions{MaxQueued: 10 * (recordCost + 8)})
		synctest.Wait() // it hangs in the header
		for i := range 25 {
			r.Frame(ToAgent, fmt.Appendf(nil, `{"n":%2d}`, i))
		}
		if got, want := r.Lost(), (Lost{Records: 15, Bytes: 120}); got != want {
			t.Errorf("lost %v, want %v", got, want)
		}
		close(g.open)
		synctest.Wait()
		r.Frame(ToAgent, []byte(`{"n":99}`))
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		got, cuts, err := read(t, &g.Buffer)
		if err != nil || len(cuts) > 0 || len(got) != 12 {
			t.Fatal(len(got), cuts, err)
		}
		want := sized([]Record{
			{Kind: Frame, Dir: ToAgent, Data: []byte(`{"n": 9}`)},
			{Kind: Event, Name: "lost", Detail: Detail{Count: 15, Text: "120 bytes"}},
			{Kind: Frame, Dir: ToAgent, Data: []byte(`{"n":99}`)},
		})
		if diff := cmp.Diff(want, got[9:]); diff != "" {
			t.Error(diff)
		}
	})
}

// TestRecorderHangs closes a recorder whose writer never returns.
func TestRecorderHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{open: make(chan struct{})}
		r := NewRecorder(g, RecorderOptions{CloseWithin: time.Second})
		r.Frame(ToAgent, []byte("{}"))
		begin := time.Now()
		if err := r.Close(); !errors.Is(err, ErrUnfinished) {
			t.Error(err)
		}
		if d := time.Since(begin); d != time.Second {
			t.Errorf("took %v", d)
		}
		close(g.open)
		synctest.Wait()
	})
}

// room is a disk that can be made larger while it is used.
type room struct {
	mu sync.Mutex
	full
}

func (r *room) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.full.Write(b)
}

func (r *room) grow(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.full.room += n
}

// TestRecorderFull lets the disk be full for a while: nothing is lost and no line
// is torn.
func TestRecorderFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &room{full: full{room: 100}}
		r := NewRecorder(disk, RecorderOptions{})
		for i := range 2000 {
			r.Frame(ToAgent, fmt.Appendf(nil, `{"n":%d,"text":%q}`, i, strings.Repeat("x", 100)))
		}
		// It becomes larger bit by bit, so that it is full within what is just written.
		for range 20 {
			time.Sleep(time.Minute)
			if err := r.Err(); !errors.Is(err, syscall.ENOSPC) {
				t.Error(err)
			}
			disk.grow(10_000)
		}
		disk.grow(1 << 20)
		time.Sleep(time.Minute)
		if err := r.Err(); err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		got, cuts, err := read(t, &disk.Buffer)
		if err != nil || len(cuts) > 0 || len(got) != 2000 || r.Lost() != (Lost{}) {
			t.Fatal(len(got), cuts, err, r.Lost())
		}
		for i := range got {
			if !bytes.HasPrefix(got[i].Data, fmt.Appendf(nil, `{"n":%d,`, i)) {
				t.Fatalf("%d is %s", i, got[i].Data)
			}
		}
	})
}

// TestRecorderFullForever ends with the error of the disk.
func TestRecorderFullForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecorder(&full{room: 10}, RecorderOptions{MaxQueued: 1000})
		for range 100 {
			r.Frame(ToAgent, []byte("{}"))
		}
		if err := r.Close(); !errors.Is(err, syscall.ENOSPC) {
			t.Error(err)
		}
		if r.Lost().Records == 0 {
			t.Error("nothing lost")
		}
	})
}

// TestRecorderLarge keeps the beginning of a frame that is too large.
func TestRecorderLarge(t *testing.T) {
	var buf bytes.Buffer
	r := NewRecorder(&buf, RecorderOptions{MaxFrame: 1 << 20})
	r.Frame(ToAgent, []byte(`"`+strings.Repeat("x", 1<<20)+`"`))
	r.Frame(ToAgent, []byte(`"`+strings.Repeat("y", 1<<20-2)+`"`))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	got, _, err := read(t, &buf)
	if err != nil || len(got) != 2 || got[0].Kind != Text || got[0].Size != 1<<20+2 || len(got[0].Data) != MaxText ||
		got[1].Kind != Frame || len(got[1].Data) != 1<<20 {
		t.Errorf("%d records, %v", len(got), err)
	}
}

// TestRecorderCut holds that neither a character nor a secret is cut in two where a text is, that little of
// a long one is held back, and that frames may be few bytes long.
func TestRecorderCut(t *testing.T) {
	var buf bytes.Buffer
	r := NewRecorder(&buf, RecorderOptions{MaxFrame: 10, MaxQueued: MaxText * 2, Redactor: new(Redactor)})
	r.Frame(ToAgent, []byte(`"`+strings.Repeat("é", 1<<20)+`"`))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	want := []Record{{Kind: Text, Dir: ToAgent, Size: 2<<20 + 2, Data: []byte(`"` + strings.Repeat("é", MaxText/2-1))}}
	got, _, err := read(t, &buf)
	if diff := cmp.Diff(want, untimed(got)); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}

	buf.Reset()
	r = NewRecorder(&buf, RecorderOptions{MaxFrame: 10, Redactor: new(Redactor)})
	const secret = "sk-ant-0123456789abcdef"
	r.Frame(ToAgent, []byte(`"`+strings.Repeat("x", MaxText-10)+" "+secret+strings.Repeat(" x", 1<<20)))
	r.Frame(ToClient, []byte(`"a longer one"`))
	r.Frame(ToClient, []byte(`"short"`))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(buf.String(), secret[:8]) {
		t.Error("a part of a secret stays")
	}
	got, _, err = read(t, &buf)
	if err != nil || len(got) != 3 || string(got[1].Data) != `"a longer one"` || got[1].Kind != Text || got[2].Kind != Frame {
		t.Errorf("%d records, %v", len(got), err)
	}
}

// untimed returns records without their times.
func untimed(recs []Record) []Record {
	for i := range recs {
		recs[i].At = 0
	}
	return recs
}

// TestRecorderAtOnce records from several goroutines; each one's records stay in
// order.
func TestRecorderAtOnce(t *testing.T) {
	var buf bytes.Buffer
	r := NewRecorder(&buf, RecorderOptions{Redactor: new(Redactor)})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 1000 {
				r.Frame(ToAgent, fmt.Appendf(nil, `{"g":%d,"n":%d}`, g, i))
			}
		})
	}
	wg.Wait()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	got, cuts, err := read(t, &buf)
	if err != nil || len(cuts) > 0 || len(got) != 4000 {
		t.Fatal(len(got), cuts, err)
	}
	var next [4]int
	for _, rec := range got {
		var g, n int
		if _, err := fmt.Sscanf(string(rec.Data), `{"g":%d,"n":%d}`, &g, &n); err != nil || n != next[g] {
			t.Fatalf("%s, want %d: %v", rec.Data, next[g], err)
		}
		next[g]++
	}
}

func BenchmarkRecorderFrame(b *testing.B) {
	frame := []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"}}}}`)
	r := NewRecorder(io.Discard, RecorderOptions{Redactor: new(Redactor)})
	b.ReportAllocs()
	for b.Loop() {
		r.Frame(ToClient, frame)
	}
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
}
