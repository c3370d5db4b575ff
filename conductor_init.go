package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/goacp/acp/jsonrpc"
)

// initialize starts the components and asks them.
func (s *chain) initialize(ctx context.Context, m proxied) (res json.RawMessage, err error) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = err
		close(s.ready)
		if err == nil {
			s.down = nil
		}
		if s.run != nil && s.run.exit != nil {
			s.watchers.Go(s.run.exit)
		}
	}()
	m.passedOn()
	m.req = nil // other requests wait until there is an answer
	asked := versionOf(m.raw())
	version := asked
	for _, p := range s.c.Proxies {
		if p.Proxy != nil {
			if _, hi := p.Proxy.versions(); hi == 1 {
				version = min(version, 1)
			}
		}
	}
	s.mu.Lock()
	old := s.run
	if old != nil && (s.given || old.refused || old.own()) && !old.broken() {
		old = nil
	}
	s.mu.Unlock()
	s.drop(old) // a component may take one handshake only
	res, run, err := s.attempt(ctx, m, asked, version)
	if again := run.lower(version); err == nil && again > 0 {
		if version = again; s.given { // the client has the agent's process
			res, run, err = s.attempt(ctx, m, asked, version)
		}
		if !s.given || err != nil && clientReopens(s.c.Agent.Transport) {
			s.log.Info("acp: conductor: a proxy speaks an earlier version: starting the components again", "version", again)
			s.drop(run)
			res, run, err = s.attempt(ctx, m, asked, version)
		}
	}
	if err == nil {
		err = run.changed()
	}
	if err != nil {
		if !run.stays(err) {
			s.drop(run)
		}
		return nil, err
	}
	return res, nil
}

// attempt initializes the components in a version: those of the last handshake, or new ones
// if there are none.
func (s *chain) attempt(ctx context.Context, m proxied, asked, version int) (_ json.RawMessage, run *chainRun, err error) {
	params := m.raw()
	if version == 1 && asked > 1 {
		if params, err = initializeV1(params); err != nil {
			return nil, nil, err
		}
	}
	s.mu.Lock()
	if run = s.run; run != nil {
		clear(run.answers)
		clear(run.asked)
		run.refused = false
	}
	s.mu.Unlock()
	if run == nil {
		if run, err = s.start(ctx); err != nil {
			return nil, nil, err
		}
	}
	m.params, m.checked = &params, false
	res, err := run.links[0].request(ctx, m)
	return res, run, err
}

// stays reports whether the components may be asked again after they have failed with an
// error: nothing but an answer is wrong, and it is that of the agent or of a proxy in this
// process. The client then asks what it would ask the agent itself, and may have no other
// way to it.
func (run *chainRun) stays(err error) bool {
	if run == nil || !isSaid(err) {
		return false
	}
	run.mu.Lock()
	defer run.mu.Unlock()
	return run.exit == nil && !run.broken() && (run.refused || run.own())
}

// broken reports whether a connection to a component has ended.
func (run *chainRun) broken() bool {
	return slices.ContainsFunc(run.ends, func(e *proxyEnd) bool { return isClosed(e.conn.Done()) })
}

// own reports whether all proxies are in this process.
func (run *chainRun) own() bool { return len(run.nodes) == len(run.c.Proxies) }

// lower returns the version in which the components must be started again because a proxy
// speaks no later one, or 0.
func (run *chainRun) lower(version int) int {
	if run == nil {
		return 0
	}
	run.mu.Lock()
	defer run.mu.Unlock()
	for i, end := range run.answers[:len(run.answers)-1] {
		if end > 0 && end < version && run.asked[i+1] < version {
			return end
		}
		if next := run.answers[i+1]; end > 0 && end < version && next > end {
			return end
		}
	}
	return 0
}

// changed returns an error if a proxy has answered another version than its successor.
func (run *chainRun) changed() error {
	run.mu.Lock()
	defer run.mu.Unlock()
	for i, answered := range run.answers[:len(run.answers)-1] {
		if next := run.answers[i+1]; answered > 0 && next > 0 && answered != next {
			return componentError("version_changed", run.names[i])
		}
	}
	return nil
}

// note keeps a version of a component.
func (run *chainRun) note(of []int, i, version int) {
	run.mu.Lock()
	defer run.mu.Unlock()
	of[i] = version
}

// passed reports whether a proxy has asked its successor, and so knows what proxies are asked.
func (run *chainRun) passed(i int) bool {
	run.mu.Lock()
	defer run.mu.Unlock()
	return slices.ContainsFunc(run.asked[i+1:], func(v int) bool { return v > 0 })
}

// componentLink sends messages towards the agent.
type componentLink struct {
	run   *chainRun
	i     int
	proxy bool // it has a successor
	end   *proxyEnd
}

func (l *componentLink) notify(ctx context.Context, m proxied) error {
	return bareLink{l.end}.notify(ctx, m)
}

func (l *componentLink) request(ctx context.Context, m proxied) (json.RawMessage, error) {
	if m.method != methodInitialize {
		return bareLink{l.end}.request(ctx, m)
	}
	l.run.note(l.run.asked, l.i, versionOf(m.raw()))
	if l.proxy {
		m.method = methodProxyInit
	}
	res, err := bareLink{l.end}.request(ctx, m)
	if l.proxy && isNoProxy(m.method, err) && !l.run.passed(l.i) {
		m.method = methodOldProxyInit
		l.end.old.Store(true)
		if res, err = (bareLink{l.end}).request(ctx, m); isNoProxy(m.method, err) {
			return nil, componentError("not_a_proxy", l.end.name)
		}
	}
	var refusal *jsonrpc.RawError // it came over the connection
	switch {
	case err == nil:
		l.run.note(l.run.answers, l.i, versionOf(res))
	case !l.proxy && errors.As(err, &refusal):
		l.run.mu.Lock()
		l.run.refused = true
		l.run.mu.Unlock()
	}
	return res, err
}

// isNoProxy reports whether a component does not know what a proxy is asked first, by its
// answer to method. Agents of package acp, and conductors in front of one, do not look at the
// method: they say that initialize comes first.
func isNoProxy(method string, err error) bool {
	var said *jsonrpc.Error
	if !errors.As(err, &said) {
		return false
	}
	if said.Code == jsonrpc.CodeMethodNotFound {
		return true
	}
	return slices.ContainsFunc([]error{errNotRouted(), notInitialized(method)}, func(first error) bool {
		var e *jsonrpc.Error
		return errors.As(first, &e) && said.Code == e.Code && said.Message == e.Message && bytes.Equal(said.Data, e.Data)
	})
}
