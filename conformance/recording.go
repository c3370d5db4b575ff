package conformance

import (
	"github.com/goacp/acp/trace"
)

// A Recording checks the records of a trace by the observed rules, whether they
// are read from a file or arrive as frames pass. A trace may hold several
// connections, one after another; each has a [Monitor] of its own, with that one's
// bounds. Records that are missing are not a peer's fault: report them with
// [Recording.Gap] or [Recording.Cuts].
//
// The zero Recording is ready for use and needs no closing; a nil one checks
// nothing. It must not be used by two goroutines at a time.
type Recording struct {
	monitor *Monitor // of the connection at hand, or of the one that ended last
	ended   bool
	frames  int64
	before  int64 // frames of the connections before the one at hand
	cuts    int64
}

// begin makes sure that there is a connection that has not ended.
func (c *Recording) begin() {
	if c.monitor == nil || c.ended {
		if c.monitor != nil {
			c.before += c.monitor.Stats().Frames
		}
		c.monitor, c.ended, c.frames = NewMonitor(MonitorConfig{}), false, 0
	}
}

// Begins reports whether a record says that another connection begins while there is one: the agent
// was started again. Callers that want what the end of the last one shows call End first.
func (c *Recording) Begins(rec *trace.Record) bool {
	return rec.Kind == trace.Event && rec.Name == "start" && c.Frames() > 0
}

// Add returns what a record breaks, or, if another connection begins with it, what the end of the
// last one shows. The findings are valid until the next call; nothing of the record is kept.
func (c *Recording) Add(rec *trace.Record) []Finding {
	switch {
	case c == nil:
	case rec.Kind == trace.Frame:
		c.begin()
		c.frames++
		return c.monitor.Frame(rec.At, rec.Dir, rec.Data)
	case rec.Kind == trace.Text && rec.Size > int64(len(rec.Data)):
		c.Gap() // a frame that was too long to be kept
	case rec.Kind == trace.Text:
		c.begin()
		c.frames++
		return c.monitor.Text(rec.At, rec.Dir, rec.Data)
	case rec.Kind == trace.Event && rec.Name == "lost":
		c.Gap()
	case c.Begins(rec):
		return c.End()
	}
	return nil
}

// Gap says that records are missing here.
func (c *Recording) Gap() {
	if c != nil {
		c.begin()
		c.monitor.Gap()
	}
}

// Cuts says how many records could not be read so far, in all connections: where there are more than
// the last time, there is a gap.
func (c *Recording) Cuts(n int64) {
	if c != nil && n != c.cuts {
		c.cuts = n
		c.Gap()
	}
}

// End ends the connection at hand and returns what only that shows. The findings are valid until the
// next call. What is added next is of another connection. A second call returns nothing.
func (c *Recording) End() []Finding {
	if c == nil || c.monitor == nil {
		return nil
	}
	c.ended, c.frames = true, 0
	return c.monitor.End()
}

// Frames returns how many frames were checked on the connection at hand, text included: the number of
// the last one in findings.
func (c *Recording) Frames() int64 {
	if c == nil {
		return 0
	}
	return c.frames
}

// Number returns the number of the frame that broke a rule, among those of all connections, from 1.
// It holds until the next connection begins.
func (c *Recording) Number(f Finding) int64 {
	if c == nil {
		return 0
	}
	return c.before + f.Frame
}

// IsNumbered reports whether a record is a frame, which has a number in findings.
func IsNumbered(rec *trace.Record) bool {
	return rec.Kind == trace.Frame || rec.Kind == trace.Text && rec.Size <= int64(len(rec.Data))
}

// Seen reports whether what the rule is about occurred on the connection at hand, or on the one that
// ended if none has begun since.
func (c *Recording) Seen(r *Rule) bool {
	return c != nil && c.monitor != nil && c.monitor.Seen(r)
}

// Version returns the version of the protocol that was agreed on there, or 0.
func (c *Recording) Version() int {
	if c == nil || c.monitor == nil {
		return 0
	}
	return c.monitor.Stats().Version
}
