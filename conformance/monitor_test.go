package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/trace"
)

// The traces under testdata/observed break one rule each. A member is named
// after its rule, and what follows the id tells several apart; rules of either
// side may have one for both, which is played in both directions. Lines are
//
//	v1, v2                    an initialize with all capabilities
//	v1 bare, v2 bare          one without
//	session                   a session s1
//	turn, done                a prompt in s1, and its end
//	> 5 METHOD PARAMS         a request of the client with the id 5
//	> METHOD PARAMS           a notification
//	< 5 = RESULT, < 5 ! ERROR answers
//	< update UPDATE           an update of s1
//	< raw TEXT, < text TEXT   a frame as it is, a line that is no JSON
//	@2s                       time passes
//	gap                       frames are missing
//
// A line that begins with - is left out to break the rule, and one with + is
// put in. Nothing is found without those, and nothing but the rule with them,
// apart from what a line # also ID names. A line # unseen says that the rule has
// no case if it is kept.

type play struct {
	t    *testing.T
	m    *Monitor
	at   time.Duration
	v    int
	bare string
	swap bool
	seen []string
	also []string
	log  []string
}

var preludes = map[string][]string{
	"v1": {
		`> 0 initialize {"protocolVersion":1,"clientInfo":{"name":"c","version":"1"},"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"session":{"compaction":{},"notices":{},"configOptions":{"boolean":{}},"cursors":{},"promptSuggestions":{"image":{}}},"subagents":{},"plan":{},"auth":{"terminal":true},"elicitation":{"form":{},"url":{}}}}`,
		`< 0 = {"protocolVersion":1,"agentInfo":{"name":"a","version":"1"},"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true,"audio":true,"embeddedContext":true},"mcpCapabilities":{"http":true,"sse":true,"acp":true},"sessionCapabilities":{"list":{},"delete":{},"additionalDirectories":{},"systemPrompt":{"mode":{"override":{}}},"fork":{},"archive":{},"status":{},"title":{},"resume":{},"close":{},"options":{}},"auth":{"status":{},"logout":{}},"providers":{}},"authMethods":[{"id":"key","name":"Key"}]}`,
	},
	"v1 bare": {
		`> 0 initialize {"protocolVersion":1,"clientInfo":{"name":"c","version":"1"}}`,
		`< 0 = {"protocolVersion":1,"agentInfo":{"name":"a","version":"1"}}`,
	},
	"v2": {
		`> 0 initialize {"protocolVersion":2,"info":{"name":"c","version":"1"},"capabilities":{"auth":{"terminal":{}},"elicitation":{"form":{},"url":{}},"session":{"promptSuggestions":{"image":{}},"commands":{"skill":{}}}}}`,
		`< 0 = {"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{"prompt":{"image":{},"audio":{},"embeddedContext":{},"skill":{}},"mcp":{"stdio":{},"http":{},"acp":{}},"delete":{},"additionalDirectories":{},"systemPrompt":{"mode":{"override":{}}},"fork":{},"archive":{},"status":{},"title":{},"options":{}},"auth":{"status":{}},"providers":{}},"authMethods":[{"type":"agent","methodId":"key","name":"Key"}]}`,
	},
	"v2 bare": {
		`> 0 initialize {"protocolVersion":2,"info":{"name":"c","version":"1"},"capabilities":{}}`,
		`< 0 = {"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{}}}`,
	},
	"session v1": {
		`> 1 session/new {"cwd":"/w","mcpServers":[]}`,
		`< 1 = {"sessionId":"s1","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]},"configOptions":[{"id":"model","name":"Model","type":"select","currentValue":"a","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]},{"id":"fast","name":"Fast","type":"boolean","currentValue":false}]}`,
	},
	"session v1 bare": {
		`> 1 session/new {"cwd":"/w","mcpServers":[]}`,
		`< 1 = {"sessionId":"s1"}`,
	},
	"session v2": {
		`> 1 session/new {"cwd":"/w"}`,
		`< 1 = {"sessionId":"s1","configOptions":[{"configId":"model","name":"Model","type":"select","currentValue":"a","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]}],"availableCommands":[{"type":"command","name":"web","description":"d"}]}`,
	},
	"turn v1": {
		`> 10 session/prompt {"sessionId":"s1","prompt":[{"type":"text","text":"hi"}]}`,
		`< update {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"h"}}`,
	},
	"done v1": {`< 10 = {"stopReason":"end_turn"}`},
	"turn v2": {
		`> 10 session/prompt {"sessionId":"s1","prompt":[{"type":"text","text":"hi"}]}`,
		`< 10 = {"messageId":"m1"}`,
		`< update {"sessionUpdate":"state_update","state":"running","background":[]}`,
		`< update {"sessionUpdate":"user_message","messageId":"m1","content":[{"type":"text","text":"hi"}]}`,
		`< update {"sessionUpdate":"agent_thought","messageId":"t1","content":[{"type":"text","text":"h"}]}`,
	},
	"done v2": {`< update {"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn","background":[]}`},
}

func (p *play) line(line string, body bool) {
	p.t.Helper()
	if line == "" || line[0] == '#' {
		return
	}
	if d, ok := strings.CutPrefix(line, "@"); ok {
		n, err := time.ParseDuration(d)
		if err != nil {
			p.t.Fatal(err)
		}
		p.at += n
		return
	}
	key := line
	switch {
	case strings.HasPrefix(line, "v"):
		p.v = int(line[1] - '0')
		if strings.HasSuffix(line, "bare") {
			p.bare = " bare"
		}
	case line == "session":
		key = fmt.Sprintf("session v%d%s", p.v, p.bare)
		if preludes[key] == nil {
			key = fmt.Sprintf("session v%d", p.v)
		}
	case line == "turn", line == "done":
		key = fmt.Sprintf("%s v%d", line, p.v)
	case line == "gap":
		p.m.Gap()
		return
	}
	if lines := preludes[key]; lines != nil {
		for _, l := range lines {
			p.line(l, false)
		}
		return
	}
	arrow, rest, _ := strings.Cut(line, " ")
	dir := trace.ToAgent
	if arrow == "<" != (p.swap && body) {
		dir = trace.ToClient
	}
	if arrow != ">" && arrow != "<" {
		p.t.Fatalf("no line of a trace: %s", line)
	}
	if s, ok := strings.CutPrefix(rest, "text "); ok {
		p.add(line, p.m.Text(p.at, dir, []byte(s)))
		return
	}
	p.add(line, p.m.Frame(p.at, dir, []byte(frameOf(rest))))
}

func frameOf(s string) string {
	if raw, ok := strings.CutPrefix(s, "raw "); ok {
		return strings.NewReplacer(`<LONG>`, strings.Repeat("x", largeFrame), `<DEEP>`, strings.Repeat("[", 600)+strings.Repeat("]", 600),
			`<BAD>`, "\xff").Replace(raw)
	}
	word, rest, _ := strings.Cut(s, " ")
	if word == "update" {
		return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":` + rest + `}}`
	}
	if word[0]-'0' < 10 || word[0] == '"' || word == "null" {
		what, more, _ := strings.Cut(rest, " ")
		switch what {
		case "=":
			return `{"jsonrpc":"2.0","id":` + word + `,"result":` + more + `}`
		case "!":
			return `{"jsonrpc":"2.0","id":` + word + `,"error":` + more + `}`
		}
		return `{"jsonrpc":"2.0","id":` + word + `,"method":"` + what + `","params":` + more + `}`
	}
	return `{"jsonrpc":"2.0","method":"` + word + `","params":` + rest + `}`
}

func (p *play) add(line string, found []Finding) {
	for _, f := range found {
		if slices.Contains(p.also, f.Rule.ID) {
			continue
		}
		p.seen = append(p.seen, f.Rule.ID)
		p.log = append(p.log, fmt.Sprintf("%s: %s [%s] %s", f.Rule.ID, f.Why, f.Path, clip(line, 200)))
		if f.Why == "" || strings.ContainsAny(f.Why, "\n\x1b") || f.Frame < 1 {
			p.t.Errorf("a finding is unfit: %+v", f)
		}
	}
}

func run(t *testing.T, text string, broken, swap bool) *play {
	p := &play{t: t, m: NewMonitor(MonitorConfig{}), swap: swap}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if id, ok := strings.CutPrefix(line, "# also "); ok {
			p.also = append(p.also, id)
		}
		switch {
		case strings.HasPrefix(line, "-"):
			if !broken {
				p.line(line[1:], true)
			}
		case strings.HasPrefix(line, "+"):
			if broken {
				p.line(line[1:], true)
			}
		default:
			p.line(line, true)
		}
	}
	p.add("end", p.m.End())
	return p
}

func TestObservedRules(t *testing.T) {
	files, err := filepath.Glob("testdata/observed/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no traces", err)
	}
	tried := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, mb := range splitArchive(string(text)) {
			id, _, _ := strings.Cut(mb.name, " ")
			side, rest, _ := strings.Cut(id, "/")
			sides := []string{side}
			if side == "both" {
				sides = []string{"agent", "client"}
			}
			for i, side := range sides {
				id := side + "/" + rest
				tried[id] = true
				t.Run(side+" "+strings.TrimPrefix(mb.name, "both/"), func(t *testing.T) { one(t, id, mb.text, i == 1) })
			}
		}
	}
	for _, r := range Rules() {
		if r.Observed && !tried[r.ID] {
			t.Errorf("no trace breaks %s", r.ID)
		}
	}
}

// TestSpared: in the traces of spared.txtar, whose lines are those of the others,
// nobody is to blame, but for what a line # also names.
func TestSpared(t *testing.T) {
	text, err := os.ReadFile("testdata/spared.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, mb := range splitArchive(string(text)) {
		t.Run(mb.name, func(t *testing.T) {
			p := run(t, mb.text, false, false)
			for _, l := range p.log {
				t.Error(l)
			}
			if p.m.Stats().Frames == 0 {
				t.Error("nothing was played")
			}
		})
	}
}

func one(t *testing.T, id, text string, swap bool) {
	rule := builtin().byID[id]
	if rule == nil {
		t.Fatalf("no rule %s", id)
	}
	clean := run(t, text, false, swap)
	for _, l := range clean.log {
		t.Errorf("clean, and found %s", l)
	}
	if !clean.m.Seen(rule) && !strings.Contains(text, "# unseen") {
		t.Errorf("clean, and not seen")
	}
	broken := run(t, text, true, swap)
	if !slices.Contains(broken.seen, id) {
		t.Errorf("broken, and not found")
	}
	for i, got := range broken.seen {
		if got != id {
			t.Errorf("broken, and found %s", broken.log[i])
		}
	}
	if broken.m.Stats().Findings[rule] == 0 && slices.Contains(broken.seen, id) {
		t.Errorf("not counted")
	}
}
