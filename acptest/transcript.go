package acptest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/goacp/acp/internal/pattern"
)

// idClasses names the members that hold ids, and what these are called.
var idClasses = map[string]string{
	"sessionId": "sess", "parentSessionId": "sess", "senderSessionId": "sess", "recipientSessionId": "sess",
	"messageId": "msg", "senderMessageId": "msg", "recipientMessageId": "msg",
	"toolCallId": "call", "terminalId": "term", "elicitationId": "ask",
	"compactionId": "compaction", "correlationId": "correlation",
}

// infoMembers hold implementations, whose versions change.
var infoMembers = map[string]bool{"info": true, "agentInfo": true, "clientInfo": true}

const (
	// embeddedLen is the length from which ids are looked for inside other
	// strings, embeddedIDs how many of them are.
	embeddedLen = 8
	embeddedIDs = 1000
)

var timestamp = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

// normalizer replaces what differs between runs.
type normalizer struct {
	requests map[string]string // direction and id to name
	methods  map[string]string // the same to method
	names    map[string]string // class and id to name
	count    map[string]int
	inside   [][2]string       // ids to look for inside other strings, and their names
	replacer *strings.Replacer // of these; nil when there are new ones
	temp     *regexp.Regexp
	temps    map[string]string
	cwd      string
}

func newNormalizer() *normalizer {
	n := &normalizer{
		requests: map[string]string{}, methods: map[string]string{}, names: map[string]string{},
		count: map[string]int{}, temps: map[string]string{},
	}
	temp := os.TempDir()
	dirs := []string{regexp.QuoteMeta(filepath.Clean(temp))}
	if real, err := filepath.EvalSymlinks(temp); err == nil && real != temp {
		dirs = append([]string{regexp.QuoteMeta(real)}, dirs...)
	}
	// testing's directories end in three digits.
	n.temp = regexp.MustCompile(`(` + strings.Join(dirs, "|") + `)[/\\][^/\\\s"':]+([/\\]\d{3}\b)?`)
	if cwd, err := os.Getwd(); err == nil && len(cwd) > 1 {
		n.cwd = cwd
	}
	return n
}

// transcript returns the text of a recording.
func transcript(frames []Recorded) string {
	outIsClient := clientIsOut(frames)
	n := newNormalizer()
	var b strings.Builder
	for _, f := range frames {
		arrow := agentArrow
		if f.Out == outIsClient {
			arrow = clientArrow
		}
		b.WriteString(arrow + n.line(f.Out, f.Data) + "\n")
	}
	return b.String()
}

// What the lines of the two sides begin with.
const clientArrow, agentArrow = "-> ", "<- "

// clientIsOut reports whether the side that was recorded is the client: it sent
// initialize, or nobody did.
func clientIsOut(frames []Recorded) bool {
	for _, f := range frames {
		if v, err := pattern.Parse(f.Data); err == nil && v.StringAt("method") == "initialize" {
			return f.Out
		}
	}
	return true
}

// line returns a frame as a line without its arrow.
func (n *normalizer) line(out bool, frame string) string {
	v, err := pattern.Parse(frame)
	if err != nil || v.Kind != pattern.Object {
		return pattern.Quote(frame)
	}
	n.learn(v)
	method := word(v.StringAt("method"))
	id := v.Get("id")
	switch {
	case method != "" && id != nil:
		key := fmt.Sprint(out, id.Text)
		n.methods[key] = method
		n.requests[key] = n.fresh("id")
		return n.requests[key] + " " + method + n.part(v, "params", " ", out, method)
	case method != "":
		return method + n.part(v, "params", " ", out, method)
	case id == nil:
		return pattern.Quote(frame)
	}
	key := fmt.Sprint(!out, id.Text)
	name, method := n.requests[key], n.methods[key]
	if name == "" {
		name, method = word(id.Text), "?"
	}
	head := name + " " + method
	if e := v.Get("error"); e != nil {
		head += " !"
		for _, m := range e.Members {
			head += " " + n.text(m.Val, m.Key, out, method)
		}
		return head
	}
	return head + n.part(v, "result", " = ", out, method)
}

func (n *normalizer) part(v *pattern.Value, name, before string, out bool, method string) string {
	m := v.Get(name)
	if m == nil {
		return ""
	}
	return before + n.text(m, name, out, method)
}

func (n *normalizer) fresh(class string) string {
	n.count[class]++
	return fmt.Sprint(class, n.count[class])
}

// learn gives the ids in v names.
func (n *normalizer) learn(v *pattern.Value) {
	for _, m := range v.Members {
		if class := idClasses[m.Key]; class != "" && m.Val.Kind == pattern.String && n.names[class+m.Val.Str] == "" {
			name := n.fresh(class)
			n.names[class+m.Val.Str] = name
			if len(m.Val.Str) >= embeddedLen && len(n.inside) < embeddedIDs {
				n.inside = append(n.inside, [2]string{m.Val.Str, name})
				n.replacer = nil
			}
		}
		n.learn(m.Val)
	}
	for _, e := range v.Elems {
		n.learn(e)
	}
}

// text returns a value in a compact form.
func (n *normalizer) text(v *pattern.Value, key string, out bool, method string) string {
	switch v.Kind {
	case pattern.Object:
		parts := make([]string, len(v.Members))
		for i, m := range v.Members {
			k := m.Key
			if infoMembers[key] && k == "version" && m.Val.Kind == pattern.String {
				parts[i] = `"version":"VERSION"`
				continue
			}
			parts[i] = pattern.Quote(k) + ":" + n.text(m.Val, k, out, method)
		}
		return "{" + strings.Join(parts, ",") + "}"
	case pattern.Array:
		parts := make([]string, len(v.Elems))
		for i, e := range v.Elems {
			parts[i] = n.text(e, key, out, method)
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	if key == "requestId" && method == "mcp/message" && v.Kind == pattern.String { // of a request of MCP in it
		id := "mcp" + v.Str
		if n.names[id] == "" {
			n.names[id] = n.fresh("mcp")
		}
		return pattern.Quote(n.names[id])
	}
	if key == "requestId" {
		// of the sender's own request when it cancels, else of the receiver's
		of := out == (method == "$/cancel_request")
		if name := n.requests[fmt.Sprint(of, v.Text)]; name != "" {
			return pattern.Quote(name)
		}
	}
	if v.Kind == pattern.String {
		return pattern.Quote(n.string(v.Str, key))
	}
	return v.Text
}

func (n *normalizer) string(s, key string) string {
	if name := n.names[idClasses[key]+s]; name != "" {
		return name
	}
	if timestamp.MatchString(s) {
		return "TIME"
	}
	if n.cwd != "" { // which may be in a temporary directory
		s = strings.ReplaceAll(s, n.cwd, "/cwd")
	}
	s = n.temp.ReplaceAllStringFunc(s, func(dir string) string {
		if n.temps[dir] == "" {
			n.temps[dir] = n.fresh("/tmp")
		}
		return n.temps[dir]
	})
	if n.replacer == nil {
		slices.SortStableFunc(n.inside, func(a, b [2]string) int { return len(b[0]) - len(a[0]) }) // the longest wins
		var pairs []string
		for _, p := range n.inside {
			pairs = append(pairs, p[:]...)
		}
		n.replacer = strings.NewReplacer(pairs...)
	}
	return n.replacer.Replace(s)
}

// word returns s such that it neither ends the line nor looks like two words.
func word(s string) string {
	if strings.ContainsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }) {
		return pattern.Quote(s)
	}
	return s
}

// difference describes the first line in which two texts differ, or "".
func difference(want, got string) string {
	if want == got {
		return ""
	}
	a, b := strings.SplitAfter(want, "\n"), strings.SplitAfter(got, "\n")
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	var out strings.Builder
	for _, same := range a[max(0, i-2):i] {
		out.WriteString("  " + same)
	}
	show := func(sign string, lines []string) {
		for _, l := range lines[i:min(len(lines), i+3)] {
			if l != "" {
				out.WriteString(sign + strings.TrimSuffix(l, "\n") + "\n")
			}
		}
	}
	show("- ", a)
	show("+ ", b)
	return fmt.Sprintf("line %d, - is what is expected and + what was recorded:\n%s", i+1, out.String())
}
