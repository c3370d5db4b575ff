package tracecmd

import (
	"github.com/goacp/acp/conformance"
	"github.com/goacp/acp/trace"
)

// A checker checks the rules of the protocol on the records of one part, if it is asked to.
type checker struct{ m *conformance.Monitor }

func newChecker(on bool) *checker {
	if !on {
		return &checker{}
	}
	return &checker{conformance.NewMonitor(conformance.MonitorConfig{})}
}

// next returns what a record breaks, valid until the next call.
func (c *checker) next(rec *trace.Record) []conformance.Finding {
	switch {
	case c.m == nil:
	case rec.Kind == trace.Frame:
		return c.m.Frame(rec.At, rec.Dir, rec.Data)
	case rec.Kind == trace.Text && rec.Size > int64(len(rec.Data)):
		c.m.Gap() // a frame that was too long to be kept
	case rec.Kind == trace.Text:
		return c.m.Text(rec.At, rec.Dir, rec.Data)
	case rec.Kind == trace.Event && rec.Name == "lost":
		c.m.Gap()
	}
	return nil
}

// end returns what only the end shows.
func (c *checker) end() []conformance.Finding {
	if c.m == nil {
		return nil
	}
	return c.m.End()
}
