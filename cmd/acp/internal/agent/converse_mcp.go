package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"
	"unicode"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
	"github.com/goacp/acp/cmd/acp/internal/model"
)

// Bounds of the tools of MCP servers that a model gets.
const (
	maxMCPTools  = 1000
	maxMCPSchema = 4 << 20 // bytes of descriptions and schemas together
	maxToolName  = 64      // which all providers take
	// listedShare is the share of the window that tools may have that are listed, and
	// mostListed how many tokens. If they have more they are found instead.
	listedShare = 0.1
	mostListed  = 10_000
	// unknownWindow is what a window of unknown size counts as, in tokens.
	unknownWindow = 64_000
	// serverPatience is how long the first prompt waits for servers. The tools of those that
	// take longer are found by words once they are there, since what a request begins with stays.
	serverPatience = 3 * time.Second
	maxNamed       = 5 // tools that a warning names
)

// A toolbox is what MCP servers have for the session's model. session.mu guards it.
type toolbox struct {
	hidden []modelTool     // found by words, since they are too many, or came late
	taken  map[string]bool // names of tools
	tools  int
	size   int // bytes of descriptions and schemas
	news   []news
}

// A news is what the user and the model do not know yet.
type news struct{ title, detail, model string }

// An answered is what a server has answered.
type answered struct {
	i     int // of the server
	tools []tool.MCPTool
	err   error
}

// mcpTools asks the session's MCP servers for their tools, and returns those that are listed for the model. What is wrong
// with a server or a tool becomes news.
func (m *modelTurn) mcpTools(ctx context.Context) []modelTool {
	servers := m.turn.Session().MCPServers()
	v := &toolbox{taken: map[string]bool{}}
	m.s.mu.Lock()
	m.s.talk.served = v
	m.s.mu.Unlock()
	if len(servers) == 0 {
		return nil
	}
	came := m.ask(servers)
	answers := make([]*answered, len(servers))
	timer := time.NewTimer(serverPatience)
	defer timer.Stop()
	waiting := len(servers)
wait:
	for waiting > 0 {
		select {
		case l := <-came:
			answers[l.i] = l
			waiting--
		case <-timer.C:
			break wait
		case <-ctx.Done():
			break wait
		}
	}
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	var all []modelTool
	for i, s := range servers {
		if answers[i] != nil {
			all = append(all, m.serve(v, s, answers[i])...)
			continue
		}
		name := prose.OneLine(tool.ServerName(s), 60)
		v.news = append(v.news, news{
			title: "The MCP server " + name + " has not answered within " + serverPatience.String() + ".", detail: "Its tools join when it does.",
			model: "The MCP server " + name + " has not answered yet. Once it does, tools_find finds its tools.",
		})
	}
	if waiting > 0 && m.s.end == sessionOpen {
		m.s.listing.Go(func() { m.late(v, servers, came, waiting) })
	}
	window := m.model.Info().Context
	if window == 0 {
		window = unknownWindow
	}
	if v.size/4 > min(int(float64(window)*listedShare), mostListed) {
		v.hidden, all = all, nil
	}
	if len(v.hidden) > 0 || waiting > 0 {
		all = append(all, m.found()...)
	}
	return all
}

// ask asks servers for their tools. Each answers once, or ctx of the session is done.
func (m *modelTurn) ask(servers []acp.MCPServer) <-chan *answered {
	came := make(chan *answered, len(servers))
	ctx := m.s.acp.Context()
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	if m.s.end > sessionOpen {
		return came // ctx is done soon
	}
	for i, s := range servers {
		m.s.listing.Go(func() {
			l := &answered{i: i}
			l.tools, _, l.err = tool.ListMCP(ctx, m, s)
			came <- l
		})
	}
	return came
}

// late adds the tools of servers that answer after the first request was made.
func (m *modelTurn) late(v *toolbox, servers []acp.MCPServer, came <-chan *answered, waiting int) {
	for range waiting {
		select {
		case l := <-came:
			s := servers[l.i]
			m.s.mu.Lock()
			tools := m.serve(v, s, l)
			v.hidden = append(v.hidden, tools...)
			if name := prose.OneLine(tool.ServerName(s), 60); l.err == nil {
				n := prose.Count(len(tools), "tool")
				v.news = append(v.news, news{
					title: "The MCP server " + name + " has started, with " + n + ".",
					model: "The MCP server " + name + " has started: tools_find finds its " + n + ".",
				})
			}
			m.s.mu.Unlock()
		case <-m.s.acp.Context().Done():
			return
		}
	}
}

// serve returns the tools that a server has answered with, but for those that the model's interface refuses. The caller holds the
// session's mu.
func (m *modelTurn) serve(v *toolbox, s acp.MCPServer, l *answered) (all []modelTool) {
	name := prose.OneLine(tool.ServerName(s), 60)
	if l.err != nil {
		why := prose.OneLine(prose.Error(l.err), 300)
		if errors.Is(l.err, context.DeadlineExceeded) {
			why = "it did not answer within " + tool.MCPPatience.String()
		}
		v.news = append(v.news, news{
			title: "The MCP server " + name + " cannot be used.", detail: prose.Sentence(why) + ".",
			model: "The MCP server " + name + " cannot be used: " + why + ". You do not have its tools.",
		})
		return nil
	}
	info, more := m.model.Info(), 0
	var left []string
	for _, t := range l.tools {
		if _, err := info.Tool(model.Tool{Schema: t.Schema}); err != nil {
			left = append(left, prose.OneLine(t.Name, 60)+" ("+prose.OneLine(err.Error(), 200)+")")
			continue
		}
		made := mcpTool(s, t, v.taken)
		if v.tools, v.size = v.tools+1, v.size+len(made.About)+len(made.Schema); v.tools > maxMCPTools || v.size > maxMCPSchema {
			more++
			continue
		}
		all = append(all, made)
	}
	if len(left) > 0 {
		v.news = append(v.news, leftOut(name, left))
	}
	if more > 0 {
		v.news = append(v.news, news{title: fmt.Sprintf("The model does not get %s of the MCP server %s.", prose.Count(more, "tool"), name), detail: "They are more than can be kept."})
	}
	return all
}

// leftOut says which tools of a server the model does not get.
func leftOut(server string, left []string) news {
	text := strings.Join(left[:min(len(left), maxNamed)], ", ")
	if more := len(left) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return news{
		title: fmt.Sprintf("The model does not get %s of the MCP server %s.", prose.Count(len(left), "tool"), server), detail: prose.Sentence(text) + ".",
		model: fmt.Sprintf("You do not get these tools of the MCP server %s: %s.", server, text),
	}
}

// News implements [loop.Host]: what has happened to MCP servers that neither the user nor the model knows.
func (m *modelTurn) News() (parts []model.Part) {
	m.s.mu.Lock()
	var all []news
	if v := m.s.talk.served; v != nil {
		all, v.news = v.news, nil
	}
	m.s.mu.Unlock()
	for _, n := range all {
		m.warn(n.title, n.detail)
		if n.model != "" {
			parts = append(parts, &model.Text{Text: "(" + n.model + ")"})
		}
	}
	return parts
}

// found returns the tools by which a model finds others that are not listed, and uses them.
func (m *modelTurn) found() []modelTool {
	var servers []string
	for _, s := range m.turn.Session().MCPServers() {
		servers = append(servers, prose.OneLine(tool.ServerName(s), 60))
	}
	find := modelTool{Tool: tool.Tool{
		Name: "tools_find", Kind: acp.ToolKindSearch, Reads: true,
		About:  fmt.Sprintf("Finds tools of MCP servers by words, with their schemas: those that are not listed. The servers are: %s.", strings.Join(servers, ", ")),
		Schema: json.RawMessage(`{"type":"object","properties":{"words":{"type":"string"}},"required":["words"],"additionalProperties":false}`),
		Run: func(_ context.Context, env tool.Env, input json.RawMessage) (tool.Result, error) {
			var in struct {
				Words string `json:"words"`
			}
			if err := json.Unmarshal(input, &in); err != nil {
				return tool.Result{}, err
			}
			return tool.Result{Text: describe(matching(hiddenOf(env), in.Words)), Status: acp.ToolCallStatusCompleted}, nil
		},
	}}
	use := modelTool{Tool: tool.Tool{
		Name: "tools_use", Kind: acp.ToolKindOther,
		About:  "Uses a tool that tools_find has found.",
		Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"input":{"type":"object"}},"required":["name","input"],"additionalProperties":false}`),
		Run: func(ctx context.Context, env tool.Env, input json.RawMessage) (tool.Result, error) {
			var in struct {
				Name  string          `json:"name"`
				Input json.RawMessage `json:"input"`
			}
			if err := json.Unmarshal(input, &in); err != nil {
				return tool.Result{}, err
			}
			for _, t := range hiddenOf(env) {
				if t.Name != in.Name {
					continue
				}
				if err := t.check(in.Input); err != nil {
					return tool.Result{}, err
				}
				return t.Run(ctx, env, in.Input)
			}
			return tool.Result{}, tool.Misusef("there is no tool %q: tools_find says which there are", prose.OneLine(in.Name, 80))
		},
	}}
	all := []modelTool{find, use}
	for i := range all {
		all[i].finds = true
		all[i].schema, _ = resolve(all[i].Schema) // nil would only leave the check out
	}
	return all
}

// hiddenOf returns the tools of a session that are found by words.
func hiddenOf(env tool.Env) []modelTool {
	e, ok := env.(*modelEnv)
	if !ok {
		return nil
	}
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	if e.s.talk.served == nil {
		return nil
	}
	return e.s.talk.served.hidden
}

// Bounds of what is found at once.
const (
	maxFound      = 10
	maxFoundBytes = 40 << 10
)

// matching returns the tools that have most of some words in their names and descriptions.
// Names count more.
func matching(tools []modelTool, words string) []modelTool {
	wanted := strings.FieldsFunc(strings.ToLower(words), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	type scored struct {
		t     modelTool
		score int
	}
	var all []scored
	for _, t := range tools {
		name, about := strings.ToLower(t.Name), strings.ToLower(t.About)
		score := 0
		for _, w := range wanted {
			if strings.Contains(name, w) {
				score += 3
			}
			if strings.Contains(about, w) {
				score++
			}
		}
		if score > 0 || len(wanted) == 0 {
			all = append(all, scored{t, score})
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[j].score < all[i].score })
	var found []modelTool
	size := 0
	for _, s := range all {
		if size += len(s.t.About) + len(s.t.Schema); len(found) == maxFound || len(found) > 0 && size > maxFoundBytes {
			break
		}
		found = append(found, s.t)
	}
	return found
}

// describe returns tools as a model reads them.
func describe(tools []modelTool) string {
	if len(tools) == 0 {
		return "No tool has any of these words."
	}
	var b strings.Builder
	for _, t := range tools {
		fmt.Fprintf(&b, "%s: %s\ninput: %s\n\n", t.Name, strings.TrimSpace(t.About), t.Schema)
	}
	return b.String()
}

// mcpTool makes a tool of one of a server. Its name is not taken yet.
func mcpTool(s acp.MCPServer, t tool.MCPTool, taken map[string]bool) modelTool {
	schema := t.Schema
	resolved, _ := resolve(schema) // nil if it cannot be used
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	return modelTool{
		Tool: tool.Tool{
			Name: toolName(tool.ServerName(s), t.Name, taken), About: t.About, Schema: schema, Kind: acp.ToolKindOther,
			Run: func(ctx context.Context, env tool.Env, input json.RawMessage) (tool.Result, error) {
				return tool.CallMCP(ctx, env, s, t.Name, input), nil
			},
		},
		schema: resolved, server: prose.OneLine(tool.ServerName(s), 60), mcp: true,
	}
}

// toolName returns a name that all providers take, and that no other tool has.
func toolName(server, name string, taken map[string]bool) string {
	full := "mcp__" + server + "__" + name
	plain := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, full)
	if plain != full || len(plain) > maxToolName || taken[plain] {
		sum := sha256.Sum256([]byte(full))
		plain = plain[:min(len(plain), maxToolName-9)] + "_" + hex.EncodeToString(sum[:4])
	}
	for n := 2; taken[plain]; n++ { // a server that has two tools of one name
		end := fmt.Sprintf("_%d", n)
		plain = plain[:min(len(plain), maxToolName-len(end))] + end
	}
	taken[plain] = true
	return plain
}

// recheck looks at the tools of MCP servers again if the model is asked by another interface than before, which may not
// take all of them.
func (m *modelTurn) recheck() {
	info := m.model.Info()
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	t := &m.s.talk
	if len(t.prefixes) == 0 || t.served == nil || t.api == info.API {
		return
	}
	t.api = info.API
	left := map[string][]string{}
	var servers []string
	for _, l := range t.tools {
		if !l.mcp {
			continue
		}
		if _, err := info.Tool(model.Tool{Schema: l.Schema}); err != nil {
			if left[l.server] == nil {
				servers = append(servers, l.server)
			}
			left[l.server] = append(left[l.server], l.Name+" ("+prose.OneLine(err.Error(), 200)+")")
		}
	}
	for _, name := range servers {
		t.served.news = append(t.served.news, leftOut(name, left[name]))
	}
}
