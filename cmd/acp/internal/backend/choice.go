package backend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/transcript"
)

// A Choice is a value that an option of each session that is opened is to have, in the words of a command line. The option
// is the first of Category or, without that, the one with the ID.
type Choice struct {
	Flag     string // with its value, for errors
	Category acp.SessionConfigOptionCategory
	ID       acp.SessionConfigID
	Value    string
}

// Choices are what the user has chosen for the sessions that are opened: for new ones, and for earlier ones when they are
// opened for the first time. What the user has changed since is not changed back when an agent is started again. The hosts
// that follow one another share them. Its methods may be called from any goroutine.
type Choices struct {
	All []Choice // in the order in which they are set

	mu  sync.Mutex
	had map[acp.SessionID]bool
}

// maxHad bounds the sessions that are known to have been opened. Beyond that, all are forgotten.
const maxHad = 4096

// of returns the choices for a session, or for a new one if id is "".
func (c *Choices) of(id acp.SessionID) []Choice {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if id != "" && c.had[id] {
		return nil
	}
	return c.All
}

// opened notes that a session has what was chosen.
func (c *Choices) opened(id acp.SessionID) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.had == nil || len(c.had) >= maxHad {
		c.had = make(map[acp.SessionID]bool)
	}
	c.had[id] = true
}

// A beginning is how a session was asked to begin.
type beginning struct {
	chosen []Choice
	asked  []Choice // those of them that the request has
}

// begin has the request for a session say which values its options are to begin with, if the agent takes such values. What
// the options are it is asked before; id is the session, or "" for a new one.
func (h *Host) begin(ctx context.Context, l *link, id acp.SessionID, cfg *acp.SessionConfig) (b beginning) {
	if b.chosen = h.cfg.Choices.of(id); len(b.chosen) == 0 {
		return b
	}
	p, err := l.conn.SessionOptions(ctx, acp.OptionsQuery{
		Cwd: cfg.Cwd, AdditionalDirectories: cfg.AdditionalDirectories, SessionID: id, Meta: h.hosted(),
	})
	if err != nil {
		if !errors.Is(err, errors.ErrUnsupported) {
			h.cfg.Logger.Info("the agent does not say what a session begins with", "agent", h.name(), "error", err)
		}
		return b
	}
	for _, c := range b.chosen {
		option, v, err := c.of(p.ConfigOptions)
		if err == nil { // otherwise the session may have it all the same
			cfg.Options = append(cfg.Options, acp.InitialOption{ConfigID: option.ConfigID, Value: v})
			b.asked = append(b.asked, c)
		}
	}
	return b
}

// choose sets what the user has chosen for the options of a session that was opened, in the order of the flags: an agent may
// change its options when one of them changes. What the request had and the agent has not taken was tried again since.
func (s *Session) choose(ctx context.Context, cs *acp.ClientSession, b beginning) {
	var unset []error
	refused := cs.RejectedOptions()
	for _, c := range b.chosen {
		if slices.Contains(b.asked, c) {
			if i := slices.IndexFunc(refused, func(o acp.RejectedOption) bool { return c.is(&o, cs.Options()) }); i >= 0 {
				unset = append(unset, c.failed(refused[i].Err, cs.Options()))
			}
			continue
		}
		option, v, err := c.of(cs.Options())
		if err == nil {
			if err = cs.SetOption(ctx, option.ConfigID, v); err != nil {
				err = c.failed(err, cs.Options())
			}
		}
		if err != nil {
			unset = append(unset, err)
		}
	}
	s.host.cfg.Choices.opened(cs.ID())
	s.mu.Lock()
	s.unset = unset
	s.mu.Unlock()
	if len(b.chosen) > 0 {
		s.catchUp()
	}
	s.tellUnasked(cs, b.chosen)
}

// tellUnasked says so, before the first prompt, if the agent will ask for nothing in the mode that the session is in, unless the
// user has chosen that.
func (s *Session) tellUnasked(cs *acp.ClientSession, chosen []Choice) {
	mode, agent := string(cs.Mode()), &s.host.cfg.Agent
	isMode := func(c Choice) bool {
		o := c.option(cs.Options())
		return o != nil && o.Category == acp.SessionConfigOptionCategoryMode
	}
	why := ""
	if slices.Contains(agent.Alone, mode) && !slices.ContainsFunc(chosen, isMode) {
		why = safetext.Line(fmt.Sprintf("%s is in the mode %s, in which it decides by itself what is permitted, and asks for nothing; --mode chooses another one", s.host.name(), mode), maxNote)
	}
	s.mu.Lock()
	s.unasked = why
	s.mu.Unlock()
	if why == "" {
		return
	}
	for e := range s.Snapshot().Entries() {
		if n, ok := e.(*transcript.Notice); ok && n.Title == why {
			return
		}
	}
	s.put(&acp.Notice{Severity: acpv2.NoticeSeverityWarning, Title: why})
}

// Unasked returns, in a line for people, that the agent asks for nothing in the mode that the session began in, or "".
func (s *Session) Unasked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unasked
}

// Unset returns why options do not have what the user has chosen for them, when the session was last opened, in the order
// of [Choices]. The errors have the exit status of the program.
func (s *Session) Unset() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unset
}

// is reports whether an option that was not set is the one of the choice.
func (c *Choice) is(o *acp.RejectedOption, options []acp.SessionConfigOption) bool {
	if c.Category == "" {
		return o.ConfigID == c.ID
	}
	option := c.option(options)
	return option != nil && option.ConfigID == o.ConfigID
}

// option returns the option that the choice is about, or nil.
func (c *Choice) option(options []acp.SessionConfigOption) *acp.SessionConfigOption {
	i := slices.IndexFunc(options, func(o acp.SessionConfigOption) bool {
		if c.Category != "" {
			_, ok := o.Kind.(*acpv2.SessionConfigSelect)
			return ok && o.Category == c.Category
		}
		return o.ConfigID == c.ID
	})
	if i < 0 {
		return nil
	}
	return &options[i]
}

// of returns the option and the value that were chosen.
func (c *Choice) of(options []acp.SessionConfigOption) (*acp.SessionConfigOption, acp.SessionConfigOptionValue, error) {
	o := c.option(options)
	switch {
	case o == nil && c.Category != "":
		return nil, nil, exitcode.Errorf(exitcode.Usage, "%s: the agent has no option for the %s", c.Flag, c.Category)
	case o == nil:
		names := make([]string, len(options))
		for i := range options {
			names[i] = string(options[i].ConfigID)
		}
		return nil, nil, exitcode.Errorf(exitcode.Usage, "--option: the agent has no option %q%s", c.ID, listed(names))
	}
	v, err := c.value(o)
	if err != nil {
		return nil, nil, exitcode.Errorf(exitcode.Usage, "%s: %w", c.Flag, err)
	}
	return o, v, nil
}

// value parses the value according to the kind of the option.
func (c *Choice) value(option *acp.SessionConfigOption) (acp.SessionConfigOptionValue, error) {
	switch kind := option.Kind.(type) {
	case *acpv2.SessionConfigBoolean:
		switch c.Value {
		case "true", "on", "yes", "1":
			return &acpv2.SessionConfigOptionValueBoolean{Value: true}, nil
		case "false", "off", "no", "0":
			return &acpv2.SessionConfigOptionValueBoolean{Value: false}, nil
		}
		return nil, errors.New("the value must be true or false")
	case *acpv2.SessionConfigSelect:
		// Agents may know more modes and models than they list.
		if names := values(kind); c.Category == "" && !slices.Contains(names, c.Value) {
			return nil, fmt.Errorf("the option has no such value%s", listed(names))
		}
		return &acpv2.SessionConfigOptionValueID{Value: acpv2.SessionConfigValueID(c.Value)}, nil
	}
	return nil, errors.New("this program does not know options of this kind")
}

// failed returns the error for an option that could not be set. It is one of usage if the value is one of a list, and
// otherwise whatever the agent has reported.
func (c *Choice) failed(err error, options []acp.SessionConfigOption) error {
	var names []string
	if o := c.option(options); o != nil && c.Category != "" {
		if sel, ok := o.Kind.(*acpv2.SessionConfigSelect); ok {
			names = values(sel)
		}
	}
	if errors.Is(err, errors.ErrUnsupported) || len(names) > 0 {
		return exitcode.Errorf(exitcode.Usage, "%s: %w%s", c.Flag, err, listed(names))
	}
	if _, said := errors.AsType[*jsonrpc.Error](err); said {
		return exitcode.Errorf(exitcode.Protocol, "%s: the agent answered: %w", c.Flag, err)
	}
	return fmt.Errorf("%s: %w", c.Flag, err)
}

// listed returns what can be chosen, as the end of an error.
func listed(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; choose from " + strings.Join(names, ", ")
}

// values returns the values that a select offers, those of groups included.
func values(sel *acpv2.SessionConfigSelect) (names []string) {
	switch list := sel.Options.(type) {
	case acpv2.SessionConfigSelectOptionList:
		for _, v := range list {
			names = append(names, string(v.Value))
		}
	case acpv2.SessionConfigSelectGroupList:
		for _, g := range list {
			for _, v := range g.Options {
				names = append(names, string(v.Value))
			}
		}
	}
	return names
}
