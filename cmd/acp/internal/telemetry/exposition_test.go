package telemetry

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/goacp/acp/cmd/acp/internal/gateway"
)

// A still gateway does nothing.
type still struct{}

func (still) Stats() gateway.Stats {
	return gateway.Stats{Sessions: 3, Draining: true, Lease: 1500 * time.Millisecond}
}

func (still) Ready(context.Context) error { return nil }

// TestPage: Prometheus' own parser reads from a page what was counted.
func TestPage(t *testing.T) {
	m := newMetrics([]string{"a \\ \"b\"\n{c}"}, "1.2")
	for _, d := range []time.Duration{0, 500 * time.Microsecond, 501 * time.Microsecond, 10 * time.Second, time.Minute} {
		m.took("acp_append_seconds", d, labelOutcome, "ok")
	}
	m.add("acp_agent_exits_total", 2.5, labelAgent, "a \\ \"b\"\n{c}", labelReason, "bad \xff text")
	m.add("acp_agent_exits_total", 1, labelAgent, "nobody", labelReason, "killed")
	text := m.page(t.Context(), still{}, func(context.Context) (int64, error) { return 1 << 40, nil })
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	got := map[string]float64{} // of counters and gauges, by name and values of labels
	kinds := map[string]string{}
	for name, f := range families {
		kinds[name] = strings.ToLower(f.GetType().String())
		if f.GetHelp() == "" {
			t.Errorf("%s has no help", name)
		}
		for _, one := range f.GetMetric() {
			key := name
			for _, l := range one.GetLabel() {
				key += " " + l.GetName() + "=" + l.GetValue()
			}
			got[key] = one.GetCounter().GetValue() + one.GetGauge().GetValue()
		}
	}
	for key, want := range map[string]float64{
		"acp_agent_exits_total agent=a \\ \"b\"\n{c} reason=bad \uFFFD text": 2.5, "acp_agent_exits_total agent=a \\ \"b\"\n{c} reason=exited": 0,
		"acp_agent_exits_total agent=other reason=killed": 1, "acp_sessions state=open": 3, "acp_draining": 1, "acp_lease_seconds": 1.5,
		"acp_log_bytes": 1 << 40, "acp_build_info version=1.2": 1, "go_info version=" + runtime.Version(): 1,
	} {
		if v, ok := got[key]; !ok || v != want {
			t.Errorf("%s: %v, %v", key, v, ok)
		}
	}
	for _, name := range []string{"go_goroutines", "go_threads", "go_memstats_heap_inuse_bytes", "process_start_time_seconds", "process_cpu_seconds_total"} {
		if got[name] <= 0 && name != "process_cpu_seconds_total" || kinds[name] == "" {
			t.Errorf("%s: %v %s", name, got[name], kinds[name])
		}
	}
	for _, d := range Metrics() {
		if kind, ok := kinds[d.Name]; ok && kind != d.Type || !ok && len(d.Labels) == 0 {
			t.Errorf("%s: %q, not %q", d.Name, kind, d.Type)
		}
	}
	if kinds["go_gc_duration_seconds"] != "summary" {
		t.Error("go_gc_duration_seconds is no summary")
	}

	var ok []uint64
	for _, one := range families["acp_append_seconds"].GetMetric() {
		if h := one.GetHistogram(); one.GetLabel()[0].GetValue() == "ok" {
			for i, b := range h.GetBucket() {
				if i < len(quick) && b.GetUpperBound() != quick[i] {
					t.Errorf("bucket %d ends at %v", i, b.GetUpperBound())
				}
				ok = append(ok, b.GetCumulativeCount())
			}
			if h.GetSampleCount() != 5 || h.GetSampleSum() < 70 || h.GetSampleSum() > 70.002 {
				t.Errorf("%v, %v", h.GetSampleCount(), h.GetSampleSum())
			}
		}
	}
	if diff := cmp.Diff([]uint64{2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 5}, ok); diff != "" {
		t.Error(diff)
	}
}

// TestPageFails: what cannot be read is missing, and the rest is there.
func TestPageFails(t *testing.T) {
	m := newMetrics(nil, "")
	text := string(m.page(t.Context(), still{}, func(context.Context) (int64, error) { return 0, errors.New("no") }))
	if strings.Contains(text, "acp_log_bytes") || !strings.Contains(text, "\nacp_watchers 0\n") {
		t.Error(text)
	}
}

// TestNoNumber: an observation that is no number leaves a histogram as it was.
func TestNoNumber(t *testing.T) {
	f := &family{buckets: []float64{1}}
	f.observe(math.NaN())
	f.observe(.5)
	p := new(page)
	f.write(p, Metric{Name: "x", Type: "histogram"})
	if text := string(p.text); !strings.Contains(text, "\nx_sum 0.5\nx_count 1\n") {
		t.Error(text)
	}
}

// A stuck gateway says how it is when it is free.
type stuck struct {
	still
	free chan struct{}
}

func (s stuck) Stats() gateway.Stats {
	<-s.free
	return s.still.Stats()
}

// TestScrapesEnd: a scrape that the gateway does not answer ends, those beyond the bound are refused at once, and once
// the gateway answers there is room again.
func TestScrapesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stuck{free: make(chan struct{})}
		h := (&Telemetry{metrics: newMetrics(nil, "")}).handler(g, func(context.Context) (int64, error) { return 0, nil })
		scrape := func() (status int, took time.Duration) {
			begun, w := time.Now(), httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
			return w.Code, time.Since(begun)
		}
		for range maxScrapes {
			if status, took := scrape(); status != http.StatusServiceUnavailable || took != scrapeTime {
				t.Errorf("%d after %v", status, took)
			}
		}
		if status, took := scrape(); status != http.StatusServiceUnavailable || took != 0 {
			t.Errorf("one more: %d after %v", status, took)
		}
		close(g.free)
		synctest.Wait()
		if status, took := scrape(); status != http.StatusOK || took != 0 {
			t.Errorf("afterwards: %d after %v", status, took)
		}
	})
}
