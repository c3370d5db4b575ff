package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/model"
)

// cacheLife is how long providers keep what they have read, at least.
const cacheLife = 5 * time.Minute

// A cause is why a provider has not read the beginning of a request from its cache.
type cause string

// The causes.
const (
	causeTime     cause = "the cache had expired"
	causeModel    cause = "another model"
	causeCompact  cause = "the conversation was compacted"
	causeProvider cause = "the provider's own reasons"
)

// A cache watches what a provider reads from its cache. Only providers that have ever
// reported one can miss.
type cache struct {
	works  bool // the provider has one
	read   int  // tokens of the last request
	at     time.Time
	model  string
	short  bool // the conversation was compacted since, or a part of it replaced
	missed map[cause]int
	tokens int // that were read again in all
}

// see counts an answer. least is how many tokens a request must have to be cached.
func (c *cache) see(u model.Usage, name string, least int, now time.Time) {
	if !u.Known {
		return
	}
	if least == 0 {
		least = 1024
	}
	if c.works && c.read > 2*least && u.CacheRead < c.read/2 {
		why := causeProvider
		switch {
		case c.short:
			why = causeCompact
		case c.model != name:
			why = causeModel
		case now.Sub(c.at) > cacheLife:
			why = causeTime
		}
		if c.missed == nil {
			c.missed = map[cause]int{}
		}
		c.missed[why]++
		c.tokens += c.read - u.CacheRead
	}
	c.works = c.works || u.CacheRead > 0 || u.CacheWrite > 0
	c.read, c.at, c.model, c.short = u.Read(), now, name, false
}

// misses says how often the cache was missed, and why; "" if it never was.
func (c *cache) misses() string {
	var all []string
	for why, n := range c.missed {
		all = append(all, fmt.Sprintf("%s (%s)", prose.Count(n, "time"), why))
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return fmt.Sprintf("- The cache was missed %s: %d tokens were read again\n", strings.Join(all, ", "), c.tokens)
}
