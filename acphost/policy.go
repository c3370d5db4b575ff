package acphost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/detach"
)

// DefaultAskTimeout is how long the user has for an answer unless
// [Policy.AskTimeout] says otherwise.
const DefaultAskTimeout = 2 * time.Minute

// An Effect is what a policy wants to do about a request.
type Effect string

// The effects.
const (
	EffectAllow Effect = "allow"
	EffectDeny  Effect = "deny"
	EffectAsk   Effect = "ask" // the user
)

// A Source says who has decided.
type Source string

// The sources of decisions.
const (
	ByRule       Source = "rule"
	ByDefault    Source = "default"    // Policy.Default, since no rule matched
	ByMemory     Source = "memory"     // the user, the last time
	ByUser       Source = "user"       // through Policy.Ask
	ByNobody     Source = "nobody"     // there is no Policy.Ask, or too many are being asked
	ByTimeout    Source = "timeout"    // the user did not answer in time
	ByFailure    Source = "failure"    // Policy.Ask failed
	ByCancelling Source = "cancelling" // the context was done before
)

// A Request is a permission request as rules see it, in the words of either
// version of the protocol.
type Request struct {
	Session            string
	Title, Description string
	ToolCallID         string
	ToolName           string // such as "mcp__server__tool"
	Kind               string // of the tool, as on the wire; "" counts as "other", and "execute" without a Command as CommandUnknown

	// EarlierKinds are kinds that the tool had before Kind: rules that deny or ask
	// are about these, too, and a rule that allows kinds has to name all of them.
	EarlierKinds []string

	// Command is what would be run, if that is certain.
	Command string
	// CommandUnknown says that something would be run, but Command does not say
	// what.
	CommandUnknown bool
	// Shown is the command that the request shows while CommandUnknown is set,
	// to the letter, or "" if it shows none. Rules that deny or ask are about
	// it, too; a rule that allows commands is not. See [Request.Shows].
	Shown string

	Cwd      string          // where; absolute
	Paths    []string        // what would be touched: locations and diffs, each once
	RawInput json.RawMessage // of the tool
	Options  []acpv2.PermissionOption

	// Of is the request that the other fields were taken from, which must not be
	// changed; nil if there is none. Rules do not look at it: it is for those who
	// show the request.
	Of *acp.PermissionRequest
}

// ReasonSeveral is the [Decision.Reason] of a request that rules allow and that offers more than one answer which
// allows it once: which of them means what, only the user can tell.
const ReasonSeveral = "several answers allow it, and only a user can choose between them"

// A Decision is what a [Policy] decides about a request, and why. [Policy.RequestPermission]
// makes an [acp.PermissionDecision] of it.
type Decision struct {
	// Option is the answer to give. Nil stands for the outcome “cancelled”,
	// which never is an approval.
	Option *acpv2.PermissionOption
	// Effect is allow or deny, or ask if the user chose an option of an
	// unknown kind, the meaning of which only the agent knows.
	Effect Effect
	By     Source
	Rule   string // the name of the rule that matched, "" if none did

	// Reason says in a few words why the rules did not allow the request, for
	// messages to people; "" if they did.
	Reason string
	// Part is the part of the command line that Reason is about, "" if that is
	// the whole or nothing is run.
	Part string
}

// A Policy answers permission requests: by rules, by what the user has answered
// before, and by asking. The zero Policy asks about everything, and denies
// everything if there is nobody to ask; [NewPolicy] and [ParsePolicy] make one
// with rules. The fields may be set before it is used for the first time; its
// methods may be called from any goroutine.
//
// Options are distinguished by their kind, never by their position or their
// name, and one of an unknown kind is never chosen without the user. To
// allow, “allow once” is chosen, and “allow always” only if the rule says so; if
// neither can be, the user is asked. That also happens if there are several of
// the kind: which of them means what, only the user can tell. To deny, “reject
// once” is chosen, then “reject always”, then none, which means “cancelled”. Of
// options with the same id none is chosen, since the answer could mean either.
type Policy struct {
	// Default is what happens to a request no rule matches; "" means to ask.
	Default Effect

	// Ask asks the user, who chooses an option by its id; "" means that the
	// question was dismissed. An id that was not offered approves nothing.
	// [Request.Allow] and its like choose by the kind of the options,
	// and [Policy.Always] remembers an answer whatever is offered. Each call
	// has a goroutine of its own. When the context ends the answer is not
	// waited for any longer, and what comes later is ignored. At most 256 calls run
	// at once, counting those that ignore their context; beyond that requests are
	// denied.
	Ask func(ctx context.Context, req Request) (acpv2.PermissionOptionID, error)
	// AskTimeout is how long the user has; then the request is denied. 0 means
	// DefaultAskTimeout.
	AskTimeout time.Duration

	// Remember says for how long “always” is: see [Scope].
	Remember Scope
	// MaxRemembered bounds the answers that are remembered, the latest ones;
	// 0 means DefaultMaxRemembered.
	MaxRemembered int

	// Commands takes command lines apart for the rules. Without it a rule that
	// allows commands by a pattern matches only lines in which a shell would see
	// nothing but words: see [Rule].
	Commands CommandParser
	// Resolve follows the links in an absolute path, for rules about paths; nil
	// means ResolvePath. The policy of a client whose files are on another
	// machine sets it to a function that looks there, or to one that returns
	// the path as it is, so that only spellings are compared.
	Resolve func(path string) (string, error)

	// Audit, if not nil, receives a record of each decision before it is
	// returned. It should not block: the agent waits.
	Audit func(Record)

	rules  []rule
	owner  *Policy // whose memory and bounds count: see With; nil if they are this policy's
	asking detach.Calls

	mu     sync.Mutex
	memory []Memory // oldest first
	added  []rule   // see Add
}

// NewPolicy returns a policy with the given rules. The first that matches a
// request decides, but for what [Rule] says about requests that do not say
// enough.
func NewPolicy(rules ...Rule) (*Policy, error) {
	p := new(Policy)
	for i, r := range rules {
		c, err := compile(r, i+1)
		if err != nil {
			return nil, fmt.Errorf("acphost: %s: %w", c.Name, err)
		}
		p.rules = append(p.rules, c)
	}
	return p, nil
}

// With returns a policy that asks in another way and is otherwise the same: it has
// the fields and rules that p has now, and shares what p remembers. It is made for a
// program in which several connections share one policy, and each has a user
// interface of its own.
func (p *Policy) With(ask func(ctx context.Context, req Request) (acpv2.PermissionOptionID, error)) *Policy {
	return &Policy{
		Default: p.Default, Ask: ask, AskTimeout: p.AskTimeout, Remember: p.Remember, MaxRemembered: p.MaxRemembered,
		Commands: p.Commands, Resolve: p.Resolve, Audit: p.Audit, rules: p.rules, owner: p.own(),
	}
}

// MaxAdded bounds the rules that [Policy.Add] adds.
const MaxAdded = 1024

// ErrTooManyRules is the error of [Policy.Add] beyond [MaxAdded] rules.
var ErrTooManyRules = errors.New("too many rules were added")

// Add adds rules while the policy is in use: a user interface calls it when the
// user writes a rule. The rules count for requests that are decided later, by this
// policy and by all that [Policy.With] has made of it. They come after all others,
// so they never weaken a rule that denies. Either all rules are added or none.
func (p *Policy) Add(rules ...Rule) error {
	own := p.own()
	own.mu.Lock()
	defer own.mu.Unlock()
	if len(own.added)+len(rules) > MaxAdded {
		return fmt.Errorf("acphost: %w", ErrTooManyRules)
	}
	var all []rule
	for i, r := range rules {
		c, err := compile(r, len(own.rules)+len(own.added)+i+1)
		if err != nil {
			return fmt.Errorf("acphost: %s: %w", c.Name, err)
		}
		all = append(all, c)
	}
	own.added = append(own.added[:len(own.added):len(own.added)], all...)
	return nil
}

// grown returns the policy with the rules that were added to it.
func (p *Policy) grown() *Policy {
	own := p.own()
	own.mu.Lock()
	added := own.added
	own.mu.Unlock()
	if len(added) == 0 {
		return p
	}
	q := p.With(p.Ask)
	q.rules = slices.Concat(p.rules, added)
	return q
}

// own returns the policy whose memory and bounds count.
func (p *Policy) own() *Policy {
	if p.owner != nil {
		return p.owner
	}
	return p
}

// Decide answers a request. It returns at the latest when the user had
// AskTimeout to answer, or when ctx is done; in that case with the outcome
// “cancelled”.
func (p *Policy) Decide(ctx context.Context, req Request) Decision {
	begin := time.Now()
	d := p.grown().decide(ctx, req)
	if p.Audit != nil {
		p.audit(NewRecord(begin, req, d))
	}
	return d
}

func (p *Policy) decide(ctx context.Context, req Request) Decision {
	if ctx.Err() != nil {
		return Decision{Effect: EffectDeny, By: ByCancelling, Reason: "the request was cancelled"}
	}
	w, by := p.judge(&req)
	d := Decision{Effect: w.effect, By: by, Reason: w.reason, Part: w.part}
	if w.rule != nil {
		d.Rule = w.rule.Name
	}
	switch d.Effect {
	case EffectDeny:
		d.Option = rejection(req.Options)
		return d
	case EffectAllow:
		if d.Option = approval(req.Options, w.always); d.Option != nil {
			return d
		}
		d.Reason = "the agent offers no answer that allows it once"
		if len(only(req.Options, acpv2.PermissionOptionKindAllowOnce)) > 1 {
			d.Reason = ReasonSeveral
		}
	}
	switch p.recall(&req) {
	case EffectDeny:
		d.Option, d.Effect, d.By, d.Reason = rejection(req.Options), EffectDeny, ByMemory, "the user has denied it for good"
		return d
	case EffectAllow:
		// “Allow always” is what the user chose, for the same request.
		if o := approval(req.Options, true); o != nil {
			return Decision{Option: o, Effect: EffectAllow, By: ByMemory, Rule: d.Rule}
		}
	}
	return p.ask(ctx, req, d)
}

// ask asks the user about what the rules have not decided: d is what they say.
func (p *Policy) ask(ctx context.Context, req Request, d Decision) Decision {
	no := func(by Source) Decision {
		d.Option, d.Effect, d.By = rejection(req.Options), EffectDeny, by
		return d
	}
	if p.Ask == nil {
		return no(ByNobody)
	}
	limit := p.AskTimeout
	if limit <= 0 {
		limit = DefaultAskTimeout
	}
	asked, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	id, err := detach.Do(asked, &p.own().asking, func() (acpv2.PermissionOptionID, error) { return p.call(asked, req) })
	switch {
	case errors.Is(err, detach.ErrBusy):
		return no(ByNobody)
	case ctx.Err() != nil:
		d.Option, d.Effect, d.By = nil, EffectDeny, ByCancelling
		return d
	case err != nil && asked.Err() != nil:
		return no(ByTimeout)
	case err != nil:
		return no(ByFailure)
	}
	d.Option, d.Effect, d.By = chosen(req.Options, id), EffectDeny, ByUser
	if d.Option == nil {
		return d
	}
	switch d.Option.Kind {
	case acpv2.PermissionOptionKindAllowAlways:
		d.Effect = EffectAllow
		p.Always(req, EffectAllow)
	case acpv2.PermissionOptionKindAllowOnce:
		d.Effect = EffectAllow
	case acpv2.PermissionOptionKindRejectAlways:
		p.Always(req, EffectDeny)
	case acpv2.PermissionOptionKindRejectOnce:
	default:
		d.Effect = EffectAsk
	}
	return d
}

// call calls the hook, which gets lists of its own.
func (p *Policy) call(ctx context.Context, req Request) (id acpv2.PermissionOptionID, err error) {
	defer func() {
		if recover() != nil {
			id, err = "", errors.New("acphost: the hook panicked")
		}
	}()
	req.Options = slices.Clone(req.Options)
	req.Paths = slices.Clone(req.Paths)
	req.RawInput = slices.Clone(req.RawInput)
	return p.Ask(ctx, req)
}

// approval returns the option that allows, or nil.
func approval(options []acpv2.PermissionOption, always bool) *acpv2.PermissionOption {
	once := only(options, acpv2.PermissionOptionKindAllowOnce)
	if len(once) == 0 && always {
		once = only(options, acpv2.PermissionOptionKindAllowAlways)
	}
	if len(once) != 1 {
		return nil
	}
	return once[0]
}

// rejection returns the option that denies, or nil.
func rejection(options []acpv2.PermissionOption) *acpv2.PermissionOption {
	for _, kind := range []acpv2.PermissionOptionKind{acpv2.PermissionOptionKindRejectOnce, acpv2.PermissionOptionKindRejectAlways} {
		if o := only(options, kind); len(o) > 0 {
			return o[0] // any of them denies
		}
	}
	return nil
}

// only returns copies of the options of a kind, except those whose id another
// option has too.
func only(options []acpv2.PermissionOption, kind acpv2.PermissionOptionKind) []*acpv2.PermissionOption {
	var out []*acpv2.PermissionOption
	for _, o := range options {
		if o.Kind == kind && chosen(options, o.OptionID) != nil {
			out = append(out, new(o))
		}
	}
	return out
}

// chosen returns the option with an id that is offered once.
func chosen(options []acpv2.PermissionOption, id acpv2.PermissionOptionID) *acpv2.PermissionOption {
	if id == "" {
		return nil
	}
	var found *acpv2.PermissionOption
	for _, o := range options {
		if o.OptionID != id {
			continue
		}
		if found != nil {
			return nil
		}
		found = new(o)
	}
	return found
}
