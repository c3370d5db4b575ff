package loop

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/script"
	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A stage is a host whose log says what happened, in order.
type stage struct {
	mu     sync.Mutex
	log    []string
	use    func(ctx context.Context, u *model.ToolUse) *model.ToolResult
	steer  [][]model.Part
	keep   error
	used   error
	fit    func(messages []*model.Message, overflow bool) ([]*model.Message, []model.Usage, error)
	fewer  *model.Prefix
	mended *Mended
	drafts string
	reads  map[string]string // by id: reads begin early, so they are noted when they have come
}

func (s *stage) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

func (s *stage) Say(text string)        { s.note("say %s", text) }
func (s *stage) Think(text string)      { s.note("think %s", text) }
func (s *stage) Wait(e *model.Retrying) { s.note("wait %v", e.Err) }
func (s *stage) Reads(name string) bool { return name == "read" }

func (s *stage) Used(u model.Usage) error {
	return s.used
}

func (s *stage) Bill(e *model.Spent, like model.Usage) model.Usage {
	u := e.Usage
	if !u.Known {
		u = model.Usage{Input: like.Read(), Known: true}
	}
	u.Output = max(u.Output, e.Written)
	return u
}

func (s *stage) Lost(u model.Usage) { s.note("lost %d %d", u.Read(), u.Output) }

func (s *stage) Keep(m *model.Message) error {
	s.note("keep %s", shown(m))
	return s.keep
}

func (s *stage) Fit(_ context.Context, messages []*model.Message, overflow bool) ([]*model.Message, []model.Usage, error) {
	if s.fit == nil {
		return messages, nil, nil
	}
	return s.fit(messages, overflow)
}

func (s *stage) Steer() []model.Part {
	if len(s.steer) == 0 {
		return nil
	}
	said := s.steer[0]
	s.steer = s.steer[1:]
	return said
}

func (s *stage) Use(ctx context.Context, u *model.ToolUse) *model.ToolResult {
	if s.use != nil {
		return s.use(ctx, u)
	}
	text := fmt.Sprintf("use %s %s", u.Name, u.Input)
	if !s.Reads(u.Name) {
		s.note("%s", text)
		return returned(u, "ok", false)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reads == nil {
		s.reads = map[string]string{}
	}
	s.reads[u.ID] = text
	return returned(u, "ok", false)
}

func (s *stage) Came(r *model.ToolResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text, ok := s.reads[r.ID]; ok {
		s.log = append(s.log, text)
	}
}

func (s *stage) News() []model.Part { return nil }

func (s *stage) Fewer(*model.Error) *model.Prefix { return s.fewer }

func (s *stage) Mend(m *Mended) {
	s.note("mend %s", m.What)
	s.mended = m
}

func (s *stage) Draft(id, name, piece string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drafts += fmt.Sprintf("%s(%s)", name, piece)
}

func (s *stage) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drafts += "."
}

func returned(u *model.ToolUse, text string, failed bool) *model.ToolResult {
	return &model.ToolResult{ID: u.ID, Failed: failed, Parts: []model.Part{&model.Text{Text: text}}}
}

// shown is a message in a line.
func shown(m *model.Message) string {
	var parts []string
	for _, p := range m.Parts {
		switch p := p.(type) {
		case *model.Text:
			parts = append(parts, p.Text)
		case *model.Thought:
			parts = append(parts, "("+p.Text+")")
		case *model.ToolUse:
			parts = append(parts, "["+p.Name+"]")
		case *model.ToolResult:
			text := "result"
			if p.Failed {
				text = "failure"
			}
			for _, q := range p.Parts {
				if q, ok := q.(*model.Text); ok {
					text += ": " + q.Text
				}
			}
			parts = append(parts, "<"+text+">")
		}
	}
	return string(m.Role) + " " + strings.Join(parts, " ")
}

func turn(t *testing.T, text string, s *stage) *Turn {
	t.Helper()
	m, err := script.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return &Turn{Model: m, Prefix: &model.Prefix{}, Messages: []*model.Message{{Role: model.User, Parts: []model.Part{&model.Text{Text: "go"}}}}, Host: s}
}

func said(text string) []model.Part { return []model.Part{&model.Text{Text: text}} }

func TestRun(t *testing.T) {
	fails := func(_ context.Context, u *model.ToolUse) *model.ToolResult { return returned(u, "no", true) }
	for _, tc := range []struct {
		name   string
		script string
		stage  *stage
		limits Limits
		want   []string
		stop   Stop
		detail string
		err    string
		left   int // what the user has said that is for the next prompt
	}{
		{name: "answer", script: "think hm\nsay hi", stop: Done, want: []string{"think hm", "say hi", "keep assistant (hm) hi"}},
		{
			name: "tool", script: "say look\nuse write {\"a\":1}\n---\nsay done", stop: Done,
			want: []string{"say look", "keep assistant look [write]", `use write {"a":1}`, "keep user <result: ok>", "say done", "keep assistant done"},
		},
		{
			name: "tools in order", script: "use read 1\nuse write 2\nuse write 3\n---\nsay done", stop: Done,
			want: []string{"keep assistant [read] [write] [write]", "use read 1", "use write 2", "use write 3", "keep user <result: ok> <result: ok> <result: ok>", "say done", "keep assistant done"},
		},
		{
			name: "said while tools run", script: "use write 1\nuse write 2\n---\nsay done", stop: Done, stage: &stage{steer: [][]model.Part{nil, said("stop that")}},
			want: []string{"keep assistant [write] [write]", "use write 1", "keep user <result: ok> <failure: skipped: the user said “stop that” in the meantime; see below> stop that", "say done", "keep assistant done"},
		},
		{
			name: "said before tools run", script: "use write 1\n---\nsay done", stop: Done, stage: &stage{steer: [][]model.Part{said("stop that")}},
			want: []string{"keep assistant [write]", "keep user <failure: skipped: the user said “stop that” in the meantime; see below> stop that", "say done", "keep assistant done"},
		},
		{
			name: "said at the end", script: "say one\n---\nsay two", stop: Done, stage: &stage{steer: [][]model.Part{said("more")}},
			want: []string{"say one", "keep assistant one", "keep user more", "say two", "keep assistant two"},
		},
		{name: "refused", script: "say no\nstop refused", stop: Refused, want: []string{"say no", "keep assistant no"}},
		{name: "too long", script: "say a\nstop max_tokens", stop: MaxTokens, want: []string{"say a", "keep assistant a"}},
		{
			name: "too long after a tool", script: "use write 1\nstop max_tokens\n---\nsay more", stop: MaxTokens,
			want: []string{"keep assistant [write]", "use write 1", "keep user <result: ok>"},
		},
		{name: "paused", script: "say a\nstop paused\n---\nsay b", stop: Done, want: []string{"say a", "keep assistant a", "say b", "keep assistant b"}},
		{
			name: "empty answer", script: "think hm\n---\nthink so", stop: Empty, detail: SaidNothing,
			want: []string{"think hm", "keep assistant (hm)", "keep user " + nudges[SaidNothing], "think so", "keep assistant (so)"},
		},
		{
			name: "an answer after a nudge", script: "use write 1\n---\nthink hm\n---\nsay done", stop: Done,
			want: []string{"keep assistant [write]", "use write 1", "keep user <result: ok>", "think hm", "keep assistant (hm)", "keep user " + nudges[SaidNothing], "say done", "keep assistant done"},
		},
		{name: "error", script: "say a\nfail overloaded busy", err: "script: busy (overloaded)", want: []string{"say a", "keep assistant a"}},
		{name: "error at once", script: "fail auth no key", err: "script: no key (auth)"},
		{
			name: "requests", script: "use write 1\n---\nuse write 2\n---\nsay never", limits: Limits{Requests: 2}, stop: Requests,
			want: []string{"keep assistant [write]", "use write 1", "keep user <result: ok>", "keep assistant [write]", "use write 2", "keep user <result: ok>"},
		},
		{
			name: "repeated failures", script: "always\nuse write 1", stop: Repeats, detail: "write", stage: &stage{use: fails},
			want: []string{
				"keep assistant [write]", "keep user <failure: no>", "keep assistant [write]", "keep user <failure: no>",
				"keep assistant [write]", "keep user <failure: no: This call has failed 3 times with the same input. Do something else, or tell the user what is in the way.>",
				"keep assistant [write]", "keep user <failure: no>",
			},
		},
		{
			name: "said at the last request", script: "use write 1\n---\nsay never", limits: Limits{Requests: 1}, stop: Requests, left: 1,
			stage: &stage{steer: [][]model.Part{said("stop that")}}, want: []string{"keep assistant [write]", "use write 1", "keep user <result: ok>"},
		},
		{
			name: "said after the last answer", script: "say one\n---\nsay never", limits: Limits{Requests: 1}, stop: Done, left: 1,
			stage: &stage{steer: [][]model.Part{said("more")}}, want: []string{"say one", "keep assistant one"},
		},
		{
			name: "said before an answer that is too long", script: "use write 1\nstop max_tokens\n---\nsay never", stop: MaxTokens, left: 1,
			stage: &stage{steer: [][]model.Part{said("stop that")}}, want: []string{"keep assistant [write]", "use write 1", "keep user <result: ok>"},
		},
		{
			name: "said as a call has failed again", script: "use write 1\n---\nuse write 1\n---\nuse write 1\n---\nuse write 1\n---\nsay done", stop: Done,
			stage: &stage{use: fails, steer: [][]model.Part{7: said("try 2")}},
			want: []string{
				"keep assistant [write]", "keep user <failure: no>", "keep assistant [write]", "keep user <failure: no>",
				"keep assistant [write]", "keep user <failure: no: This call has failed 3 times with the same input. Do something else, or tell the user what is in the way.>",
				"keep assistant [write]", "keep user <failure: no> try 2", "say done", "keep assistant done",
			},
		},
		{name: "not kept", script: "say a", stage: &stage{keep: errors.New("disk full")}, err: "disk full", want: []string{"say a", "keep assistant a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := tc.stage
			if s == nil {
				s = &stage{}
			}
			tr := turn(t, tc.script, s)
			tr.Limits = tc.limits
			end, err := Run(t.Context(), tr)
			if got := fmt.Sprint(err); tc.err != "" && got != tc.err || tc.err == "" && err != nil {
				t.Errorf("error %v, want %s", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, s.log); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if err == nil && (end.Stop != tc.stop || end.Detail != tc.detail) {
				t.Errorf("stopped: %s %q, want %s %q", end.Stop, end.Detail, tc.stop, tc.detail)
			}
			if len(s.steer) != tc.left {
				t.Errorf("%d things that the user has said were left, want %d", len(s.steer), tc.left)
			}
			paired(t, end.Messages)
		})
	}
}

// paired holds that each wish for a tool is followed by its result.
func paired(t *testing.T, messages []*model.Message) {
	t.Helper()
	for i, m := range messages {
		var want, got []string
		for _, u := range usesOf(m) {
			want = append(want, u.ID)
		}
		if i+1 < len(messages) {
			for _, p := range messages[i+1].Parts {
				if r, ok := p.(*model.ToolResult); ok {
					got = append(got, r.ID)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("message %d: results (-want +got)\n%s", i, diff)
		}
	}
}

// TestCost: a turn ends once it has cost too much.
func TestCost(t *testing.T) {
	s := &stage{steer: [][]model.Part{nil, nil, said("for the next prompt")}}
	tr := turn(t, "use write 1\nusage input=1000000 output=100000\n---\nuse write 2\nusage read=1000000\n---\nsay never", s)
	tr.Model.(*script.Model).Is = model.Info{Provider: "p", ID: "m", Price: model.Price{Input: 3, Output: 15, CacheRead: 0.3, Currency: "USD"}}
	tr.Limits.Cost = 4.51
	end, err := Run(t.Context(), tr)
	if err != nil || end.Stop != Cost || end.Requests != 2 {
		t.Errorf("%+v, %v", end, err)
	}
	if len(s.steer) != 1 {
		t.Error("what the user said when the cost was reached is lost")
	}
	if got := fmt.Sprintf("%.2f", end.Cost); got != "4.80" || end.Usage.Read() != 2_000_000 {
		t.Errorf("cost %s, %+v", got, end.Usage)
	}
}

// TestParallel: tools that only read run beside each other, eight at a time.
func TestParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, most := 0, 0
		s := &stage{}
		s.use = func(_ context.Context, u *model.ToolUse) *model.ToolResult {
			s.mu.Lock()
			running++
			most = max(most, running)
			s.mu.Unlock()
			time.Sleep(time.Second)
			s.mu.Lock()
			running--
			s.mu.Unlock()
			return returned(u, string(u.Input), false)
		}
		start := time.Now()
		end, err := Run(t.Context(), turn(t, strings.Repeat("use read 1\n", 12)+"---\nsay done", s))
		if err != nil || end.Stop != Done {
			t.Errorf("%+v, %v", end, err)
		}
		if most != MaxParallel || time.Since(start) != 2*time.Second {
			t.Errorf("%d at once, %v in all", most, time.Since(start))
		}
		paired(t, end.Messages)
	})
}

// TestCancelled: a turn that is cancelled ends soon, with a conversation that can be sent.
func TestCancelled(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		want   []string
	}{
		"while it speaks":  {"say one\nwait 1h\nsay two", []string{"say one", "keep assistant one"}},
		"before it speaks": {"wait 1h\nsay two", nil},
		"while a tool runs": {
			"use write 1\nuse write 2\n---\nsay never",
			[]string{"keep assistant [write] [write]", "keep user <failure: interrupted> <failure: not run: the user has cancelled the turn>"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stage{use: func(ctx context.Context, u *model.ToolUse) *model.ToolResult {
					<-ctx.Done()
					return returned(u, "interrupted", true)
				}}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				end, err := Run(ctx, turn(t, tc.script, s))
				if err != nil || end.Stop != Cancelled {
					t.Errorf("%+v, %v", end, err)
				}
				if diff := cmp.Diff(tc.want, s.log); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				paired(t, end.Messages)
			})
		})
	}
}

// TestMany: of an answer that asks for too many tools, the first ones are run.
func TestMany(t *testing.T) {
	s := &stage{}
	end, err := Run(t.Context(), turn(t, strings.Repeat("use read 1\n", MaxUses+5)+"---\nsay done", s))
	if err != nil || len(usesOf(end.Messages[0])) != MaxUses {
		t.Errorf("%d uses, %v", len(usesOf(end.Messages[0])), err)
	}
	paired(t, end.Messages)
}

// A counter is a model that counts its tools from zero in each answer.
type counter struct{ answers int }

func (*counter) Info() model.Info { return model.Info{} }

func (c *counter) Generate(context.Context, *model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		m := &model.Message{Role: model.Assistant, Parts: []model.Part{&model.Text{Text: "hm"}}}
		if c.answers++; c.answers < 4 {
			m.Parts = append(m.Parts, &model.ToolUse{ID: "call_0", Name: "read", Input: []byte("1")}, &model.ToolUse{ID: "call_1", Name: "write", Input: []byte("2")})
		}
		yield(&model.Done{Reason: model.EndTurn, Message: m}, nil)
	}
}

// TestIDs: ids that a server uses again in the next answer are made different, also from
// those of earlier turns.
func TestIDs(t *testing.T) {
	s := &stage{}
	tr := turn(t, "say unused", s)
	tr.Messages = append([]*model.Message{
		{Role: model.User, Parts: said("before")},
		{Role: model.Assistant, Parts: []model.Part{&model.ToolUse{ID: "call_1", Name: "read"}}},
		{Role: model.User, Parts: []model.Part{&model.ToolResult{ID: "call_1"}}},
	}, tr.Messages...)
	tr.Model = &counter{}
	end, err := Run(t.Context(), tr)
	if err != nil || end.Stop != Done {
		t.Fatalf("%+v, %v", end, err)
	}
	seen := map[string]bool{"call_1": true}
	for _, m := range end.Messages {
		for _, u := range usesOf(m) {
			if seen[u.ID] {
				t.Errorf("the id %s is there twice", u.ID)
			}
			seen[u.ID] = true
		}
	}
	if len(seen) != 7 || !seen["call_0"] {
		t.Errorf("ids %v", seen)
	}
	paired(t, end.Messages)
}

// TestPauses: a provider that only pauses does not keep a turn going.
func TestPauses(t *testing.T) {
	end, err := Run(t.Context(), turn(t, "always\nsay a\nstop paused", &stage{}))
	if err != nil || end.Stop != Done || end.Requests != maxPauses+1 {
		t.Errorf("%+v, %v", end, err)
	}
}

// TestFit: a conversation that does not fit is replaced by the one that the host returns,
// once before the request and once more if the model refuses it.
func TestFit(t *testing.T) {
	short := []*model.Message{{Role: model.User, Parts: said("short")}}
	t.Run("before", func(t *testing.T) {
		s := &stage{fit: func([]*model.Message, bool) ([]*model.Message, []model.Usage, error) {
			return short, []model.Usage{{Known: true, Input: 5}}, nil
		}}
		end, err := Run(t.Context(), turn(t, "when short\nsay yes\nusage input=7 output=1", s))
		if err != nil || end.Stop != Done || end.Requests != 2 || end.Usage.Input != 12 {
			t.Errorf("%+v, %v", end, err)
		}
	})
	t.Run("after", func(t *testing.T) {
		s := &stage{}
		s.fit = func(all []*model.Message, overflow bool) ([]*model.Message, []model.Usage, error) {
			s.note("fit %d %v", len(all), overflow)
			if overflow {
				return short, nil, nil
			}
			return all, nil, nil
		}
		tr := turn(t, "when short\nsay yes\n---\nfail overflow too long", s)
		tr.Messages = append([]*model.Message{{Role: model.User, Parts: said("a")}, {Role: model.Assistant, Parts: said("b")}}, tr.Messages...)
		if _, err := Run(t.Context(), tr); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"fit 3 false", "fit 3 true", "say yes", "keep assistant yes"}, s.log); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("nothing to win", func(t *testing.T) {
		end, err := Run(t.Context(), turn(t, "fail overflow too long", &stage{}))
		if e, ok := errors.AsType[*model.Error](err); !ok || e.Kind != model.KindOverflow || end.Requests != 1 {
			t.Errorf("%+v, %v", end, err)
		}
	})
	t.Run("not possible", func(t *testing.T) {
		wrong := errors.New("no room")
		s := &stage{fit: func([]*model.Message, bool) ([]*model.Message, []model.Usage, error) { return nil, nil, wrong }}
		if _, err := Run(t.Context(), turn(t, "say never", s)); !errors.Is(err, wrong) || len(s.log) > 0 {
			t.Errorf("%v, %v", err, s.log)
		}
	})
}

// TestDistrusted: of an answer that the host does not trust only the text is kept.
func TestDistrusted(t *testing.T) {
	wrong := errors.New("cut")
	s := &stage{used: wrong}
	if _, err := Run(t.Context(), turn(t, "say hm\nuse write 1", s)); !errors.Is(err, wrong) {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"say hm", "keep assistant hm"}, s.log); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
