package conformance

import (
	"net/url"
	"strings"
	"unicode"
)

var (
	ckBase64      = decides("both/content/base64")
	ckMIME        = decides("both/content/mime-type")
	ckURI         = decides("both/content/uri")
	ckPriority    = decides("both/content/priority")
	ckRole        = decides("both/content/audience")
	ckMsgKind     = decides("agent/message/kinds")
	ckMsgReplay   = decides("agent/message/replayed")
	ckMsgMixed    = decides("agent/message/interleaved")
	ckPlanEntry   = decides("agent/plan/content")
	ckPlanWords   = decides("agent/plan/words")
	ckPlanRemoved = decides("agent/plan/removed")
	ckUsageSize   = decides("agent/usage/size")
	ckUsageTotal  = decides("agent/usage/total")
	ckUsageCost   = decides("agent/usage/cost")
	ckUsageAmount = decides("agent/usage/amount")
	ckCommandName = decides("agent/command/names")
	ckCommandTwo  = decides("agent/command/unique")
	ckCommandSays = decides("agent/command/described")
	ckNotice      = decides("agent/notice/severity")
	ckNoticeTitle = decides("agent/notice/title")
)

// Kinds of content, in both versions.
const (
	image = 1 << iota
	audio
	embedded
)

// data looks at bytes in a text.
func (m *Monitor) base64(path, data string) {
	if m.breaks(ckBase64, !isBase64(data) && !redacted(data)) {
		m.add(ckBase64, path, "%s is not base64", path)
	}
}

// redacted reports whether a text has a placeholder of [trace.Redactor] in it:
// nobody sent it as it is.
func redacted(s string) bool { return strings.Contains(s, "«redacted") }

func isBase64(s string) bool {
	if len(s)%4 != 0 {
		return false
	}
	body := strings.TrimRight(s, "=")
	if len(s)-len(body) > 2 {
		return false
	}
	for i := range len(body) {
		if c := body[i]; (c|0x20)-'a' >= 26 && c-'0' >= 10 && c != '+' && c != '/' {
			return false
		}
	}
	return true
}

func (m *Monitor) mime(path, typ string) {
	a, b, _ := strings.Cut(typ, "/")
	if m.breaks(ckMIME, a == "" || b == "") {
		m.add(ckMIME, path, "%s is the type of nothing: %s", path, quote(typ))
	}
}

func (m *Monitor) uri(path, uri string) {
	u, err := url.Parse(uri)
	if m.breaks(ckURI, (err != nil || u.Scheme == "") && !redacted(uri)) {
		m.add(ckURI, path, "%s is not a URI: %s", path, quote(uri))
	}
}

func (m *Monitor) priority(path string, p *float64) {
	if p != nil && m.breaks(ckPriority, *p < 0 || *p > 1) {
		m.add(ckPriority, path, "%s is not between 0 and 1", path)
	}
}

func (m *Monitor) audience(path, role string, known bool) {
	if m.breaks(ckRole, !known && !strings.HasPrefix(role, "_")) {
		m.add(ckRole, path, "%s is for the unknown %s", path, quote(role))
	}
}

// kinds checks that an agent takes the content of a prompt.
func (m *Monitor) kinds(kinds int) {
	if kinds&image != 0 {
		m.offered1(ckCapImage, m.agent.image, "params.prompt", "images in prompts")
	}
	if kinds&audio != 0 {
		m.offered1(ckCapAudio, m.agent.audio, "params.prompt", "audio in prompts")
	}
	if kinds&embedded != 0 {
		m.offered1(ckCapEmbedded, m.agent.embedded, "params.prompt", "embedded resources in prompts")
	}
}

// The kinds of messages.
const (
	userMessage byte = 1 + iota
	agentMessage
	thought
	sessionMessage
	inPieces byte = 0x80 // is added if a piece of the message came
)

// chunk follows a piece of a message.
func (m *Monitor) chunk(s *session, id string, kind byte, chunk bool) {
	if id == "" {
		return
	}
	key := messageKey(m.version, id, kind)
	old, ok := s.messages.get(key)
	pieces := old & inPieces
	old &^= inPieces
	if m.version == 2 && s.opening > 0 && ok {
		if m.breaks(ckMsgReplay, !chunk && pieces != 0) {
			m.add(ckMsgReplay, "params.update.messageId", "replayed the message %s in pieces, and then as a whole", quote(id))
		}
	}
	if m.breaks(ckMsgKind, ok && old != kind && (old == userMessage || kind == userMessage)) {
		m.add(ckMsgKind, "params.update.messageId", "used the id %s for a message of the user and for one of its own", quote(id))
	}
	if m.breaks(ckMsgMixed, chunk && ok && s.message != id && s.opening == 0) {
		m.add(ckMsgMixed, "params.update.messageId", "went on with the message %s after it had begun another", quote(id))
	}
	switch {
	case chunk && pieces == 0:
		s.messages.put(key, kind|inPieces)
	case !ok:
		s.messages.put(key, kind)
	}
	if s.message != id {
		s.message = brief(id)
	}
}

// messageKey tells messages apart: in version 2 those of different kinds may have
// the same id.
func messageKey(version int, id string, kind byte) string {
	if version == 1 {
		return id
	}
	return string(rune('0'+kind)) + id
}

func (m *Monitor) planEntry(path, content, priority, status string, known bool) {
	if m.breaks(ckPlanEntry, strings.TrimSpace(content) == "") {
		m.add(ckPlanEntry, path, "planned a step that says nothing")
	}
	ours := known || strings.HasPrefix(priority, "_") || strings.HasPrefix(status, "_")
	if m.breaks(ckPlanWords, !ours) {
		m.add(ckPlanWords, path, "planned a step with the unknown priority %s or status %s", quote(priority), quote(status))
	}
}

func (m *Monitor) planRemoved(s *session, id string) {
	if m.breaks(ckPlanRemoved, s.plans.lacks(id) && s.opening == 0) {
		m.add(ckPlanRemoved, "params.update.planId", "removed the plan %s, which it has not sent", quote(id))
	}
	s.plans.drop(id)
}

// tokens looks at what a turn has used.
func (m *Monitor) tokens(path string, total, input, output uint64) {
	if m.breaks(ckUsageTotal, total < input || total-input < output) {
		m.add(ckUsageTotal, path, "used %d tokens, of them %d for input and %d for output", total, input, output)
	}
}

// usage looks at what a session uses. An agent that does not know how much room there is sends no update,
// since clients divide by it.
func (m *Monitor) usage(s *session, used, size uint64, cost *float64, currency string) {
	if m.breaks(ckUsageSize, used > size) {
		m.add(ckUsageSize, "params.update.used", "used %d of %d tokens", used, size)
	}
	if cost == nil {
		return
	}
	if m.breaks(ckUsageAmount, *cost < 0) {
		m.add(ckUsageAmount, "params.update.cost.amount", "the session costs less than nothing")
	}
	if m.breaks(ckUsageCost, s.currency == currency && *cost < s.cost) {
		m.add(ckUsageCost, "params.update.cost.amount", "the session costs less than before: %g, then %g", s.cost, *cost)
	}
	s.cost, s.currency = *cost, brief(currency)
}

// A commandSeen is a command that an agent offers.
type commandSeen struct{ name, description string }

// commands looks at what commands are called and said to do.
func (m *Monitor) commands(path string, commands []commandSeen) {
	seen := make(map[string]bool, len(commands))
	for _, c := range commands {
		n := c.name
		if m.breaks(ckCommandSays, strings.TrimSpace(c.description) == "") {
			m.add(ckCommandSays, path, "offered the command %s and did not say what it does", quote(n))
		}
		bad := n == "" || n[0] == '/' || strings.ContainsFunc(n, unicode.IsSpace)
		if m.breaks(ckCommandName, bad) {
			m.add(ckCommandName, path, "offered the command %s, which nobody can type", quote(n))
		}
		if m.breaks(ckCommandTwo, seen[n]) {
			m.add(ckCommandTwo, path, "offered the command %s twice", quote(n))
		}
		seen[n] = true
	}
}

func (m *Monitor) notice(severity, title string, known bool) {
	if m.breaks(ckNotice, !known && !strings.HasPrefix(severity, "_")) {
		m.add(ckNotice, "params.update.severity", "sent a notice of the unknown severity %s", quote(severity))
	}
	if m.breaks(ckNoticeTitle, strings.TrimSpace(title) == "") {
		m.add(ckNoticeTitle, "params.update.title", "sent a notice that says nothing")
	}
}
