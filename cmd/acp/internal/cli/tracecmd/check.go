package tracecmd

import (
	"github.com/goacp/acp/cmd/acp/internal/tracefile"
	"github.com/goacp/acp/conformance"
	"github.com/goacp/acp/trace"
)

// A checker checks the rules of the protocol on the records of one part, if it is asked to.
type checker struct {
	m    *conformance.Monitor // nil if it is not
	file *tracefile.File
	cuts int64 // lines of the file that are known to be missing
}

func newChecker(on bool, file *tracefile.File) *checker {
	if !on {
		return &checker{}
	}
	return &checker{conformance.NewMonitor(conformance.MonitorConfig{}), file, file.Cuts}
}

// next returns what a record breaks, valid until the next call.
func (c *checker) next(rec *trace.Record) []conformance.Finding {
	if c.m == nil {
		return nil
	}
	if n := c.file.Cuts; n != c.cuts {
		c.cuts = n
		c.m.Gap()
	}
	switch {
	case rec.Kind == trace.Frame:
		return c.m.Frame(rec.At, rec.Dir, rec.Data)
	case rec.Kind == trace.Text && rec.Size > int64(len(rec.Data)):
		c.m.Gap() // a frame that was too long to be kept
	case rec.Kind == trace.Text:
		return c.m.Text(rec.At, rec.Dir, rec.Data)
	case rec.Kind == trace.Event && rec.Name == "lost":
		c.m.Gap()
	case rec.Kind == trace.Event && rec.Name == "start" && c.m.Stats().Frames > 0:
		found := c.m.End() // another connection follows
		c.m = conformance.NewMonitor(conformance.MonitorConfig{})
		return found
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
