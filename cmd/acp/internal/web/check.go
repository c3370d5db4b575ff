package web

import (
	"github.com/goacp/acp/conformance"
	"github.com/goacp/acp/trace"
)

// none checks nothing.
type none struct{}

func newChecks() checks { return none{} }

func (none) frame(*trace.Record) []conformance.Finding { return nil }
func (none) end() []conformance.Finding                { return nil }
