package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// setOption implements place.
func (s *session) setOption(ctx context.Context, id acp.SessionConfigID, v acp.SessionConfigOptionValue) error {
	defer s.changes()()
	b, err := s.backend(ctx, s.g.tenancy.lobby.patience())
	if err != nil {
		return err
	}
	if err := b.session.SetOption(ctx, id, v); err != nil {
		return err
	}
	done, err := s.choose(ctx)
	if err != nil {
		return err
	}
	defer done()
	u := &acp.ConfigOptionUpdate{ConfigOptions: b.session.Options()} // perhaps of a client that was faster
	raw, err := json.Marshal(u)
	if err != nil {
		return err
	}
	if err := s.keep(ctx, func(a *attributes) { a.note(u, raw) }); err != nil {
		return err
	}
	return s.log.put(ctx, kindUpdate, (&records.Update{Update: raw}).Encode(), nil)
}

// choose has nobody else write options down until done is called: those that are written last must be those in force.
func (s *session) choose(ctx context.Context) (done func(), err error) {
	select {
	case s.choosing <- struct{}{}:
		return func() { <-s.choosing }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.ctx.Done():
		return nil, errGone
	}
}

// chosen is what a client was sent of the options, as the log has them.
type chosen struct {
	mu    sync.Mutex // held while they are sent
	last  []acp.SessionConfigOption
	times int
}

// sendOptions sends the client the options.
func (w *watcher) sendOptions(options []acp.SessionConfigOption) error {
	w.chosen.mu.Lock()
	defer w.chosen.mu.Unlock()
	w.chosen.last = passable(options)
	w.chosen.times++
	return w.session.SetOptions(w.chosen.last...)
}

// optionsAgain is called before a client changes an option, and what it returns, afterwards. The answer has the value that the
// client wants. If the client was sent options meanwhile, they may be of somebody who came after it, or the agent may have chosen
// another value: then they are sent once more behind the answer.
func (w *watcher) optionsAgain(ctx context.Context) (after func()) {
	times := func() int {
		w.chosen.mu.Lock()
		defer w.chosen.mu.Unlock()
		return w.chosen.times
	}
	q, before := jsonrpc.RequestFrom(ctx), times()
	return func() {
		if q == nil {
			return
		}
		q.AfterAnswer(func() {
			w.g.work.Go(func() { // a client that does not read holds nobody
				w.chosen.mu.Lock()
				defer w.chosen.mu.Unlock()
				if w.chosen.times != before {
					_ = w.session.SetOptions(w.chosen.last...) // it has left otherwise
				}
			})
		})
	}
}

// inForce returns the values of options as those that they are to begin with.
func inForce(options []acp.SessionConfigOption) (values []acp.InitialOption) {
	for _, o := range options {
		switch k := o.Kind.(type) {
		case *acp.SessionConfigSelect:
			values = append(values, acp.InitialOption{ConfigID: o.ConfigID, Value: &acpv2.SessionConfigOptionValueID{Value: k.CurrentValue}})
		case *acp.SessionConfigBoolean:
			values = append(values, acp.InitialOption{ConfigID: o.ConfigID, Value: &acpv2.SessionConfigOptionValueBoolean{Value: k.CurrentValue}})
		}
	}
	return values
}

// passable returns options of an agent so that they can be passed on: a value in force that is not among the values,
// as with agents that take any model by flag, is added to them.
func passable(options []acp.SessionConfigOption) []acp.SessionConfigOption {
	options = slices.Clone(options)
	for i := range options {
		sel, ok := options[i].Kind.(*acp.SessionConfigSelect)
		if !ok {
			continue
		}
		value := acp.SessionConfigSelectOption{Value: sel.CurrentValue, Name: string(sel.CurrentValue)}
		is := func(o acp.SessionConfigSelectOption) bool { return o.Value == value.Value }
		changed := *sel
		switch list := sel.Options.(type) {
		case acp.SessionConfigSelectOptionList:
			if slices.ContainsFunc(list, is) {
				continue
			}
			changed.Options = append(slices.Clip(list), value)
		case acpv2.SessionConfigSelectGroupList:
			if slices.ContainsFunc(list, func(g acpv2.SessionConfigSelectGroup) bool { return slices.ContainsFunc(g.Options, is) }) {
				continue
			}
			changed.Options = append(slices.Clip(list), acpv2.SessionConfigSelectGroup{
				GroupID: "in-force", Name: "In force", Options: []acp.SessionConfigSelectOption{value},
			})
		case nil:
			changed.Options = acp.SessionConfigSelectOptionList{value}
		default:
			continue
		}
		options[i].Kind = &changed
	}
	return options
}
