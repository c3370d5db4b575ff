package web

import (
	"github.com/goacp/acp/conformance"
	"github.com/goacp/acp/trace"
)

// checks says what is wrong with frames. Findings are valid until the next call.
type checks interface {
	frame(rec *trace.Record) []conformance.Finding
	gap() // some frames are missing here
	end() []conformance.Finding
}

// A monitor checks by the rules of package conformance.
type monitor struct{ m *conformance.Monitor }

func newChecks() checks { return monitor{conformance.NewMonitor(conformance.MonitorConfig{})} }

func (m monitor) frame(rec *trace.Record) []conformance.Finding {
	if rec.Kind == trace.Text {
		return m.m.Text(rec.At, rec.Dir, rec.Data)
	}
	return m.m.Frame(rec.At, rec.Dir, rec.Data)
}

func (m monitor) gap()                       { m.m.Gap() }
func (m monitor) end() []conformance.Finding { return m.m.End() }
