package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// A database of this kind loses what it says of an answer that it has committed, some times.
type lossy struct {
	engine.Database
	times atomic.Int64
}

func (l *lossy) Answer(ctx context.Context, session, id string, d engine.Decision) (engine.Ask, bool, error) {
	a, won, err := l.Database.Answer(ctx, session, id, d)
	if won && l.times.Add(-1) >= 0 {
		return engine.Ask{}, false, errors.New("the connection is lost")
	}
	return a, won, err
}

// TestAnswerUnacknowledged: an answer whose commit was not acknowledged reaches the agent, whether a client gives it or
// a rule, and does not count as one that came too late.
func TestAnswerUnacknowledged(t *testing.T) {
	for name, rule := range map[string]acp.PermissionOptionID{"client": "", "rule": "allow_once"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := new(lossy)
			l.times.Store(1)
			a := joinedMember(t, dir, "a", logOver(t, dir, leaseOfTests, &l.Database, l), talking(nil))
			a.g.cfg.Policy = func(string, []string) Policy { return &rights{prompts: 1, option: rule} }
			c := a.connect(1, func(c *acp.Client) {
				c.RequestPermission = func(_ context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
					return r.Allow(), nil
				}
			})
			s := c.new(t)
			text, _, err := s.Prompt(t.Context(), acp.Text("ask")).Text()
			if err != nil || text != "allow_oncetrue" {
				t.Errorf("%q, %v", text, err)
			}
			if n := l.times.Load(); n > 0 {
				t.Error("no answer was lost")
			}
			if err := a.log.Read(t.Context(), string(s.ID()), 0, func(r engine.Record) error {
				if r.Kind == kindLate {
					t.Errorf("an answer came too late: %s", r.Data)
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPermissionNumbered: a client that came between the commit of a question and the moment at which the question has
// its number is asked, too, unless the rules answer it.
func TestPermissionNumbered(t *testing.T) {
	r := newRig(t, talking(nil))
	asked := make(chan *acp.PermissionRequest, 3)
	s := r.connect(1, asking(func(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
		asked <- req
		return req.Allow(), nil
	})).new(t)
	gs := r.g.session(string(s.ID()))
	gs.mu.Lock()
	watchers := slices.Collect(maps.Keys(gs.watchers))
	gs.mu.Unlock()
	for _, w := range watchers {
		_ = w.reached(t.Context(), gs.log.last(), nil)
	}
	question := func(title string) *ask {
		a := &ask{permission: &acp.Permission{Title: title}}
		a.begin()
		a.ctx, a.cancel = context.WithCancel(t.Context())
		t.Cleanup(a.cancel)
		return a
	}
	ruled := question("Is there a rule?")
	ruled.rule = &decision{Option: "reject_once"}
	gs.numbered(ruled, gs.log.last())
	a := question("Now?")
	gs.numbered(a, gs.log.last()+1)
	gs.numbered(a, gs.log.last())
	if req := <-asked; req.Title != "Now?" || len(asked) > 0 {
		t.Errorf("%+v, and %d more", req, len(asked))
	}
}

// TestQuestionsInOrder: of several open questions a session knows which was asked first, and so does a client that comes,
// in whatever order it gets them.
func TestQuestionsInOrder(t *testing.T) {
	r := newRig(t, talking(nil))
	s := r.connect(2).new(t)
	const n = 20
	say(t, s, strings.Repeat("word ", n))
	gs := r.g.session(string(s.ID()))
	want := make(map[string]uint64)
	gs.mu.Lock()
	for i := range uint64(n) {
		a := &ask{seq: i + 1}
		a.begin()
		a.ctx, a.cancel = context.WithCancel(t.Context())
		t.Cleanup(a.cancel)
		switch i % 3 {
		case 0:
			a.permission = &acp.Permission{Title: "May I?"}
		case 1:
			a.form = &acp.FormRequest{Message: "Who?", Meta: json.RawMessage(`{"other":{}}`)}
		case 2:
			a.link = &acp.LinkRequest{Message: "Log in", URL: "https://example.com/"}
		}
		gs.asks[a.id], want[a.id] = a, a.seq
	}
	gs.mu.Unlock()
	for i, a := range gs.questions(n / 2) {
		if a.seq != uint64(i)+1 {
			t.Fatalf("question %d was asked as number %d", i, a.seq)
		}
	}
	metas := make(chan json.RawMessage, n)
	_, asPage := hears(false)
	r.connect(2, asPage, asking(func(ctx context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
		metas <- req.Meta
		<-ctx.Done()
		return acp.CancelPermission(), ctx.Err()
	}), func(c *acp.Client) {
		c.Elicit = func(ctx context.Context, req *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
			metas <- req.Meta
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}).load(t, s.ID())
	got := make(map[string]uint64)
	for range n {
		var m map[string]struct {
			Ask    string
			Cursor uint64
		}
		if err := json.Unmarshal(<-metas, &m); err != nil {
			t.Fatal(err)
		}
		got[m[metaKey].Ask] = m[metaKey].Cursor
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A database of this kind decides a question once it may.
type deciding struct {
	engine.Database
	may   chan struct{}
	calls atomic.Int64
}

func (d *deciding) Answer(ctx context.Context, _, id string, made engine.Decision) (engine.Ask, bool, error) {
	d.calls.Add(1)
	select {
	case <-d.may:
		return engine.Ask{ID: id, State: engine.AskAnswered, Decision: made}, true, nil
	case <-ctx.Done():
		return engine.Ask{}, false, ctx.Err()
	}
}

// TestAnswersTogether: of answers that arrive together, one is committed. The others learn of it without a query, which the
// withdrawal of the question would abort. If the one being committed is abandoned, the next takes its turn.
func TestAnswersTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &deciding{may: make(chan struct{})}
		log := logOver(t, t.TempDir(), time.Minute, &db.Database, db)
		s := &session{id: "s", g: &Gateway{cfg: Config{Log: log}}}
		a := new(ask)
		a.begin()
		a.id = "a"
		gone, leave := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { first <- s.commitAnswer(gone, a, decision{Option: "no", by: "first"}) }()
		synctest.Wait()
		bored, stop := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { left <- s.commitAnswer(bored, a, decision{Option: "no", by: "bored"}) }()
		synctest.Wait()
		stop()
		if err := <-left; !errors.Is(err, context.Canceled) || db.calls.Load() != 1 {
			t.Errorf("of one whose turn has not come: %v", err)
		}
		errs := make(chan error, 4)
		for range cap(errs) {
			go func() { errs <- s.commitAnswer(t.Context(), a, decision{Option: "yes", by: "jo"}) }()
		}
		synctest.Wait()
		if n := db.calls.Load(); n != 1 {
			t.Errorf("%d answers are committed at the same time", n)
		}
		leave()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("of one that nobody waits for: %v", err)
		}
		close(db.may)
		won := 0
		for range cap(errs) {
			err := <-errs
			said, late := errors.AsType[*engine.AnsweredError](err)
			switch {
			case err == nil:
				won++
			case !late || said.Session != "s" || said.ID != "a" || said.Decision.By != "jo" || string(said.Decision.Data) != `{"option":"yes"}`:
				t.Errorf("%v", err)
			}
		}
		if n := db.calls.Load(); won != 1 || n != 2 {
			t.Errorf("%d have decided, with %d calls of the database", won, n)
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestAnswerAtTheEnd: when nobody is to answer any more, an answer whose commit hangs is given up, those that wait behind it
// are not committed, and what is committed in the end is what the agent hears.
func TestAnswerAtTheEnd(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration // from when on the database answers
		want  acp.PermissionOptionID
	}{
		{"the answer is committed in time", answerTime / 2, "yes"},
		{"it is not", answerTime + time.Second, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := &deciding{may: make(chan struct{})}
				log := logOver(t, t.TempDir(), time.Minute, &db.Database, db)
				s := &session{id: "s", ctx: t.Context(), g: &Gateway{cfg: Config{Log: log, AskTimeout: time.Hour}}}
				a := new(ask)
				a.begin()
				go func() { _ = s.commitAnswer(t.Context(), a, decision{Option: "yes", by: "jo"}) }()
				synctest.Wait()
				behind := make(chan error, 1)
				go func() { behind <- s.commitAnswer(t.Context(), a, decision{Option: "no", by: "al"}) }()
				synctest.Wait()
				time.AfterFunc(tt.after, func() { close(db.may) })
				s.g.cfg.AskTimeout = 0 // from now on
				d, err := s.await(t.Context(), a)
				if d.Option != tt.want || d.dismissed() != errors.Is(err, errNoAnswer) {
					t.Errorf("%+v, %v", d, err)
				}
				if err := <-behind; !errors.Is(err, engine.ErrAnswered) && !errors.Is(err, engine.ErrExpired) {
					t.Errorf("one that waited: %v", err)
				}
				if err := log.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
