// Package history compares the history that an agent replays when a session is continued with what
// was kept of the conversation, and finds what is new in it.
//
// The replay never replaces what was kept: agents leave out answers that were interrupted,
// permission questions and changes to files, they rewrite what the user said, and they use other
// ids. [News] returns what the kept conversation lacks, for the caller to append.
package history

import (
	"slices"
	"strings"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

const (
	// maxNear bounds the entries between the equals of its neighbours that a message without an
	// equal is compared with; maxFar bounds the messages elsewhere.
	maxNear = 256
	maxFar  = 256
	// minFar is how many characters, without white space, a message must share with one elsewhere
	// in the conversation to count as its beginning.
	minFar = 16
	// minEnd is how many letters the end of a kept answer must have to be taken for one that is replayed.
	minEnd = 8
	// longID is the length from which on an id counts as unique, and not as a number that an agent
	// counts from 1 each time it starts.
	longID = 16
)

// A Piece is something that the kept conversation lacks.
type Piece struct {
	Entry transcript.Entry // of the replayed conversation
	// Rest is the part of a message that is new, if the kept conversation has its beginning; "" if
	// all of the entry is new.
	Rest string
}

// News compares what an agent replays of a conversation with what was kept of it. It returns what
// is new, in the order of the replay. Either conversation may be empty. News is a pure function;
// its result shares memory with told.
//
// Entries match if they say the same, however often: an entry that was replayed twice and kept once
// is news once. A message also matches one that is its beginning, or that begins with it, as an
// interrupted answer does, and several that make it up together. Tool calls match by what they do,
// or else by their ids. White space is ignored, and so are elements such as <system-reminder> that
// agents put around the words of the user.
//
// Appending the news to the kept conversation, as [Piece.Update] returns it, and comparing again
// finds no news. The time is proportional to the size of both conversations, plus at most 512
// comparisons for each message that has no equal.
func News(kept, told *transcript.Snapshot) []Piece {
	c := comparison{told: slices.Collect(told.Entries()), marks: map[string]int{}}
	for e := range kept.Entries() {
		// What was replayed before is subtracted at the end, so that it cannot change what else
		// matches.
		if m := mark(e); m != "" {
			c.marks[m]++
			continue
		}
		c.kept = append(c.kept, e)
	}
	c.used = make([]bool, len(c.kept))
	c.of = make([]int, len(c.told))
	c.rest = make([]string, len(c.told))
	for i := range c.of {
		c.of[i] = unmatched
	}
	inMatched := c.blank()
	for _, key := range []func(transcript.Entry) string{whole, does, input, title, touches} {
		c.pass(key)
	}
	c.ids()
	c.near()
	c.far()
	for i, e := range c.told {
		if t, ok := e.(*transcript.Terminal); ok && c.of[i] == unmatched && c.inCall(inMatched[t.ID]) {
			c.of[i] = nothing
		}
	}
	return c.result()
}

const (
	unmatched = -1 - iota
	nothing   // it says nothing, or belongs to something that matches
)

// A comparison is one call of News.
type comparison struct {
	kept, told []transcript.Entry
	used       []bool         // of kept: it has a match
	marks      map[string]int // fingerprints of what was added because an earlier replay had it
	open       []remainder    // of messages of which part was replayed
	of         []int          // of told: its match in kept
	rest       []string       // of told: what is beyond that
}

// blank marks entries that say nothing, and returns the tool calls that show terminals.
func (c *comparison) blank() map[acpv2.TerminalID][]int {
	in := map[acpv2.TerminalID][]int{}
	for i, e := range c.told {
		switch e := e.(type) {
		case *transcript.Message:
			if IsBlank(e.Content()) {
				c.of[i] = nothing
			}
		case *transcript.ToolCall:
			for _, x := range e.Content {
				if t, ok := x.(*acpv2.Terminal); ok {
					in[t.TerminalID] = append(in[t.TerminalID], i)
				}
			}
		case *transcript.Plan:
			if e.Removed {
				c.of[i] = nothing
			}
		}
	}
	return in
}

// IsBlank reports whether content says nothing: it is blank text, or none.
func IsBlank(blocks []acpv2.ContentBlock) bool {
	for _, b := range blocks {
		if t, ok := b.(*acpv2.TextContent); !ok || strings.TrimSpace(t.Text) != "" {
			return false
		}
	}
	return true
}

// inCall reports whether one of those tool calls was kept.
func (c *comparison) inCall(calls []int) bool {
	return slices.ContainsFunc(calls, func(i int) bool { return c.of[i] >= 0 })
}

// pass matches entries with equal keys, in order; "" matches nothing.
func (c *comparison) pass(key func(transcript.Entry) string) {
	var queue map[string][]int
	for i, e := range c.told {
		if c.of[i] != unmatched {
			continue
		}
		k := key(e)
		if k == "" {
			continue
		}
		if queue == nil {
			queue = map[string][]int{}
			for j, e := range c.kept {
				if c.used[j] {
					continue
				}
				if k := key(e); k != "" {
					queue[k] = append(queue[k], j)
				}
			}
		}
		if q := queue[k]; len(q) > 0 {
			c.match(i, q[0])
			queue[k] = q[1:]
		}
	}
}

func (c *comparison) match(i, j int) { c.of[i], c.used[j] = j, true }

// ids matches entries by the ids of the agent if they say something similar, or if the ids are
// long.
func (c *comparison) ids() {
	type id struct {
		kind transcript.EntryKind
		role transcript.Role
		id   string
	}
	of := func(e transcript.Entry) (k id) {
		k = id{kind: e.EntryKind(), id: e.EntryID()}
		if m, ok := e.(*transcript.Message); ok {
			k.role = m.Role
			if strings.HasPrefix(k.id, "v1-") { // invented by the library
				k.id = ""
			}
		}
		return k
	}
	kept := map[id]int{}
	for j, e := range c.kept {
		if k := of(e); k.id != "" && !c.used[j] {
			kept[k] = j
		}
	}
	for i, e := range c.told {
		k := of(e)
		if k.id == "" || c.of[i] != unmatched {
			continue
		}
		j, ok := kept[k]
		if !ok || c.used[j] {
			continue
		}
		switch e := e.(type) {
		case *transcript.Message:
			if c.extends(i, j) {
				continue
			}
			if len(k.id) >= longID {
				c.match(i, j)
			}
		case *transcript.ToolCall:
			if similar(c.kept[j].(*transcript.ToolCall), e) || len(k.id) >= longID {
				c.match(i, j)
			}
		case *transcript.Subagent, *transcript.Terminal, *transcript.Compaction, *transcript.SessionMessage:
			if k.kind == transcript.KindSubagent || len(k.id) >= longID {
				c.match(i, j)
			}
		}
	}
}

// similar compares tool calls of the same id.
func similar(a, b *transcript.ToolCall) bool {
	x, y := squeeze(a.Title), squeeze(b.Title)
	switch {
	case x == y, x == "" || y == "":
		return true
	case strings.Contains(x, y) || strings.Contains(y, x):
		return true
	case a.Kind != b.Kind:
		return false
	}
	return slices.ContainsFunc(a.Locations, func(l acpv2.ToolCallLocation) bool {
		return slices.ContainsFunc(b.Locations, func(m acpv2.ToolCallLocation) bool { return l.Path == m.Path })
	})
}

// near compares messages without an equal with those between the equals of their neighbours. The
// agent's messages may be anywhere in the turn, since agents replay messages and calls in another
// order.
func (c *comparison) near() {
	bound := make([]int, len(c.told)+1) // the first equal of what follows
	bound[len(c.told)] = len(c.kept)
	for i := len(c.told) - 1; i >= 0; i-- {
		bound[i] = bound[i+1]
		if c.isPlace(i) {
			bound[i] = min(bound[i], c.of[i])
		}
	}
	after, turn := -1, -1
	for i := range c.told {
		m, ok := c.told[i].(*transcript.Message)
		isUser := ok && m.Role == transcript.RoleUser
		if ok && c.of[i] == unmatched && !c.continues(i, m) {
			from, limit := after, bound[i+1]
			if !isUser {
				from = turn
			}
			if limit <= after {
				limit = len(c.kept)
			}
			for k := from + 1; k < min(limit, from+1+maxNear); k++ {
				if c.isFree(k, m.Role) && (c.extends(i, k) || c.contains(i, k)) {
					break
				}
			}
		}
		if c.isPlace(i) {
			if after = max(after, c.of[i]); isUser {
				turn = after
			}
		}
	}
}

// isPlace reports whether the equal of an entry says where in the conversation its neighbours are.
func (c *comparison) isPlace(i int) bool {
	if c.of[i] < 0 {
		return false
	}
	switch c.told[i].(type) {
	case *transcript.Message, *transcript.ToolCall:
		return true
	}
	return false
}

// far does so with messages anywhere, if they share enough.
func (c *comparison) far() {
	free := map[transcript.Role][]int{}
	for k, e := range c.kept {
		if m, ok := e.(*transcript.Message); ok && c.isFree(k, m.Role) && letters(m.Text(), minFar) == minFar {
			free[m.Role] = append(free[m.Role], k)
		}
	}
	for i, e := range c.told {
		m, ok := e.(*transcript.Message)
		if !ok || c.of[i] != unmatched || letters(m.Text(), minFar) < minFar {
			continue
		}
		list := free[m.Role]
		at := slices.IndexFunc(list[:min(len(list), maxFar)], func(k int) bool { return !c.used[k] && c.extends(i, k) })
		if at >= 0 {
			free[m.Role] = slices.Delete(list, at, at+1)
		}
	}
}

// isFree reports whether an entry is a message of that role without a match.
func (c *comparison) isFree(k int, role transcript.Role) bool {
	m, ok := c.kept[k].(*transcript.Message)
	return ok && m.Role == role && !c.used[k] && letters(m.Text(), 1) > 0
}

// continues matches a message with the rest of one that was replayed in several.
func (c *comparison) continues(i int, m *transcript.Message) bool {
	for _, r := range c.open {
		if c.kept[r.of].(*transcript.Message).Role != m.Role {
			continue
		}
		if left, ok := after(r.text, m.Text()); ok {
			c.of[i] = r.of
			c.leave(r.of, left)
			return true
		}
	}
	return false
}

// A remainder is text of a kept message that nothing replayed has matched yet.
type remainder struct {
	of   int // kept
	text string
}

// maxOpen bounds the messages that wait for their rest.
const maxOpen = 8

func (c *comparison) leave(k int, rest string) {
	c.open = slices.DeleteFunc(c.open, func(r remainder) bool { return r.of == k })
	if letters(rest, 1) > 0 && len(c.open) < maxOpen {
		c.open = append(c.open, remainder{k, rest})
	}
}

// extends matches a message with one of which either begins the other, and with those that continue
// it.
func (c *comparison) extends(i, k int) bool {
	m, was := c.told[i].(*transcript.Message), c.kept[k].(*transcript.Message)
	told, kept := m.Text(), was.Text()
	if m.Role == transcript.RoleUser {
		told = unwrap(told)
		if x := unwrap(kept); letters(x, 1) > 0 {
			kept = x
		}
	}
	if letters(told, 1) == 0 || letters(kept, 1) == 0 {
		return false
	}
	if rest, ok := after(kept, told); ok { // it was replayed in part
		c.match(i, k)
		c.leave(k, rest)
		return true
	}
	rest, ok := after(told, kept)
	if !ok {
		return false
	}
	c.match(i, k)
	// The rest may have been kept as messages of their own.
	for j := k + 1; j < min(len(c.kept), k+1+maxNear) && letters(rest, 1) > 0; j++ {
		if !c.isFree(j, m.Role) {
			continue
		}
		if left, ok := after(rest, c.kept[j].(*transcript.Message).Text()); ok {
			c.used[j] = true
			rest = left
		}
	}
	if letters(rest, 1) > 0 && m.Role != transcript.RoleUser {
		c.rest[i] = rest
	}
	return true
}

// contains matches words of the user around which the agent has put something, and an answer before which
// it put something that it does not replay: a line about itself, without a gap.
func (c *comparison) contains(i, k int) bool {
	m, was := c.told[i].(*transcript.Message), c.kept[k].(*transcript.Message)
	told, kept := squeeze(m.Text()), squeeze(was.Text())
	if m.Role != transcript.RoleUser {
		if m.Role != was.Role || letters(told, minEnd) < minEnd || !strings.HasSuffix(kept, told) {
			return false
		}
		c.match(i, k)
		return true
	}
	if letters(kept, minFar) < minFar || !strings.Contains(told, kept) {
		return false
	}
	c.match(i, k)
	return true
}

// result returns what is left of told: the news.
func (c *comparison) result() (news []Piece) {
	add := func(p Piece) {
		if f := Fingerprint(p.Entry); c.marks[f] > 0 {
			c.marks[f]--
			return
		}
		news = append(news, p)
	}
	for i, e := range c.told {
		switch {
		case c.of[i] == unmatched:
			add(Piece{Entry: e})
		case c.of[i] >= 0:
			if c.rest[i] != "" {
				add(Piece{Entry: e, Rest: c.rest[i]})
			} else if was, ok := c.kept[c.of[i]].(*transcript.ToolCall); ok && e.(*transcript.ToolCall).Ended() && !was.Ended() {
				add(Piece{Entry: e}) // how it ended
			}
		}
	}
	return news
}
