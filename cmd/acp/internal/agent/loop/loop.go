// Package loop is a turn of the agent with a language model: it asks the model, runs the
// tools that the answer asks for, and asks again with what came of them, until the model
// is done or a limit is reached.
//
// The conversation only grows. Whatever ends a turn, each wish for a tool that was kept
// has its result when [Run] returns, so that the conversation can always be sent.
package loop

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/goacp/acp/cmd/acp/internal/model"
)

// Bounds.
const (
	// DefaultRequests is how often a turn asks the model unless [Limits] says otherwise.
	DefaultRequests = 200
	// MaxParallel is how many tools that only read run at once.
	MaxParallel = 8
	// MaxUses is how many tools one answer can ask for.
	MaxUses = 128
	// maxFailures is how often in a row the same call may fail. The model is warned before.
	maxFailures = 4
	// maxPauses is how often in a row a provider may pause.
	maxPauses = 16
)

// Limits bound a turn.
type Limits struct {
	Requests int     // 0 is DefaultRequests
	Cost     float64 // in the currency of the model's price; 0 is no limit
}

// Nothing is a [Limits.Cost] with which no request is sent.
const Nothing = -1

// A Turn is what [Run] continues.
type Turn struct {
	Model    model.Model
	Prefix   *model.Prefix
	Messages []*model.Message // the last one is the user's
	Effort   string
	CacheKey string
	Limits   Limits
	Host     Host
}

// A Host is whom a turn is for. Its methods are called one after the other, except that
// tools that only read are used beside each other, and beside an answer that still streams.
type Host interface {
	// Say and Think pass on a piece of the answer.
	Say(text string)
	Think(text string)
	// Wait is called when a request has failed and is sent again. What was said of the
	// answer is void if the event says so.
	Wait(*model.Retrying)
	// Draft passes on a piece of a tool's input while the model writes it, as JSON; it is
	// called without one first. The wish with that id follows, or Drop.
	Draft(id, name, piece string)
	// Drop is called when wishes that were drafted are void, or were not carried out.
	Drop()
	// Keep keeps a message of the conversation. Tools that change something run after their
	// wish was kept. It returns an error if the turn cannot continue without it.
	Keep(*model.Message) error
	// Used is called after each answer with what it has used. It returns an error if the answer cannot be trusted: then
	// only its text is kept.
	Used(u model.Usage) error
	// Bill returns what an answer is billed with that was broken off: what the provider has said, completed by an estimate.
	// like is the usage of the answer to the same request that followed, if it is known. Lost is called with that, once.
	Bill(e *model.Spent, like model.Usage) model.Usage
	Lost(u model.Usage)
	// Reads reports whether a tool changes nothing, so that it can run beside others.
	Reads(name string) bool
	// Use runs a tool. It returns soon after ctx is done.
	Use(ctx context.Context, u *model.ToolUse) *model.ToolResult
	// Came keeps what came of a tool, after its wish was kept and before the message with
	// the results of all. It is called beside Use.
	Came(*model.ToolResult)
	// News returns what has happened meanwhile that the model has to know, or nothing.
	News() []model.Part
	// Steer returns what the user has said meanwhile, or nothing. It is called only if the model is asked once more.
	Steer() []model.Part
	// Fewer is called when the provider has refused a request. It returns a prefix with fewer tools, if they may be why;
	// nil otherwise.
	Fewer(why *model.Error) *model.Prefix
	// Mend is called when the provider has answered a request from which something was left out, before anything of the
	// answer is kept: the conversation is another one from now on.
	Mend(*Mended)
	// Fit is called before each request with the conversation, and once more with overflow
	// set if the model has refused it as too long. It returns the conversation to send
	// instead: the same one if it fits, or a shorter one, with what each answer has used that it took to make that. It
	// returns an error if the turn cannot continue.
	Fit(ctx context.Context, messages []*model.Message, overflow bool) (fitted []*model.Message, used []model.Usage, err error)
}

// A Stop says why a turn ended.
type Stop string

// The reasons.
const (
	Done      Stop = "done"
	Cancelled Stop = "cancelled"
	Refused   Stop = "refused"
	MaxTokens Stop = "max_tokens" // of the answer
	Requests  Stop = "requests"   // the limit of them
	Cost      Stop = "cost"       // the limit of it
	Repeats   Stop = "repeats"    // the same call has failed again and again
	Empty     Stop = "empty"      // the model has ended without an answer, and again when it was asked to continue
)

// An End is how a turn ended.
type End struct {
	Stop     Stop
	Detail   string // what the provider says of it, which call was repeated, or why it is empty
	Requests int
	Usage    model.Usage // of all answers together
	Cost     float64
	// Messages are those that the turn has added.
	Messages []*model.Message
}

// Run runs a turn. Errors are the model's, or of Host.Keep; what was said until then is
// kept.
func Run(ctx context.Context, t *Turn) (*End, error) {
	r := &run{Turn: t, all: t.Messages, end: &End{}, failures: map[string]int{}}
	if r.Limits.Requests == 0 {
		r.Limits.Requests = DefaultRequests
	}
	err := r.run(ctx)
	if errors.Is(err, errCost) {
		r.end.Stop, err = Cost, nil
	}
	if err != nil && ctx.Err() != nil {
		r.end.Stop, err = Cancelled, nil
	}
	return r.end, err
}

// A run is a turn that runs.
type run struct {
	*Turn
	all      []*model.Message
	end      *End
	failures map[string]int // in a row, by call
	repeated string
	pauses   int
	overflow bool            // the model has refused the last request as too long
	ids      map[string]bool // of all wishes; nil before the first
	early    *early          // the tools of the last answer that began while it streamed
	broken   []*model.Spent  // answers to the request under way that were broken off
	used     bool            // a tool was used
	nudged   bool            // the model was asked to continue
	remedy   *Mended         // what is left out of the request under way, and was not yet before
}

// errCost ends a turn that has reached the limit of its cost.
var errCost = errors.New("the limit of the cost is reached")

func (r *run) keep(m *model.Message) error {
	if err := r.Host.Keep(m); err != nil {
		return err
	}
	// A new array, since requests that are being sent hold the old one.
	r.all = append(r.all[:len(r.all):len(r.all)], m)
	r.end.Messages = append(r.end.Messages, m)
	return nil
}

func (r *run) run(ctx context.Context) error {
	for {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case r.end.Requests >= r.Limits.Requests:
			r.end.Stop = Requests
			return nil
		case r.isSpent():
			return errCost
		}
		if err := r.fit(ctx, false); err != nil {
			return err
		}
		done, err := r.ask(ctx)
		if r.overflow && r.all[len(r.all)-1].Role == model.User {
			if r.isSpent() {
				return errCost
			}
			was := r.all
			if err := r.fit(ctx, true); err != nil {
				return err
			}
			if slices.Equal(r.all, was) {
				return err // nothing can be left out
			}
			done, err = r.ask(ctx)
		}
		if err != nil {
			done, err = r.mend(ctx, err)
		}
		if err != nil {
			return err
		}
		uses := usesOf(done.Message)
		if len(uses) == 0 {
			r.drop()
			if again := r.stop(ctx, done); !again {
				return nil
			}
			continue
		}
		r.pauses = 0
		last := done.Reason == model.MaxTokens || done.Reason == model.Refused
		said, err := r.use(ctx, uses, last)
		r.drop()
		if err != nil {
			return err
		}
		if r.repeated != "" && !said { // what the user says may end that
			r.end.Stop, r.end.Detail = Repeats, r.repeated
			return nil
		}
		r.repeated = ""
		if last {
			r.stop(ctx, done)
			return nil
		}
	}
}

// fit makes the conversation one that fits into the window.
func (r *run) fit(ctx context.Context, overflow bool) error {
	all, used, err := r.Host.Fit(ctx, r.all, overflow)
	for _, u := range used {
		r.end.Requests++
		r.add(u)
	}
	if err == nil {
		r.all = all
	}
	return err
}

// stop ends the turn for the reason of an answer, unless the provider, or the user, wants
// it continued.
func (r *run) stop(ctx context.Context, done *model.Done) (again bool) {
	r.end.Detail = done.Detail
	switch done.Reason {
	case model.Paused:
		if r.pauses++; r.pauses <= maxPauses {
			return true
		}
		r.end.Stop = Done
	case model.MaxTokens:
		r.end.Stop = MaxTokens
	case model.Refused:
		r.end.Stop = Refused
	default:
		if said := r.steer(ctx); len(said) > 0 && r.keep(&model.Message{Role: model.User, Parts: said}) == nil {
			return true
		}
		if why := r.emptiness(done.Message); why != "" {
			nudge := &model.Message{Role: model.User, Parts: []model.Part{&model.Text{Text: nudges[why]}}}
			if !r.nudged && r.keep(nudge) == nil {
				r.nudged = true
				return true
			}
			r.end.Stop, r.end.Detail = Empty, why
			return false
		}
		r.end.Stop = Done
	}
	return false
}

// ask sends the conversation and passes the answer on. An answer that is cut off is kept
// as far as it came, without its tools.
func (r *run) ask(ctx context.Context) (*model.Done, error) {
	if r.isSpent() { // by making the conversation short
		return nil, errCost
	}
	r.end.Requests++
	done, err := r.answer(ctx)
	var like model.Usage
	if done != nil {
		like = done.Usage
	}
	r.settle(like)
	if err != nil {
		r.drop()
	}
	return done, err
}

func (r *run) answer(ctx context.Context) (*model.Done, error) {
	req := &model.Request{Prefix: r.Prefix, Messages: r.all, Effort: r.Effort, CacheKey: r.CacheKey}
	var text bytes.Buffer
	r.overflow = false
	r.early = r.newEarly(ctx)
	for e, err := range r.Model.Generate(ctx, req) {
		if err != nil {
			e, ok := errors.AsType[*model.Error](err)
			r.overflow = ok && e.Kind == model.KindOverflow
			return nil, errors.Join(err, r.cutOff(&text))
		}
		switch e := e.(type) {
		case *model.TextDelta:
			text.WriteString(e.Text)
			r.Host.Say(e.Text)
		case *model.ThoughtDelta:
			r.Host.Think(e.Text)
		case *model.ToolUseBegan:
			r.early.draft(e.ID, e.Name)
		case *model.ToolInputDelta:
			r.early.write(e.ID, e.JSON)
		case *model.ToolUse:
			r.accepted() // a tool that begins now is one of those that are there now
			r.early.wish(e)
		case *model.Spent:
			r.broken = append(r.broken, e)
		case *model.Retrying:
			if r.isSpent() { // leaving the loop is not asking again
				return nil, errors.Join(errCost, r.cutOff(&text))
			}
			if e.Discarded {
				text.Reset()
				r.drop()
				r.early = r.newEarly(ctx)
			}
			r.Host.Wait(e)
		case *model.Done:
			r.accepted()
			if err := r.count(e.Usage); err != nil {
				return nil, errors.Join(err, r.cutOff(&text))
			}
			limit(e.Message)
			r.rename(e.Message)
			if len(e.Message.Parts) > 0 {
				if err := r.keep(e.Message); err != nil {
					return nil, err
				}
			}
			return e, nil
		}
	}
	return nil, errors.New("the model ended its answer without an end")
}

// isSpent reports whether the limit of the cost is reached, with what answers may cost that were broken off.
func (r *run) isSpent() bool {
	if r.Limits.Cost == 0 {
		return false
	}
	cost := r.end.Cost
	for _, e := range r.broken {
		more, _ := r.Model.Info().Price.Of(r.Host.Bill(e, model.Usage{}))
		cost += more
	}
	return cost >= r.Limits.Cost
}

// settle counts the answers that were broken off.
func (r *run) settle(like model.Usage) {
	for _, e := range r.broken {
		u := r.Host.Bill(e, like)
		r.add(u)
		r.Host.Lost(u)
	}
	r.broken = nil
}

// cutOff keeps what was said of an answer that did not end.
func (r *run) cutOff(text *bytes.Buffer) error {
	if text.Len() == 0 {
		return nil
	}
	r.accepted()
	return r.keep(&model.Message{Role: model.Assistant, Parts: []model.Part{&model.Text{Text: text.String()}}})
}

// count counts what an answer has used.
func (r *run) count(u model.Usage) error {
	r.add(u)
	return r.Host.Used(u)
}

func (r *run) add(u model.Usage) {
	r.end.Usage = r.end.Usage.Plus(u)
	if cost, ok := r.Model.Info().Price.Of(u); ok {
		r.end.Cost += cost
	}
}

// limit drops the tools of an answer that asks for too many.
func limit(m *model.Message) {
	n := 0
	kept := m.Parts[:0]
	for _, p := range m.Parts {
		if _, ok := p.(*model.ToolUse); ok {
			if n++; n > MaxUses {
				continue
			}
		}
		kept = append(kept, p)
	}
	m.Parts = kept
}

// rename gives wishes for tools ids of their own, where the conversation has those of the
// answer already: some servers count from zero in each answer, and another provider
// would refuse the conversation.
func (r *run) rename(m *model.Message) {
	for _, u := range usesOf(m) {
		id := r.early.id(u.ID)
		if r.known()[id] { // twice in one answer
			id = newID()
		}
		u.ID = id
		r.ids[id] = true
	}
}

// known returns the ids of all wishes of the conversation.
func (r *run) known() map[string]bool {
	if r.ids == nil {
		r.ids = map[string]bool{}
		for _, old := range r.all {
			for _, u := range usesOf(old) {
				r.ids[u.ID] = true
			}
		}
	}
	return r.ids
}

func newID() string { return "call_" + rand.Text() }

func usesOf(m *model.Message) []*model.ToolUse {
	var uses []*model.ToolUse
	for _, p := range m.Parts {
		if u, ok := p.(*model.ToolUse); ok {
			uses = append(uses, u)
		}
	}
	return uses
}

// use runs the tools of an answer: those that only read beside each other, the others
// alone and in order. What the user says meanwhile ends that: tools that have not begun
// are not run. The results are kept as one message, also when the turn is cancelled. steered
// says that the user has said something. After the last answer nobody is asked for that.
func (r *run) use(ctx context.Context, uses []*model.ToolUse, last bool) (steered bool, err error) {
	r.used = true
	results := make([]*model.ToolResult, len(uses))
	steer := func() []model.Part {
		if last {
			return nil
		}
		return r.steer(ctx)
	}
	said := steer()
	for i := 0; i < len(uses); {
		n := 1
		if r.Host.Reads(uses[i].Name) {
			for i+n < len(uses) && n < MaxParallel && r.Host.Reads(uses[i+n].Name) {
				n++
			}
		}
		switch {
		case ctx.Err() != nil:
			r.refuse(results[i:], uses[i:], "not run: the user has cancelled the turn")
		case len(said) > 0:
			r.refuse(results[i:], uses[i:], skipped(said))
		default:
			r.together(ctx, results[i:i+n], uses[i:i+n])
			said = steer()
			i += n
			continue
		}
		break
	}
	parts := make([]model.Part, 0, len(results)+len(said))
	for i, res := range results {
		r.warn(uses[i], res)
		parts = append(parts, res)
	}
	parts = append(parts, r.Host.News()...)
	if err := r.keep(&model.Message{Role: model.User, Parts: append(parts, said...)}); err != nil {
		return false, err
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	return len(said) > 0, nil
}

// steer returns what the user has said meanwhile, if the model is asked once more. What it does not take becomes
// the next prompt.
func (r *run) steer(ctx context.Context) []model.Part {
	if ctx.Err() != nil || r.end.Requests >= r.Limits.Requests || r.isSpent() {
		return nil
	}
	return r.Host.Steer()
}

// skipped is what came of a tool that had not begun when the user said something.
func skipped(said []model.Part) string {
	for _, p := range said {
		if t, ok := p.(*model.Text); ok {
			return fmt.Sprintf("skipped: the user said “%s” in the meantime; see below", quoted(t.Text, maxQuoted))
		}
	}
	return "skipped: the user has sent something in the meantime; see below"
}

// maxQuoted bounds what a call that was skipped says of the user's words, in characters.
const maxQuoted = 200

// quoted returns the beginning of a text on one line, with most characters at most, and a sign if there is more.
func quoted(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

func (r *run) together(ctx context.Context, results []*model.ToolResult, uses []*model.ToolUse) {
	one := func(i int) {
		if results[i] = r.early.result(uses[i]); results[i] == nil {
			results[i] = r.Host.Use(ctx, uses[i])
		}
		r.Host.Came(results[i])
	}
	if len(uses) == 1 {
		one(0)
		return
	}
	var wg sync.WaitGroup
	for i := range uses {
		wg.Go(func() { one(i) })
	}
	wg.Wait()
}

// refuse answers tools that are not run, unless they were.
func (r *run) refuse(results []*model.ToolResult, uses []*model.ToolUse, why string) {
	for i, u := range uses {
		if results[i] = r.early.result(u); results[i] == nil {
			results[i] = &model.ToolResult{ID: u.ID, Failed: true, Parts: []model.Part{&model.Text{Text: why}}}
		}
	}
}

// warn counts calls that fail in the same way again and again.
func (r *run) warn(u *model.ToolUse, res *model.ToolResult) {
	call := fmt.Sprintf("%s %s", u.Name, u.Input)
	if !res.Failed {
		delete(r.failures, call)
		return
	}
	r.failures[call]++
	switch n := r.failures[call]; {
	case n >= maxFailures:
		r.repeated = u.Name
	case n == maxFailures-1:
		res.Parts = append(res.Parts, &model.Text{Text: fmt.Sprintf("This call has failed %d times with the same input. Do something else, or tell the user what is in the way.", n)})
	}
}
