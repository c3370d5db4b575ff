package backend

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
)

// maxElsewhere bounds the questions whose decision by a gateway is waited for: as many as an agent may have open there.
const maxElsewhere = 64

// elsewhere has the questions of a gateway, which puts them to several clients and decides which answer counts. It says so
// before or after the question has its answer here, which may be that it was withdrawn. The zero value is ready for use.
type elsewhere struct {
	mu   sync.Mutex
	open []told // the oldest first
}

// told is what is known of a question: its answer here, or the decision.
type told struct {
	name     string
	session  *Session // nil if it was not answered here
	question *question
	decision acpv2.RequestPermissionOutcome // nil if it is not known
}

// answered is called with a question that has its answer here, with the session's order held. It returns the decision, or nil
// if that is to come, or if the question has no name.
func (e *elsewhere) answered(name string, s *Session, q *question) acpv2.RequestPermissionOutcome {
	if name == "" {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if was := e.take(name); was.decision != nil {
		return was.decision
	}
	e.keep(told{name: name, session: s, question: q})
	return nil
}

// decided is called with the decision on a question, which is shown in place of the answer that was given here.
func (e *elsewhere) decided(name string, d acpv2.RequestPermissionOutcome) {
	if name == "" {
		return
	}
	e.mu.Lock()
	was := e.take(name)
	if was.question == nil {
		e.keep(told{name: name, decision: d})
	}
	e.mu.Unlock()
	if was.question != nil {
		now := was.session.actual()
		now.journal.put(answerItem(was.question, d))
		now.order.Unlock()
	}
}

// take returns what is known of a question, and forgets it. The caller holds e.mu.
func (e *elsewhere) take(name string) (t told) {
	if i := slices.IndexFunc(e.open, func(t told) bool { return t.name == name }); i >= 0 {
		t = e.open[i]
		e.open = slices.Delete(e.open, i, i+1)
	}
	return t
}

// keep adds what is known of a question, in place of the oldest one at the bound. The caller holds e.mu.
func (e *elsewhere) keep(t told) {
	if len(e.open) == maxElsewhere {
		e.open = slices.Delete(e.open, 0, 1)
	}
	e.open = append(e.open, t)
}

// askName returns the name of a question in its _meta, or "" if it is not from a gateway.
func askName(meta json.RawMessage) string {
	var said struct{ Ask string }
	if ownmeta.Read(meta, &said); len(said.Ask) > maxAskName {
		return ""
	}
	return said.Ask
}

// maxAskName bounds the name of a question, in bytes.
const maxAskName = 100

// outcome returns the decision as the answer to a request.
func (p *decided) outcome() acpv2.RequestPermissionOutcome {
	if p.Option == "" {
		return &acpv2.CancelledPermissionOutcome{}
	}
	return &acpv2.SelectedPermissionOutcome{OptionID: p.Option}
}
