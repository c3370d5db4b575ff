package agent

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/model"
	scripts "github.com/goacp/acp/cmd/acp/internal/model/script"
)

// shelf is a choice of models.
type shelf struct {
	model.Source // for what is not called

	t      *testing.T
	refs   []string // that are known at once
	more   []string // that are found when somebody looks
	looked int
	made   map[string]*witness
}

func (s *shelf) List(_ context.Context, look bool) []model.Choice {
	all := s.refs
	if look {
		s.looked++
		all = append(all[:len(all):len(all)], s.more...)
	}
	var choices []model.Choice
	for _, ref := range all {
		choices = append(choices, model.Choice{Ref: ref, Name: "Model " + ref})
	}
	return choices
}

func (s *shelf) Effort() string { return "high" }

func (s *shelf) Open(ref string) (model.Model, error) {
	if strings.HasPrefix(ref, "broken") {
		return nil, errors.New("it wants a key")
	}
	if w := s.made[ref]; w != nil {
		return w, nil
	}
	m, err := scripts.Parse("always\nsay I am " + ref)
	if err != nil {
		s.t.Fatal(err)
	}
	_, id, _ := strings.Cut(ref, "/")
	m.Is = model.Info{Provider: "p", ID: id, Name: id, Context: 200_000}
	if id != "plain" {
		m.Is.Efforts = []string{"low", "high"}
	}
	if s.made == nil {
		s.made = map[string]*witness{}
	}
	s.made[ref] = &witness{Model: m}
	return s.made[ref], nil
}

// value returns the current value of an option; "" if there is none.
func value(s *acp.ClientSession, id acp.SessionConfigID) string {
	for _, o := range s.Options() {
		if sel, ok := o.Kind.(*acp.SessionConfigSelect); ok && o.ConfigID == id {
			return string(sel.CurrentValue)
		}
	}
	return ""
}

func change(t *testing.T, k *talk, id acp.SessionConfigID, v acp.SessionConfigValueID) {
	t.Helper()
	if err := k.session.SetOption(t.Context(), id, &acp.SessionConfigOptionValueID{Value: v}); err != nil {
		t.Fatal(err)
	}
}

// TestChooseModel: the model and its effort are options of a session, which can be changed
// in it, and hold when it is resumed.
func TestChooseModel(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		s := &shelf{t: t, refs: []string{"broken/a", "p/first", "p/second", "p/plain"}}
		k := start(t, v, func(k *talk) { k.shelf = s })
		if m, e := value(k.session, optionModel), value(k.session, optionEffort); m != "p/first" || e != "high" {
			t.Errorf("it begins with %q and %q", m, e)
		}
		contains(t, k.tell("hi"), "I am p/first")
		if r := s.made["p/first"].requests[0]; r.Effort != "high" {
			t.Errorf("effort %q", r.Effort)
		}
		change(t, k, optionModel, "p/second")
		change(t, k, optionEffort, "low")
		contains(t, k.tell("and you?"), "I am p/second")
		r := s.made["p/second"].requests[0]
		if r.Effort != "low" || len(r.Messages) != 3 || r.Prefix != s.made["p/first"].requests[0].Prefix {
			t.Errorf("%q, %d messages", r.Effort, len(r.Messages))
		}
		change(t, k, optionEffort, valueDefault)
		k.tell("again")
		if r := s.made["p/second"].requests[1]; r.Effort != "" {
			t.Errorf("effort %q", r.Effort)
		}
		err := k.session.SetOption(t.Context(), optionModel, &acp.SessionConfigOptionValueID{Value: "broken/a"})
		if err == nil || value(k.session, optionModel) != "p/second" {
			t.Errorf("%v, then %q", err, value(k.session, optionModel))
		}

		s.refs = []string{"p/other", "p/second"} // other settings
		k.reopen()
		if m := value(k.session, optionModel); m != "p/second" {
			t.Errorf("it resumes with %q", m)
		}
		change(t, k, optionModel, "p/other")
		contains(t, k.tell("hi"), "I am p/other")
	})
}

// TestPlainModel: a model that does not think has no option for that.
func TestPlainModel(t *testing.T) {
	s := &shelf{t: t, refs: []string{"p/plain", "p/first"}}
	k := start(t, 2, func(k *talk) { k.shelf = s })
	if e := value(k.session, optionEffort); e != "" {
		t.Errorf("effort %q", e)
	}
	change(t, k, optionModel, "p/first")
	k.tell("hi")
	if e := value(k.session, optionEffort); e != valueDefault {
		t.Errorf("effort %q", e)
	}
}

// TestSettingsCount: a session whose model nobody has chosen follows the settings.
func TestSettingsCount(t *testing.T) {
	s := &shelf{t: t, refs: []string{"p/first"}}
	k := start(t, 2, func(k *talk) { k.shelf = s })
	k.tell("hi")
	s.refs = []string{"p/second", "p/first"}
	k.reopen()
	if m := value(k.session, optionModel); m != "p/second" {
		t.Errorf("it resumes with %q", m)
	}
}

// TestLook: without a model, servers are looked for with the first prompt, once.
func TestLook(t *testing.T) {
	s := &shelf{t: t, more: []string{"p/found"}}
	k := start(t, 2, func(k *talk) { k.shelf = s })
	k.tell("/help")
	if s.looked != 0 || value(k.session, optionModel) != "" {
		t.Errorf("looked %d times", s.looked)
	}
	contains(t, k.tell("hi"), "I am p/found")
	if m := value(k.session, optionModel); s.looked != 1 || m != "p/found" {
		t.Errorf("looked %d times, %q", s.looked, m)
	}

	s = &shelf{t: t}
	k = start(t, 2, func(k *talk) { k.shelf = s })
	contains(t, k.tell("hi"), "no language model", "`ANTHROPIC_API_KEY`", "`acp models`")
	k.tell("hi")
	if s.looked != 1 {
		t.Errorf("looked %d times", s.looked)
	}
}
