package agent

import (
	"context"
	"slices"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/model"
)

// maxChoices bounds the models that are offered.
const maxChoices = 60

// A chosen model is that of a session. session.mu guards it. The zero value is none.
type chosen struct {
	ref     string
	model   model.Model // nil if there is none
	effort  string      // "" is as the model does by itself
	choices []model.Choice
	looked  bool // servers were asked, too
	// first is the model with which the session began, as the journal has it; own says that
	// the user has chosen another one since.
	first string
	own   bool
}

// choose gives the session its model, if there is one.
func (s *session) choose(ctx context.Context, look bool) {
	models := s.agent.modelsOf(s.conn)
	if models == nil {
		return
	}
	all := models.List(ctx, look)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.choice
	c.choices, c.looked = all[:min(len(all), maxChoices)], look
	if c.own && s.use(c.ref) == nil {
		return
	}
	for _, choice := range c.choices {
		err := s.use(choice.Ref)
		if err == nil {
			return
		}
		s.agent.log.Warn("agent: a model cannot be used", "model", choice.Ref, "error", err)
	}
}

// use makes a model the session's. The caller holds mu.
func (s *session) use(ref string) error {
	models := s.agent.modelsOf(s.conn)
	m, err := models.Open(ref)
	if err != nil {
		return err
	}
	c := &s.choice
	if c.model == nil && c.effort == "" {
		c.effort = models.Effort()
	}
	c.ref, c.model = ref, m
	if !slices.Contains(m.Info().Efforts, c.effort) {
		c.effort = ""
	}
	return nil
}

// current returns the model of the session; nil if there is none.
func (s *session) current() model.Model {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.choice.model
}

// find returns the model of the session. If there is none, servers on this machine are
// asked, once.
func (s *session) find(ctx context.Context) model.Model {
	s.mu.Lock()
	m, looked := s.choice.model, s.choice.looked
	s.mu.Unlock()
	if m != nil || looked || s.agent.models == nil {
		return m
	}
	s.choose(ctx, true)
	if m = s.current(); m != nil {
		if err := s.acp.SetOptions(s.options()...); err != nil {
			s.agent.log.Warn("agent: the options of a session cannot be set", "error", err)
		}
	}
	return m
}

// valueDefault is the value of the option for the effort that leaves it to the model.
const valueDefault = "default"

// modelOptions are the options about the model. The caller holds mu.
func (s *session) modelOptions() []acp.SessionConfigOption {
	c := &s.choice
	if c.model == nil {
		return nil
	}
	list := acp.SessionConfigSelectOptionList{}
	has := false
	for _, choice := range c.choices {
		list = append(list, acp.SessionConfigSelectOption{Value: acp.SessionConfigValueID(choice.Ref), Name: choice.Name, Description: choice.About})
		has = has || choice.Ref == c.ref
	}
	info := c.model.Info()
	if !has {
		name := info.Name
		list = append(acp.SessionConfigSelectOptionList{{Value: acp.SessionConfigValueID(c.ref), Name: name}}, list...)
	}
	options := []acp.SessionConfigOption{{
		ConfigID: optionModel, Name: "Model", Category: acp.SessionConfigOptionCategoryModel,
		Description: "The language model that answers",
		Kind:        &acp.SessionConfigSelect{CurrentValue: acp.SessionConfigValueID(c.ref), Options: list},
	}}
	if len(info.Efforts) == 0 {
		return options
	}
	value := c.effort
	if value == "" {
		value = valueDefault
	}
	levels := acp.SessionConfigSelectOptionList{{Value: valueDefault, Name: "Default", Description: "As much as the model does by itself"}}
	for _, e := range info.Efforts {
		levels = append(levels, acp.SessionConfigSelectOption{Value: acp.SessionConfigValueID(e), Name: prose.Sentence(e)})
	}
	return append(options, acp.SessionConfigOption{
		ConfigID: optionEffort, Name: "Effort", Category: acp.SessionConfigOptionCategoryThoughtLevel,
		Description: "How much the model thinks",
		Kind:        &acp.SessionConfigSelect{CurrentValue: acp.SessionConfigValueID(value), Options: levels},
	})
}

// setModel sets an option about the model. It reports whether others have changed with
// it. The caller holds mu.
func (s *session) setModel(id acp.SessionConfigID, value string) (more bool, err error) {
	c := &s.choice
	switch id {
	case optionModel:
		if c.ref == value {
			return false, nil
		}
		was := *c
		err := s.use(value)
		if err == nil {
			err = s.agent.priced(c.model.Info())
		}
		if err != nil {
			*c = was
			return false, err
		}
		c.own = true
		return true, nil
	case optionEffort:
		c.effort = value
		if value == valueDefault {
			c.effort = ""
		}
	}
	return false, nil
}

// seeModel restores the model from an option of the journal. The first one is that with
// which the session began: settings may say otherwise by now. The caller holds mu.
func (s *session) seeModel(id acp.SessionConfigID, value string) {
	c := &s.choice
	switch {
	case id == optionEffort && value != valueDefault:
		c.effort = value
	case id != optionModel:
	case c.first == "":
		c.first, c.ref = value, value
	case value != c.first:
		c.ref, c.own = value, true
	default:
		c.ref = value
	}
}
