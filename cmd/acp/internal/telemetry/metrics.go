package telemetry

import (
	"context"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/gateway"
)

// Labels of metrics. None of them ever has an id of a session, a user or anything that was said: an agent is one of
// the configuration, and of any other value there are at most maxValues.
const (
	labelAgent   = "agent"
	labelOutcome = "outcome"
	labelReason  = "reason"
	labelHow     = "how"
	labelState   = "state"
)

const (
	maxValues = 64
	maxValue  = 48 // of a value, in bytes
	other     = "other"
)

// A Metric describes one of the metrics.
type Metric struct {
	Name, Type, Help string
	Labels           []string
}

// Metrics are all metrics that are the gateway's own, by name. Those of the Go runtime and of the process come in
// addition.
func Metrics() []Metric {
	all := slices.Clone(gauges)
	for _, c := range counters {
		all = append(all, Metric{c.name, "counter", c.help, c.labels})
	}
	for _, h := range histograms {
		all = append(all, Metric{h.name, "histogram", h.help, h.labels})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all
}

// The gauges, which are read as they are scraped.
var gauges = []Metric{
	{"acp_sessions", "gauge", "Sessions that this node owns: all (open), those in which a turn runs (running), those that wait for an answer of somebody (asking).", []string{labelState}},
	{"acp_agents", "gauge", "Agents that run.", nil},
	{"acp_watchers", "gauge", "Clients of sessions.", nil},
	{"acp_draining", "gauge", "1 if the node takes no sessions any more.", nil},
	{"acp_lease_seconds", "gauge", "Time until the lease of the node lapses unless it is renewed.", nil},
	{"acp_log_bytes", "gauge", "Size of the database.", nil},
	{"acp_build_info", "gauge", "1; the label has the version.", []string{"version"}},
}

type counter struct {
	name, help string
	labels     []string
	first      []string // values of the last label that are there from the beginning: rate() does not see how something begins
}

var counters = []counter{
	{"acp_agent_exits_total", "Agents that have ended: stopped and killed by the gateway, or exited by themselves.", []string{labelAgent, labelReason}, []string{"exited", "killed", "stopped"}},
	{"acp_joins_total", "Clients that came to a session: new, fork, resume (also load), or refused.", []string{labelHow}, []string{"fork", "new", "refused", "resume"}},
	{"acp_claims_total", "Sessions that this node has become the owner of, or could not.", []string{labelOutcome}, []string{"error", "ok"}},
	{"acp_lease_changes_total", "Leases of this node that have lapsed, and that it has taken anew.", []string{labelHow}, []string{"lapsed", "taken"}},
	{"acp_refusals_total", "Requests of clients that were refused, such as for a quota.", []string{labelReason}, []string{"agent_failed", "agents", "busy", "closing", "full", "role", "unavailable"}},
	{"acp_append_records_total", "Records that were appended.", nil, nil},
	{"acp_append_bytes_total", "Data of records that were appended.", nil, nil},
	{"acp_compacted_records_total", "Records that were dropped as sessions were compacted.", nil, nil},
	{"acp_deleted_sessions_total", "Sessions that were deleted, by clients or by retention.", []string{labelReason}, []string{"client", "retention"}},
}

type histogram struct {
	name, help string
	labels     []string
	buckets    []float64
}

var (
	quick = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	slow  = []float64{.1, .5, 1, 5, 15, 60, 300, 900, 3600, 14400}
)

var histograms = []histogram{
	{"acp_turn_seconds", "Turns, from when they begin to their end: the stop reason, error, or lost if the agent or the gateway died.", []string{labelAgent, labelOutcome}, slow},
	{"acp_first_update_seconds", "From the beginning of a turn to the first thing the agent says.", []string{labelAgent}, slow},
	{"acp_tool_seconds", "Tool calls of agents.", []string{labelAgent, labelOutcome}, slow},
	{"acp_agent_start_seconds", "Starts of agents, until a session is open in them.", []string{labelAgent, labelOutcome}, quick},
	{"acp_permission_seconds", "How long agents waited for an answer, by the kind of the answer.", []string{labelOutcome}, slow},
	{"acp_append_seconds", "From when records are ready to be appended until they are committed.", []string{labelOutcome}, quick},
	{"acp_replay_seconds", "Histories that were sent to clients.", []string{labelOutcome}, quick},
	{"acp_fanout_seconds", "From when a record is appended until a client was sent it. Each 16th record of a session is measured.", nil, quick},
}

// metrics are the metrics of a process.
type metrics struct {
	families map[string]*family // by name
	agents   map[string]bool
	version  string

	mu     sync.Mutex
	values map[string]map[string]bool // by label, those that are not of an agent
}

func newMetrics(agents []string, version string) *metrics {
	m := &metrics{families: map[string]*family{}, agents: map[string]bool{}, version: version, values: map[string]map[string]bool{}}
	for _, name := range agents {
		m.agents[name] = true
	}
	for _, c := range counters {
		m.families[c.name] = &family{labels: c.labels}
		if len(c.labels) == 0 {
			m.add(c.name, 0) // from the beginning
		}
		for _, value := range c.first {
			if c.labels[0] == labelAgent {
				for name := range m.agents {
					m.add(c.name, 0, labelAgent, name, c.labels[1], value)
				}
			} else {
				m.add(c.name, 0, c.labels[0], value)
			}
		}
	}
	for _, h := range histograms {
		m.families[h.name] = &family{labels: h.labels, buckets: h.buckets}
		if len(h.labels) == 0 {
			m.families[h.name].begin()
		}
	}
	for _, outcome := range []string{"error", "ok"} { // for which there is an alert
		m.families["acp_append_seconds"].begin(m.value(labelOutcome, outcome))
	}
	return m
}

// value returns a value for a label, of which there are only so many.
func (m *metrics) value(label, v string) string {
	v = strings.ToValidUTF8(v, "\uFFFD")
	if label == labelAgent {
		if m.agents[v] {
			return v
		}
		return other
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := m.values[label]
	if seen == nil {
		seen = map[string]bool{}
		m.values[label] = seen
	}
	switch {
	case seen[v]:
		return v
	case v == "" || len(v) > maxValue || len(seen) >= maxValues:
		return other
	}
	seen[v] = true
	return v
}

// add adds to a counter. labels are its label and value pairs.
func (m *metrics) add(name string, n float64, labels ...string) {
	m.families[name].add(n, m.valuesOf(labels)...)
}

// took adds to a histogram.
func (m *metrics) took(name string, d time.Duration, labels ...string) {
	m.families[name].observe(d.Seconds(), m.valuesOf(labels)...)
}

func (m *metrics) valuesOf(labels []string) (values []string) {
	for i := 0; i < len(labels); i += 2 {
		values = append(values, m.value(labels[i], labels[i+1]))
	}
	return values
}

// end counts a span.
func (m *metrics) end(s *gateway.Span, took time.Duration, outcome string) {
	switch s.Kind {
	case gateway.SpanTurn:
		m.took("acp_turn_seconds", took, labelAgent, s.Agent, labelOutcome, outcome)
	case gateway.SpanTool:
		m.took("acp_tool_seconds", took, labelAgent, s.Agent, labelOutcome, outcome)
	case gateway.SpanPermission:
		m.took("acp_permission_seconds", took, labelOutcome, outcome)
	case gateway.SpanAppend:
		m.took("acp_append_seconds", took, labelOutcome, outcome)
		if outcome == "ok" {
			m.add("acp_append_records_total", float64(s.Records))
			m.add("acp_append_bytes_total", float64(s.Bytes))
		}
	case gateway.SpanReplay:
		m.took("acp_replay_seconds", took, labelOutcome, outcome)
	case gateway.SpanStart:
		m.took("acp_agent_start_seconds", took, labelAgent, s.Agent, labelOutcome, outcome)
	}
}

// happened counts an event.
func (m *metrics) happened(e *gateway.Event) {
	switch e.Kind {
	case gateway.EventExit:
		m.add("acp_agent_exits_total", 1, labelAgent, e.Agent, labelReason, e.Why)
	case gateway.EventFirst:
		m.took("acp_first_update_seconds", e.Took, labelAgent, e.Agent)
	case gateway.EventJoin:
		m.add("acp_joins_total", 1, labelHow, e.Why)
	case gateway.EventClaim:
		m.add("acp_claims_total", 1, labelOutcome, e.Why)
	case gateway.EventLease:
		m.add("acp_lease_changes_total", 1, labelHow, e.Why)
	case gateway.EventRefused:
		m.add("acp_refusals_total", 1, labelReason, e.Why)
	case gateway.EventSent:
		m.took("acp_fanout_seconds", e.Took)
	case gateway.EventCompact:
		m.add("acp_compacted_records_total", float64(e.N))
	case gateway.EventDelete:
		m.add("acp_deleted_sessions_total", 1, labelReason, e.Why)
	}
}

// sizeTime bounds how long it takes to ask for the size of the database.
const sizeTime = 2 * time.Second

// page returns all metrics. Gauges are read for it.
func (m *metrics) page(ctx context.Context, g Gateway, size func(context.Context) (int64, error)) []byte {
	st := g.Stats()
	present := map[string][]series{
		"acp_sessions": {
			{values: []string{"open"}, sum: float64(st.Sessions)},
			{values: []string{"running"}, sum: float64(st.Running)},
			{values: []string{"asking"}, sum: float64(st.Asking)},
		},
		"acp_agents":        {{sum: float64(st.Agents)}},
		"acp_watchers":      {{sum: float64(st.Watchers)}},
		"acp_draining":      {{}},
		"acp_lease_seconds": {{sum: st.Lease.Seconds()}},
		"acp_build_info":    {{values: []string{m.version}, sum: 1}},
	}
	if st.Draining {
		present["acp_draining"][0].sum = 1
	}
	ctx, cancel := context.WithTimeout(ctx, sizeTime)
	defer cancel()
	if n, err := size(ctx); err == nil { // otherwise there is none
		present["acp_log_bytes"] = []series{{sum: float64(n)}}
	}
	p := new(page)
	for _, d := range Metrics() {
		if f := m.families[d.Name]; f != nil {
			f.write(p, d)
			continue
		}
		for i, s := range present[d.Name] {
			if i == 0 {
				p.head(d)
			}
			p.line(d.Name, d.Labels, s.values, s.sum)
		}
	}
	p.golang()
	p.process()
	return p.text
}
