package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMeasurements runs every kind of measurement once for the Go subjects,
// both ends in this process: a workload that loses an update or answers
// wrongly is an error of the measurement.
func TestMeasurements(t *testing.T) {
	takes := map[string][]string{} // subjects, by what a workload is called in either mode
	for _, w := range modeWorkloads("two") {
		takes[strings.Replace(w.name, "two", "one", 1)] = w.subjects
	}
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			m, stop, err := connect(t.Context(), s, "one")
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range modeWorkloads("one") {
				if !slices.Contains(takes[w.name], s.name) {
					continue
				}
				o := w.op
				o.Millis = 1
				if n := w.windows[s.name]; n > 0 {
					o.Window = n
				}
				o.Window = min(o.Window, survivable)
				o.Size = min(o.Size, 1_000_000)
				got, err := m.run(t.Context(), o)
				if err != nil {
					t.Fatalf("%s: %v", w.name, err)
				}
				for _, k := range w.metrics {
					if v, ok := got[k.key]; !ok || v < 0 || math.IsNaN(v) {
						t.Errorf("%s: %s is %v", w.name, k.key, v)
					}
				}
				if got["rate"] <= 0 {
					t.Errorf("%s: no rate", w.name)
				}
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
		t.Run(s.name+"/idle", func(t *testing.T) {
			got, err := idle(t.Context(), s, 3)
			if err != nil {
				t.Fatal(err)
			}
			if got["goroutines"] < 1 || got["files"] < 2 {
				t.Errorf("idle connections hold %v", got)
			}
		})
	}
}

func TestWorkloadNames(t *testing.T) {
	names := map[string]*workload{}
	for _, w := range workloads() {
		if names[w.name] != nil {
			t.Errorf("two workloads are called %s", w.name)
		}
		names[w.name] = w
	}
	for _, tg := range targets {
		w := names[tg.workload]
		if w == nil {
			t.Errorf("target %q: no workload %s", tg.text, tg.workload)
			continue
		}
		found := false
		for _, k := range w.metrics {
			found = found || k.key == tg.key
		}
		if !found {
			t.Errorf("target %q: %s has no %s", tg.text, tg.workload, tg.key)
		}
	}
}

func TestJudge(t *testing.T) {
	o := &outcome{
		workload: &workload{name: "w", subjects: []string{"ours", "coder"}},
		samples: map[string]map[string][]float64{
			"ours":  {"rate": {20, 50, 30}, "p50": {2, 2, 2}},
			"coder": {"rate": {1, 1, 1}, "p50": {8, 4, 20}},
		},
		failures: map[string]string{},
	}
	lower := metric{key: "p50", lower: true}
	if got := o.ratio(lower, "coder"); got != 4 {
		t.Errorf("ours is %v times better, want 4", got)
	}
	var got []string
	for _, tg := range []target{
		{key: "rate", over: "coder", atLeast: 30},
		{key: "rate", over: "coder", atLeast: 31},
		{key: "p50", over: "coder", atMost: 0.25},
		{key: "p50", over: "coder", atMost: 0.24},
		{key: "p50", over: "bare", atMost: 1},
	} {
		v := tg.judge(o)
		got = append(got, v.found+" "+v.word())
	}
	want := []string{"30.0× met", "30.0× MISSED", "0.25× met", "0.25× MISSED", "– not measured"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	o.failures["ours"] = "connection closed"
	if v := (target{key: "rate", atLeast: 1}).judge(o); v.met || !strings.Contains(v.found, "closed") {
		t.Errorf("a failure counts as %+v", v)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.0301: "0.030", 0.5: "0.50", 12.34: "12.3", 1234: "1,234", 1234567: "1,235 k", math.NaN(): "–", -2500: "-2,500",
	} {
		if got := number(v); got != want {
			t.Errorf("%v is written %q, want %q", v, got, want)
		}
	}
}

// TestProgramKept: what was measured of the program stays when the rest is written anew.
func TestProgramKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "RESULTS.md")
	if err := (report{rounds: 1}).write(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(data), programHeading) {
		t.Fatalf("%s, %v", data, err)
	}
	part := programHeading + "\nfast\n"
	if err := os.WriteFile(path, append(data, part...), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := (report{rounds: 1}).write(path); err != nil {
			t.Fatal(err)
		}
	}
	if data, err = os.ReadFile(path); err != nil || !strings.HasSuffix(string(data), part) || strings.Count(string(data), programHeading) != 1 {
		t.Errorf("%s, %v", data, err)
	}
}
