package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNetMeasurements runs every kind of measurement over the network once for the Go
// subjects, both ends in this process.
func TestNetMeasurements(t *testing.T) {
	for _, mode := range []string{"http", "ws"} {
		for _, s := range []*subject{ours, bare, each} {
			t.Run(mode+"/"+s.name, func(t *testing.T) {
				url, stop, err := serveNet(s, mode)
				if err != nil {
					t.Fatal(err)
				}
				rec := newRecorder()
				c, err := dialNet(t.Context(), s, url, rec)
				if err != nil {
					t.Fatal(err)
				}
				m := &meter{c, rec, false}
				for _, w := range netWorkloads(mode) {
					if w.op.Kind == "idle" {
						continue // needs a process of its own
					}
					o := w.op
					o.Millis = 1
					got, err := m.run(t.Context(), o)
					if err != nil {
						t.Fatalf("%s: %v", w.name, err)
					}
					for _, k := range w.metrics {
						if v, ok := got[k.key]; !ok || v < 0 {
							t.Errorf("%s: %s is %v", w.name, k.key, v)
						}
					}
				}
				c.close()
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestMerge: a run of some workloads replaces these in the report and nothing else.
func TestMerge(t *testing.T) {
	run := func(rate float64, names ...string) report {
		r := report{rounds: 1}
		for _, w := range workloads() {
			for _, name := range names {
				if w.name == name {
					r.results = append(r.results, &outcome{workload: w, samples: map[string]map[string][]float64{
						"ours": {"rate": {rate}}, "bare": {"rate": {1}}, tsName: {"rate": {1}},
					}})
				}
			}
		}
		r.verdicts = judge(r.results)
		return r
	}
	path := filepath.Join(t.TempDir(), "RESULTS.md")
	if err := run(100, "chunks/http", "chunks/ws").write(path); err != nil {
		t.Fatal(err)
	}
	part := run(200, "trips/http", "chunks/ws")
	part.part = true
	if err := part.write(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(data)) {
		for _, begin := range []string{"`", "## ", "| updates/s", "| measured again", "| 24-byte chunks over WebSocket: ≥ 12× TypeScript |", "| 24-byte chunks over HTTP: ≥ 8× TypeScript |"} {
			if strings.HasPrefix(line, begin) {
				cells := strings.Split(line, " | ")
				got = append(got, strings.Join(cells[:min(2, len(cells))], " | "))
			}
		}
	}
	want := []string{
		"| measured again", "## Targets\n",
		"| 24-byte chunks over WebSocket: ≥ 12× TypeScript | 200×", "| 24-byte chunks over HTTP: ≥ 8× TypeScript | 100×",
		"## Prompt round trip, 1 caller, over Streamable HTTP (HTTP/1.1)\n", "`trips/http`, 1 rounds\n",
		"## Stream of 24-byte chunks, 1000 per prompt, over Streamable HTTP (HTTP/1.1)\n", "`chunks/http`, 1 rounds\n", "| updates/s | 100",
		"## Stream of 24-byte chunks, 1000 per prompt, over WebSocket\n", "`chunks/ws`, 1 rounds\n", "| updates/s | 200",
	}
	for i, line := range got {
		if strings.HasPrefix(line, "| measured again") {
			got[i] = "| measured again"
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s\n%s", d, data)
	}
}
