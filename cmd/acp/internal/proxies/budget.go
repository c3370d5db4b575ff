package proxies

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/jsonrpc"
)

// noticeAt is the part of a budget at which the user is notified, in percent.
const noticeAt = 80

// maxMetered is how many sessions are metered. Further ones count together.
const maxMetered = 4096

// budget is the proxy that ends what costs too much.
func budget() Kind {
	return Kind{
		Name:  "budget",
		Short: "Bound the tokens or the cost of a connection",
		Long: `Refuse prompts when all sessions of the connection together have used up a number of tokens
or an amount of money, and cancel what runs then. At 80 % a notice says so. The figures are
those that the agent reports: an agent that reports none has no budget. Tokens are those by
which the contexts of the sessions grow, or that agents such as Claude and codex report at
the end of turns, whichever are more; if a context shrinks, nothing is given back. Amounts of
different currencies are bounded each by itself.`,
		Example: "budget --cost 5 --tokens 500000",
		Flags: func(f *pflag.FlagSet) func(Env) (func() (*Running, error), error) {
			tokens := f.Uint64("tokens", 0, "allow `N` tokens")
			cost := f.Float64("cost", 0, "allow `AMOUNT`, in the currency that the agent reports")
			finish := f.Bool("finish", false, "let turns that run end, and refuse further prompts only")
			return func(Env) (func() (*Running, error), error) {
				if *cost < 0 || math.IsNaN(*cost) || math.IsInf(*cost, 0) {
					return nil, errors.New("--cost is not an amount")
				}
				if *tokens == 0 && *cost == 0 {
					return nil, errors.New("it needs --tokens or --cost, above 0")
				}
				return func() (*Running, error) {
					b := &budgeted{
						tokens: float64(*tokens), cost: *cost, finish: *finish, spent: map[string]float64{},
						meters: map[acp.SessionID]meter{}, running: map[*acp.ProxySession]int{},
					}
					p := &acp.Proxy{Name: "budget", Prompt: b.prompt, Update: b.update, Request: b.request}
					return &Running{Proxy: p}, nil
				}, nil
			}
		},
	}
}

// unitTokens is the unit of tokens among those of money.
const unitTokens = "tokens"

// A meter is what a session has reported last.
type meter map[string]float64

// A budgeted is the proxy for one client.
type budgeted struct {
	tokens, cost float64 // 0 is no limit
	finish       bool

	mu      sync.Mutex
	spent   map[string]float64 // by currency, and tokens
	meters  map[acp.SessionID]meter
	noticed bool
	over    string // what is used up
	running map[*acp.ProxySession]int
}

// limit returns what is allowed of a unit, or 0.
func (b *budgeted) limit(unit string) float64 {
	if unit == unitTokens {
		return b.tokens
	}
	return b.cost
}

func (b *budgeted) prompt(ctx context.Context, p *acp.ProxyPrompt, next func(context.Context) error) error {
	b.mu.Lock()
	over := b.over
	if over == "" {
		b.running[p.Session]++
	}
	b.mu.Unlock()
	if over != "" {
		p.StopReason = acp.StopRefusal
		return p.Say(ctx, "[budget] "+over+": the prompt was not sent.")
	}
	err := next(ctx)
	if err == nil {
		b.report(ctx, p.Session, b.countTurn(p.Session, metaOf(p.Answer())))
	}
	if p.Session.Version() == 1 || err != nil { // in version 2 a prompt is answered before the turn ends
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.running[p.Session]--; b.running[p.Session] <= 0 {
			delete(b.running, p.Session)
		}
	}
	return err
}

// request refuses what would start or steer a turn in another way.
func (b *budgeted) request(ctx context.Context, m *acp.ProxyMessage, next func(context.Context) error) error {
	method := strings.ToLower(m.Method)
	is := func(word string) bool { return strings.Contains(method, word) }
	if m.Direction == acp.ToAgent && (is("steer") || is("inject") || is("prompt")) {
		b.mu.Lock()
		over := b.over
		b.mu.Unlock()
		if over != "" {
			return jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", over).WithData(map[string]string{"reason": "budget"})
		}
	}
	return next(ctx)
}

func (b *budgeted) update(ctx context.Context, s *acp.ProxySession, u acp.Update) ([]acp.Update, error) {
	switch v := u.Update.(type) {
	case *acp.UsageUpdate:
		b.report(ctx, s, b.count(s, v))
	case *acpv2.IdleStateUpdate:
		b.report(ctx, s, b.countTurn(s, v.Meta))
		if s.Version() != 1 { // of all prompts that the session has got since
			b.mu.Lock()
			delete(b.running, s)
			b.mu.Unlock()
		}
	}
	return []acp.Update{u}, nil
}

// A spending is what follows from figures that were counted.
type spending struct {
	notice string
	cancel []*acp.ProxySession // whose turns are to end
}

// report says what follows from what was counted.
func (b *budgeted) report(ctx context.Context, s *acp.ProxySession, now spending) {
	if now.notice != "" {
		id := "budget_" + acp.MessageID(rand.Text())
		_ = s.Update(ctx, &acp.AgentMessageChunk{MessageID: id, Content: acp.Text("[budget] " + now.notice + "\n")})
	}
	for _, running := range now.cancel {
		_ = running.Cancel(ctx) // its turn ends as the user's own cancelling would end it
	}
}

// count counts what a session reports.
func (b *budgeted) count(s *acp.ProxySession, u *acp.UsageUpdate) spending {
	return b.counted(s, func(m meter) {
		m[grown] += max(0, float64(u.Used)-m[used])
		m[used] = float64(u.Used)
		b.settle(m)
		if cost, ok := u.Cost.Get(); ok && !math.IsNaN(cost.Amount) {
			b.grow(m, strings.ToUpper(safetext.Line(cost.Currency, 20)), cost.Amount)
		}
	})
}

// What a meter has of tokens: the size of the context, by how much it has grown, what turns have used, and what is counted of
// all that.
const (
	used    = "used"
	grown   = "grown"
	turned  = "turned"
	settled = "settled"
)

// countTurn counts what a turn has used, by the metadata of its end.
func (b *budgeted) countTurn(s *acp.ProxySession, meta json.RawMessage) spending {
	tokens := quotaTokens(meta)
	if tokens == 0 {
		return spending{}
	}
	return b.counted(s, func(m meter) {
		m[turned] += tokens
		b.settle(m)
	})
}

// settle counts tokens: those that turns have used, unless the context has grown by more.
func (b *budgeted) settle(m meter) {
	now := max(m[grown], m[turned])
	b.spent[unitTokens] += max(0, now-m[settled])
	m[settled] = max(now, m[settled])
}

// metaOf returns _meta of an answer.
func metaOf(answer json.RawMessage) json.RawMessage {
	var v struct {
		Meta json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(answer, &v)
	return v.Meta
}

// quotaTokens returns the tokens in quota of _meta, whose parts need not add up.
func quotaTokens(meta json.RawMessage) float64 {
	var v struct {
		Quota struct {
			TokenCount json.RawMessage `json:"token_count"`
			ModelUsage []struct {
				TokenCount json.RawMessage `json:"token_count"`
			} `json:"model_usage"`
		} `json:"quota"`
	}
	_ = json.Unmarshal(meta, &v) // what is wrong in a part is left out
	total := func(raw json.RawMessage) float64 {
		var counts struct{ TotalTokens, InputTokens, OutputTokens float64 }
		var number float64
		if json.Unmarshal(raw, &number) == nil {
			return max(0, number)
		}
		_ = json.Unmarshal(raw, &counts)
		return max(0, counts.TotalTokens, max(0, counts.InputTokens)+max(0, counts.OutputTokens))
	}
	models := 0.0
	for _, m := range v.Quota.ModelUsage {
		models += total(m.TokenCount)
	}
	return max(total(v.Quota.TokenCount), models)
}

// counted has figures counted in the meter of a session.
func (b *budgeted) counted(s *acp.ProxySession, count func(m meter)) (now spending) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := s.ID()
	if b.meters[id] == nil && len(b.meters) >= maxMetered {
		id = ""
	}
	m := b.meters[id]
	if m == nil {
		m = meter{}
		b.meters[id] = m
	}
	count(m)
	for _, unit := range slices.Sorted(maps.Keys(b.spent)) {
		limit, spent := b.limit(unit), b.spent[unit]
		switch {
		case limit == 0:
		case spent >= limit:
			if b.over == "" {
				b.over = fmt.Sprintf("the budget of %s %s is used up", amount(limit), unit)
				now.notice = b.over + "."
			}
		case spent >= limit*noticeAt/100 && !b.noticed:
			b.noticed = true
			now.notice = fmt.Sprintf("%s of %s %s are used.", amount(spent), amount(limit), unit)
		}
	}
	if b.over != "" && !b.finish {
		now.cancel = slices.Collect(maps.Keys(b.running))
	}
	return now
}

// maxUnits bounds how many currencies there are.
const maxUnits = 16

// grow counts what a figure has grown by.
func (b *budgeted) grow(m meter, unit string, now float64) {
	if _, known := b.spent[unit]; !known && len(b.spent) >= maxUnits {
		unit = "of other currencies"
	}
	b.spent[unit] += max(0, now-m[unit])
	m[unit] = now
}

func amount(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
