package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

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
		_ = w.reached(t.Context(), gs.own.Head().Seq, nil)
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
	gs.numbered(ruled, gs.own.Head().Seq)
	a := question("Now?")
	gs.numbered(a, gs.own.Head().Seq+1)
	gs.numbered(a, gs.own.Head().Seq)
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

// TestAnswersTogether: of answers that arrive together, one counts, and so it does when nobody is to answer any more.
func TestAnswersTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, patience := range []time.Duration{time.Hour, time.Second} {
			s := &session{id: "s", ctx: t.Context(), g: &Gateway{cfg: Config{AskTimeout: patience}}}
			a := new(ask)
			a.begin()
			var won atomic.Int64
			var winner atomic.Value
			for _, by := range []string{"jo", "al", "kim", "lee"} {
				time.AfterFunc(time.Minute, func() {
					if d := (decision{Option: "yes", by: by}); a.settle(d) {
						won.Add(1)
						winner.Store(by)
					}
				})
			}
			d, err := s.await(t.Context(), a)
			time.Sleep(time.Hour)
			switch {
			case patience == time.Second && (!errors.Is(err, errNoAnswer) || !d.dismissed() || won.Load() > 0):
				t.Errorf("too late: %+v, %v, %d answers count", d, err, won.Load())
			case patience == time.Hour && (err != nil || won.Load() != 1 || d.by != winner.Load()):
				t.Errorf("%+v, %v, %d answers count", d, err, won.Load())
			}
		}
	})
}

// TestAnswerRecord: a decision is what its record says.
func TestAnswerRecord(t *testing.T) {
	options := []acp.PermissionOption{{OptionID: "cancelled", Name: "No", Kind: acp.PermissionOptionKindRejectOnce}, {OptionID: "yes", Name: "Yes", Kind: acp.PermissionOptionKindAllowOnce}}
	permission := &ask{permission: &acp.Permission{Options: options}}
	form := &ask{form: &acp.FormRequest{}}
	for name, tt := range map[string]struct {
		a *ask
		d decision
	}{
		"an option":             {permission, decision{Option: "yes", by: "jo", From: "Jo", Key: "k"}},
		"an unfortunate one":    {permission, decision{Option: "cancelled"}},
		"one that is not there": {permission, decision{Option: "other"}},
		"none":                  {permission, decision{}},
		"a form":                {form, decision{Accepted: true, Content: map[string]json.RawMessage{"a": []byte("1")}}},
		"declined":              {form, decision{Declined: true}},
		"left":                  {form, decision{}},
	} {
		r := tt.a.answer(&tt.d)
		r.Content = tt.d.Content
		var kept records.Decided
		if err := json.Unmarshal(encode(r), &kept); err != nil {
			t.Fatal(err)
		}
		if got := tt.a.answered(&kept); !reflect.DeepEqual(got, tt.d) {
			t.Errorf("%s: %+v, want %+v", name, got, tt.d)
		}
	}
}
