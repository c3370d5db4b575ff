// Package tracecheck checks the records of a trace by the rules of the protocol, whether they come
// from a file or as frames pass.
package tracecheck

import (
	"github.com/goacp/acp/conformance"
	"github.com/goacp/acp/trace"
)

// A Checker checks the records of connections, one connection after another, in the bounded memory of
// a [conformance.Monitor]. What is missing between records is no fault of a peer: see
// [Checker.Gap]. The zero value is ready for use and needs no closing; a nil one checks nothing.
// It is used by one goroutine at a time.
type Checker struct {
	monitor *conformance.Monitor // of the connection at hand, or of the one that ended last
	ended   bool
	frames  int64
	before  int64 // frames of the connections before the one at hand
	cuts    int64
}

// begin makes sure that there is a connection that has not ended.
func (c *Checker) begin() {
	if c.monitor == nil || c.ended {
		if c.monitor != nil {
			c.before += c.monitor.Stats().Frames
		}
		c.monitor, c.ended, c.frames = conformance.NewMonitor(conformance.MonitorConfig{}), false, 0
	}
}

// Begins reports whether a record says that another connection begins while there is one: the agent
// was started again. Who wants to know what the end of that one shows calls End first.
func (c *Checker) Begins(rec *trace.Record) bool {
	return rec.Kind == trace.Event && rec.Name == "start" && c.Frames() > 0
}

// Add returns what a record breaks, or, if another connection begins with it, what the end of the
// last one shows. The findings are valid until the next call; nothing of the record is kept.
func (c *Checker) Add(rec *trace.Record) []conformance.Finding {
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
func (c *Checker) Gap() {
	if c != nil {
		c.begin()
		c.monitor.Gap()
	}
}

// Cuts says how many records could not be read so far, in all connections: where there are more than
// the last time, there is a gap.
func (c *Checker) Cuts(n int64) {
	if c != nil && n != c.cuts {
		c.cuts = n
		c.Gap()
	}
}

// End ends the connection at hand and returns what only that shows. The findings are valid until the
// next call. What is added next is of another connection. A second call returns nothing.
func (c *Checker) End() []conformance.Finding {
	if c == nil || c.monitor == nil {
		return nil
	}
	c.ended, c.frames = true, 0
	return c.monitor.End()
}

// Frames returns how many frames were checked on the connection at hand, text included: the number of
// the last one in findings.
func (c *Checker) Frames() int64 {
	if c == nil {
		return 0
	}
	return c.frames
}

// Number returns the number of the frame that broke a rule, among those of all connections, from 1.
// It holds until the next connection begins.
func (c *Checker) Number(f conformance.Finding) int64 {
	if c == nil {
		return 0
	}
	return c.before + f.Frame
}

// Counts reports whether a record is a frame that has a number.
func Counts(rec *trace.Record) bool {
	return rec.Kind == trace.Frame || rec.Kind == trace.Text && rec.Size <= int64(len(rec.Data))
}

// Seen reports whether what the rule is about occurred on the connection at hand, or on the one that
// ended if none has begun since.
func (c *Checker) Seen(r *conformance.Rule) bool {
	return c != nil && c.monitor != nil && c.monitor.Seen(r)
}

// Version returns the version of the protocol that was agreed on there, or 0.
func (c *Checker) Version() int {
	if c == nil || c.monitor == nil {
		return 0
	}
	return c.monitor.Stats().Version
}
