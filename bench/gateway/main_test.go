package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/internal/leaktest"
)

// TestMeasurements: what is measured can be, in short.
func TestMeasurements(t *testing.T) {
	b, err := newBench(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	b.self = t.TempDir() + "/gateway"
	if out, err := command(t.Context(), "go", "build", "-o", b.self, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, m := range measurements() {
		switch m.id {
		case "G8", "G15": // which wait for the network
			if testing.Short() {
				continue
			}
		}
		rows, err := m.run(t.Context(), b)
		r := result{m, rows, err}
		t.Log(r.text())
		if err != nil || len(rows) == 0 {
			t.Errorf("%s: %v", m.id, err)
		}
	}
}

// TestVerdict: a target that is missed is followed by that for this machine, if there is one.
func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		row  row
		want string
	}{
		{row{scaled: scaled{"≥ 5.00/s", true}}, ""},
		{row{target: "≥ 10/s", met: true, scaled: scaled{"≥ 5.00/s", true}}, "met"},
		{row{target: "≥ 10/s"}, "missed"},
		{row{target: "≥ 10/s", scaled: atLeast(5, 6)}, "missed; scaled to this machine it is ≥ 5.00/s: met"},
		{row{target: "≥ 10/s", scaled: atLeast(5, 4)}, "missed, also if scaled to this machine: ≥ 5.00/s"},
	} {
		if got := tt.row.verdict(); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.row, got, tt.want)
		}
	}
}

func TestSaid(t *testing.T) {
	for frame, want := range map[string][2]int64{
		`{"method":"session/update","params":{"update":{"content":{"text":"12 345 xxx"}}}}`: {12, 345},
		`{"method":"session/update","params":{"update":{"content":{"text":"12"}}}}`:         {-1, 0},
		`{"method":"session/update","params":{"update":{"content":{"text":"hello"}}}}`:      {-1, 0},
		`{"method":"other","params":{"text":"12 345 xxx"}}`:                                 {-1, 0},
	} {
		n, at, ok := said([]byte(frame))
		if ok != (want[0] >= 0) || ok && (int64(n) != want[0] || at != want[1]) {
			t.Errorf("%s: %d, %d, %v", frame, n, at, ok)
		}
	}
}

func TestAskRows(t *testing.T) {
	now := time.Now()
	rounds := map[string]*round{"0": new(round), "1": new(round)}
	rounds["0"].answered[2] = now
	rounds["0"].withdrew[0] = now.Add(time.Millisecond)
	rounds["0"].answered[1] = now.Add(time.Second)
	rounds["1"].answered[0] = now
	rows, err := askRows(2, time.Second, rounds, map[string][]string{"0": {"2"}, "1": {"0", "1"}})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	(&result{measurement{id: "G11"}, rows, nil}).markdown(&text)
	for _, want := range []string{"| decided otherwise than once | 1 | 0 | missed |", "1 times: p50 1.00 ms", "| answers that came too late | 1 |", "| not asked any more | 2 |"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, &text)
		}
	}
}

func TestQuantile(t *testing.T) {
	var all []time.Duration
	for i := range 100 {
		all = append(all, time.Duration(99-i))
	}
	if got := quantile(all, 0.5); got != 50 {
		t.Errorf("the median is %d", got)
	}
	if got := quantile(all, 1); got != 99 {
		t.Errorf("the greatest is %d", got)
	}
	if got := spreadOf([]float64{3, 1, 2}).text(" ms"); got != "2.00 ms (1.00–3.00)" {
		t.Error(got)
	}
	if got := number(12345); got != "12,300" {
		t.Error(got)
	}
}

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestNodes: what was found of nodes that share a database is in the report.
func TestNodes(t *testing.T) {
	dir := t.TempDir()
	var text bytes.Buffer
	if err := nodes(dir, &text); err != nil || text.Len() > 0 { // it was not measured
		t.Fatal(err, text.String())
	}
	if err := os.WriteFile(filepath.Join(dir, "cluster.jsonl"), []byte(`{"fault":"a|b","lease":10,"again":3,"back":3.5,"moved":2,"owner":9.25,"silence":11,"turns":{"end_turn":1,"cancelled":2},"notices":2,"prompts":9,"records":70,"seen":60,"lost":0,"doubled":1,"sessions":4}
{"fault":"c","lease":10}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := nodes(dir, &text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`| a\|b | 3, 3.50 s, missed | 2, 9.25 s | 11.0 s | 2 cancelled, 1 end_turn | 2 | 9 | 70 | 60 | 0 | 1 |`, "| c | – | – | 0.0 s |", "Each of 4 sessions", "a lease is 10 s",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, &text)
		}
	}
}
