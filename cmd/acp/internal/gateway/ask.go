package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// An ask is a question of the agent, until it has an answer.
type ask struct {
	id         string
	title      string
	permission *acp.Permission // one of these
	form       *acp.FormRequest
	link       *acp.LinkRequest

	seq     uint64 // of its record
	ctx     context.Context
	cancel  context.CancelFunc // withdraws the question everywhere
	decided chan decision      // has room for one
	asked   int                // clients that are being asked; guarded by the session's lock
}

// A decision is the answer to an ask, as it is committed.
type decision struct {
	Option   acp.PermissionOptionID     `json:"option,omitempty"`
	Accepted bool                       `json:"accepted,omitempty"`
	Declined bool                       `json:"declined,omitempty"`
	Content  map[string]json.RawMessage `json:"content,omitempty"`
	by       string
}

// dismissed reports whether an answer decides nothing.
func (d *decision) dismissed() bool { return d.Option == "" && !d.Accepted && !d.Declined }

func (d *decision) outcome() string {
	switch {
	case d.Option != "":
		return string(d.Option)
	case d.Accepted:
		return "accepted"
	case d.Declined:
		return "declined"
	}
	return "cancelled"
}

// ask puts a question to everybody who watches, and to those who come, until one of them has answered it
// and the answer is committed.
func (s *session) ask(ctx context.Context, b *backend, a *ask, data []byte) (decision, error) {
	a.id, a.decided = newID("ask_"), make(chan decision, 1)
	a.ctx, a.cancel = context.WithCancel(s.ctx)
	defer a.cancel()
	held, id := b.stream.asked(ctx)
	if held != nil {
		a.id = id
	}
	known := held != nil && held.known
	if known {
		if d, decided, err := s.decide(ctx, a.id); decided || err != nil {
			return d, err
		}
	} else {
		if len(data) > engine.MaxValue {
			data = encode(askRecord{ID: a.id, Title: a.title})
		}
		if _, err := s.own.Ask(ctx, a.id, data); err != nil {
			return decision{}, err
		}
	}
	s.mu.Lock()
	s.asks[a.id] = a
	s.mu.Unlock()
	d := decision{}
	err := s.put(ctx, b, a, held)
	if err == nil {
		d, err = s.await(ctx, a)
	}
	s.mu.Lock()
	delete(s.asks, a.id)
	s.touch()
	s.mu.Unlock()
	a.cancel()
	if e := s.log.put(s.ctx, kindAnswer, encode(answerRecord{a.id, d.by, d.outcome()}), nil); err == nil {
		err = e
	}
	return d, err
}

// put writes a question down, unless that was done before, so that everybody who watches is asked.
func (s *session) put(ctx context.Context, b *backend, a *ask, held *heldAsk) error {
	if held != nil && held.known {
		s.mu.Lock()
		a.seq = held.record
		watchers := slices.Collect(maps.Keys(s.watchers))
		s.mu.Unlock()
		for _, w := range watchers {
			w.ask(a)
		}
		return nil
	}
	r := askRecord{ID: a.id, Title: a.title}
	if held != nil {
		r.Raw, r.stamp = held.raw, b.stream.stamp(held.seq)
	}
	seq, err := s.log.commit(ctx, kindAsk, encode(r))
	if err != nil {
		return err
	}
	if held != nil {
		b.stream.settled(held.seq, false)
		b.stream.mark(r.Marked)
	}
	s.mu.Lock()
	a.seq = seq
	s.mu.Unlock()
	return nil
}

// await waits for the answer. When nobody is to answer any more, that is committed, too, so that a late
// answer is not taken for one.
func (s *session) await(ctx context.Context, a *ask) (decision, error) {
	timer := time.NewTimer(s.g.cfg.AskTimeout)
	defer timer.Stop()
	var err error
	select {
	case d := <-a.decided:
		return d, nil
	case <-timer.C:
		err = errNoAnswer
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	bound, cancel := context.WithTimeout(s.ctx, 5*time.Second)
	defer cancel()
	return decision{}, errors.Join(err, s.commitAnswer(bound, a, decision{}))
}

// commitAnswer decides an ask, unless it is decided.
func (s *session) commitAnswer(ctx context.Context, a *ask, d decision) error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return s.g.cfg.Log.Answer(ctx, s.id, a.id, engine.Decision{By: d.by, Data: data})
}

// answered is called with what a client has answered. If it has dismissed the question, or cannot show it,
// that counts once there is nobody else to decide.
func (s *session) answered(a *ask, d decision) {
	s.mu.Lock()
	a.asked--
	others := a.asked > 0
	s.mu.Unlock()
	if d.dismissed() && others {
		return
	}
	for told := false; ; told = true {
		err := s.commitAnswer(a.ctx, a, d)
		switch {
		case err == nil:
			a.decided <- d // nobody else has committed
			return
		case errors.Is(err, engine.ErrAnswered), errors.Is(err, engine.ErrExpired):
			s.logger().Info("gateway: an answer came too late", "by", d.by)
			return
		case a.ctx.Err() != nil:
			return
		}
		if !told {
			s.logger().Error("gateway: an answer cannot be kept, and is tried again", "error", err)
		}
		timer := time.NewTimer(writeAgain)
		select {
		case <-timer.C:
		case <-a.ctx.Done():
			timer.Stop()
			return
		}
	}
}

// ask puts a question to the client, until it is answered or withdrawn.
func (w *watcher) ask(a *ask) {
	s := w.s
	s.mu.Lock()
	if s.asks[a.id] != a || w.asked[a.id] || !w.who.Approve {
		s.mu.Unlock()
		return
	}
	w.asked[a.id] = true
	a.asked++
	s.mu.Unlock()
	w.work.Go(func() {
		d, err := w.put(a)
		d.by = w.who.User
		if a.ctx.Err() == nil && w.ctx.Err() == nil {
			if err != nil {
				s.logger().Info("gateway: a client cannot answer a question", "error", err)
			}
			s.answered(a, d)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		a.asked--
		delete(w.asked, a.id) // asked again when it is back
	})
}

// put puts a question and returns the client's answer.
func (w *watcher) put(a *ask) (d decision, err error) {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	defer context.AfterFunc(a.ctx, cancel)()
	out := w.session.WithContext(ctx)
	switch {
	case a.permission != nil:
		answer, err := out.Ask(*a.permission)
		if err != nil || answer.Cancelled {
			return d, err
		}
		d.Option = answer.Option.OptionID
		return d, nil
	case a.form != nil:
		answer, err := out.Elicit(*a.form)
		if err != nil {
			return d, err
		}
		d.Accepted, d.Declined, d.Content = answer.Accepted, answer.Declined, answer.Content
	default:
		answer, done, err := out.ElicitURL(*a.link)
		if err != nil {
			return d, err
		}
		d.Accepted, d.Declined = answer.Accepted, answer.Declined
		_ = done()
	}
	return d, nil
}
