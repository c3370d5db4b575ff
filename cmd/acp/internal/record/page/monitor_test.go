//go:build unix

package page

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
	"github.com/goacp/acp/conformance"
	"github.com/goacp/acp/trace"
)

// recorded reads a recording of testdata.
func recorded(t *testing.T, name string) (trace.Header, []*trace.Record) {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := trace.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var recs []*trace.Record
	for {
		rec, err := r.Next()
		if err == io.EOF {
			return r.Header(), recs
		}
		if err != nil {
			t.Fatal(err)
		}
		c := *rec
		c.Data = []byte(string(rec.Data))
		recs = append(recs, &c)
	}
}

// TestViolations shows a recording of a peer that breaks rules, checked by the rules of the protocol: what
// is wrong is told at the frames at which it is wrong, and nowhere else.
func TestViolations(t *testing.T) {
	h, recs := recorded(t, "violations.acptrace")
	m := conformance.NewMonitor(conformance.MonitorConfig{})
	rows := map[int64]int64{} // of frames
	var want []string
	places := map[int64]map[string]bool{} // that are to be pointed at, by row
	var marked []int64
	take := func(findings []conformance.Finding) {
		for _, f := range findings {
			seq := rows[f.Frame]
			want = append(want, fmt.Sprintf("%d %s %s %s", seq, f.Rule.Level, f.Rule.ID, f.Path))
			if len(marked) == 0 || marked[len(marked)-1] != seq {
				marked = append(marked, seq)
			}
			if places[seq] == nil {
				places[seq] = map[string]bool{}
			}
			if at := nearest(t, recs[seq-1].Data, f.Path); at != "" {
				places[seq][at] = true
			}
		}
	}
	frames := int64(0)
	for i, rec := range recs {
		switch rec.Kind {
		case trace.Frame:
			frames++
			rows[frames] = int64(i + 1)
			take(m.Frame(rec.At, rec.Dir, rec.Data))
		case trace.Text:
			frames++
			rows[frames] = int64(i + 1)
			take(m.Text(rec.At, rec.Dir, rec.Data))
		}
	}
	take(m.End())
	if len(want) < 10 || len(marked) < 6 {
		t.Fatalf("the rules find %q", want)
	}

	s, err := New(Options{Title: "violations", Header: h, Recorded: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for _, rec := range recs {
		s.Feed(rec)
	}
	s.End()
	var got []string
	for _, r := range follow(t, client(t, s), s, "").rows(int64(len(recs))) {
		for _, f := range r.Findings {
			got = append(got, fmt.Sprintf("%d %s %s %s", f.Seq, f.Level, f.Rule, f.Path))
			if f.Seq != r.Seq {
				t.Errorf("what is wrong with %d is told at %d", f.Seq, r.Seq)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}

	tb := chromium.Open(t, s.URL())
	tb.Until(fmt.Sprintf(`document.getElementById('count-findings').innerText === '%d'`, len(want)))
	// A recording is read from its beginning.
	tb.Until(`document.getElementById('row-1') && document.getElementById('follow').getAttribute('aria-pressed') === 'false'`)
	tb.Press("g")
	for _, seq := range marked {
		tb.Press("n")
		tb.Until(fmt.Sprintf(selected+` === %d && document.querySelector('.row.selected').matches('.marked')`, seq))
		var shown struct{ Findings, Here int }
		tb.Eval(`({findings: document.querySelectorAll('#detail > .finding').length, here: document.querySelectorAll('#detail > .body .here').length})`, &shown)
		n := 0
		for _, w := range want {
			if strings.HasPrefix(w, fmt.Sprint(seq, " ")) {
				n++
			}
		}
		if shown.Findings != n || shown.Here != len(places[seq]) {
			t.Errorf("#%d: %d findings are shown, want %d; %d places, want %v", seq, shown.Findings, n, shown.Here, places[seq])
		}
	}
	tb.Press("3")
	var rules, buttons int
	tb.Eval(`document.querySelectorAll('#findings .group').length`, &rules)
	tb.Eval(`document.querySelectorAll('#findings .group li').length`, &buttons)
	byRule := map[string]bool{}
	for _, w := range want {
		byRule[strings.Fields(w)[2]] = true
	}
	if rules != len(byRule) || buttons != len(want) {
		t.Errorf("%d rules with %d frames are listed, want %d with %d", rules, buttons, len(byRule), len(want))
	}
	if list := tb.Wrong(); len(list) > 0 {
		t.Errorf("the console says: %q", list)
	}
}

// nearest returns as much of a path as a frame has: members that are missing are not there to be shown.
func nearest(t *testing.T, frame []byte, path string) string {
	t.Helper()
	var v any
	if path == "" || json.Unmarshal(frame, &v) != nil {
		return ""
	}
	var at []string
	for step := range strings.SplitSeq(strings.ReplaceAll(strings.ReplaceAll(path, "]", ""), "[", "."), ".") {
		switch in := v.(type) {
		case map[string]any:
			next, ok := in[step]
			if !ok {
				return strings.Join(at, ".")
			}
			v = next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(in) {
				return strings.Join(at, ".")
			}
			v = in[i]
		default:
			return strings.Join(at, ".")
		}
		at = append(at, step)
	}
	return strings.Join(at, ".")
}
