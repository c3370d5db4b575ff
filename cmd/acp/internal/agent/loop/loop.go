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

// A Host is whom a turn is for. Its methods are called one after the other, but for Use
// and those of tools that only read, which run at once.
type Host interface {
	// Say and Think pass on a piece of the answer.
	Say(text string)
	Think(text string)
	// Wait is called when a request has failed and is sent again. What was said of the
	// answer is void if the event says so.
	Wait(*model.Retrying)
	// Keep keeps a message of the conversation. Tools run after their wish was kept. It
	// returns an error if the turn cannot continue without it.
	Keep(*model.Message) error
	// Used is called after each answer with what it has used, and what the conversation
	// has cost so far in this turn.
	Used(u model.Usage, cost float64)
	// Reads reports whether a tool changes nothing, so that it can run beside others.
	Reads(name string) bool
	// Use runs a tool. It returns soon after ctx is done.
	Use(ctx context.Context, u *model.ToolUse) *model.ToolResult
	// Steer returns what the user has said meanwhile, or nothing.
	Steer() []model.Part
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
)

// An End is how a turn ended.
type End struct {
	Stop     Stop
	Detail   string // what the provider says of it, or which call was repeated
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
	ids      map[string]bool // of all wishes; nil before the first
}

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
		case r.Limits.Cost > 0 && r.end.Cost >= r.Limits.Cost:
			r.end.Stop = Cost
			return nil
		}
		r.end.Requests++
		done, err := r.ask(ctx)
		if err != nil {
			return err
		}
		uses := usesOf(done.Message)
		if len(uses) == 0 {
			if again := r.stop(done); !again {
				return nil
			}
			continue
		}
		r.pauses = 0
		if err := r.use(ctx, uses); err != nil {
			return err
		}
		if r.repeated != "" {
			r.end.Stop, r.end.Detail = Repeats, r.repeated
			return nil
		}
		if done.Reason == model.MaxTokens || done.Reason == model.Refused {
			r.stop(done)
			return nil
		}
	}
}

// stop ends the turn for the reason of an answer, unless the provider, or the user, wants
// it continued.
func (r *run) stop(done *model.Done) (again bool) {
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
		if said := r.Host.Steer(); len(said) > 0 && r.keep(&model.Message{Role: model.User, Parts: said}) == nil {
			return true
		}
		r.end.Stop = Done
	}
	return false
}

// ask sends the conversation and passes the answer on. An answer that is cut off is kept
// as far as it came, without its tools.
func (r *run) ask(ctx context.Context) (*model.Done, error) {
	req := &model.Request{Prefix: r.Prefix, Messages: r.all, Effort: r.Effort, CacheKey: r.CacheKey}
	var text bytes.Buffer
	for e, err := range r.Model.Generate(ctx, req) {
		if err != nil {
			return nil, errors.Join(err, r.cutOff(&text))
		}
		switch e := e.(type) {
		case *model.TextDelta:
			text.WriteString(e.Text)
			r.Host.Say(e.Text)
		case *model.ThoughtDelta:
			r.Host.Think(e.Text)
		case *model.Retrying:
			if e.Discarded {
				text.Reset()
			}
			r.Host.Wait(e)
		case *model.Done:
			r.count(e.Usage)
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

// cutOff keeps what was said of an answer that did not end.
func (r *run) cutOff(text *bytes.Buffer) error {
	if text.Len() == 0 {
		return nil
	}
	return r.keep(&model.Message{Role: model.Assistant, Parts: []model.Part{&model.Text{Text: text.String()}}})
}

func (r *run) count(u model.Usage) {
	r.end.Usage = r.end.Usage.Plus(u)
	if cost, ok := r.Model.Info().Price.Of(u); ok {
		r.end.Cost += cost
	}
	r.Host.Used(u, r.end.Cost)
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
	uses := usesOf(m)
	if len(uses) == 0 {
		return
	}
	if r.ids == nil {
		r.ids = map[string]bool{}
		for _, old := range r.all {
			for _, u := range usesOf(old) {
				r.ids[u.ID] = true
			}
		}
	}
	for _, u := range uses {
		if r.ids[u.ID] {
			u.ID = "call_" + rand.Text()
		}
		r.ids[u.ID] = true
	}
}

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
// are not run. The results are kept as one message, also when the turn is cancelled.
func (r *run) use(ctx context.Context, uses []*model.ToolUse) error {
	results := make([]*model.ToolResult, len(uses))
	var said []model.Part
	for i := 0; i < len(uses); {
		n := 1
		if r.Host.Reads(uses[i].Name) {
			for i+n < len(uses) && n < MaxParallel && r.Host.Reads(uses[i+n].Name) {
				n++
			}
		}
		switch {
		case ctx.Err() != nil:
			refuse(results[i:], uses[i:], "not run: the user has cancelled the turn")
		case len(said) > 0:
			refuse(results[i:], uses[i:], "not run: the user has said something in the meantime, see below")
		default:
			r.together(ctx, results[i:i+n], uses[i:i+n])
			said = r.Host.Steer()
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
	if err := r.keep(&model.Message{Role: model.User, Parts: append(parts, said...)}); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (r *run) together(ctx context.Context, results []*model.ToolResult, uses []*model.ToolUse) {
	if len(uses) == 1 {
		results[0] = r.Host.Use(ctx, uses[0])
		return
	}
	var wg sync.WaitGroup
	for i, u := range uses {
		wg.Go(func() { results[i] = r.Host.Use(ctx, u) })
	}
	wg.Wait()
}

// refuse answers tools that are not run.
func refuse(results []*model.ToolResult, uses []*model.ToolUse, why string) {
	for i, u := range uses {
		results[i] = &model.ToolResult{ID: u.ID, Failed: true, Parts: []model.Part{&model.Text{Text: why}}}
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
