package gateway

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/acpws"
	"github.com/goacp/acp/transcript"
)

var update = flag.Bool("update", false, "write the golden file")

// A view is what somebody knows of a session: what an agent has said, or what a client was sent.
type view struct {
	mu       sync.Mutex
	said     *transcript.Conversation
	child    *transcript.Conversation
	names    map[string]bool
	asked    map[string][]string // by the scene, as are states
	states   map[string][]string
	position string // where the client has stopped to read
	stopped  bool
	half     chan struct{} // closed then; nil for a client that reads to the end
	end      chan struct{} // closed when it has everything
	ends     int           // what it has still to get
}

func newView(scenes []scene) *view {
	v := &view{
		said: transcript.New(transcript.Config{}), child: transcript.New(transcript.Config{}), names: make(map[string]bool),
		asked: make(map[string][]string), states: make(map[string][]string), end: make(chan struct{}), ends: 2,
	}
	for _, s := range scenes {
		v.names[s.name] = true
	}
	return v
}

// scene returns the scene that is acted.
func (v *view) scene() string {
	for e := range v.said.Snapshot().Backward() {
		if m, ok := e.(*transcript.Message); ok && m.Role == transcript.RoleUser && v.names[m.Text()] {
			return m.Text()
		}
	}
	return ""
}

// opened takes what the answer to a client that comes says of a session.
func (v *view) opened(s *acp.ClientSession) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if list := s.Options(); len(list) > 0 {
		v.said.Apply(&acp.ConfigOptionUpdate{ConfigOptions: list})
	}
	if list := s.Commands(); len(list) > 0 {
		v.said.Apply(&acp.AvailableCommandsUpdate{AvailableCommands: list})
	}
}

// update takes an update of the client.
func (v *view) update(_ context.Context, s *acp.ClientSession, u *acp.Update) {
	v.mu.Lock()
	defer v.mu.Unlock()
	own := s.Parent() == nil
	if u.Synthetic || own && v.stopped {
		return
	}
	c, meta := v.said, json.RawMessage(nil)
	if !own {
		c = v.child
	}
	switch {
	case u.V1 != nil:
		c.ApplyV1(u.V1.Update)
		meta = u.V1.Meta
	case u.V2 != nil:
		if state, ok := u.V2.Update.(acp.StateUpdate); ok {
			v.states[v.scene()] = append(v.states[v.scene()], fmt.Sprintf("%T", state))
		}
		c.Apply(u.V2.Update)
		meta = u.V2.Meta
	}
	chunk, _ := u.Update.(*acp.AgentMessageChunk)
	if chunk == nil {
		return
	}
	text, _ := chunk.Content.(*acp.TextContent)
	switch {
	case text == nil:
	case own && text.Text == "half" && v.half != nil:
		var all map[string]json.RawMessage
		_ = json.Unmarshal(meta, &all)
		v.position, v.stopped = string(all[metaKey]), true
	case own && text.Text == "end", !own:
		v.ends-- // what a subagent does comes beside what its parent does
	}
	if v.stopped && v.ends == 1 {
		close(v.half)
	}
	if v.ends == 0 {
		close(v.end)
	}
}

// noList finds lists without anything in them. Whether a tool call says that it has none, or says nothing of them, is the same.
var noList = regexp.MustCompile(`,"(?:content|locations)":\[\]`)

// normal returns what is said in each scene, without what differs from client to client: IDs are numbered, and who has
// sent a prompt is left out.
func (v *view) normal(t *testing.T) map[string][]string {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make(map[string][]string)
	ids := make(map[string]string)
	number := func(raw string) string {
		return idIn.ReplaceAllStringFunc(raw, func(id string) string {
			m := idIn.FindStringSubmatch(id)
			if strings.HasSuffix(m[1], `SessionId":"`) { // which names a session, too
				id = `"sessionId":"` + m[2] + `"`
			}
			if ids[id] == "" {
				ids[id] = fmt.Sprint(len(ids) + 1)
			}
			return m[1] + ids[id] + `"`
		})
	}
	put := func(scene string, u acp.SessionUpdate) {
		raw, err := json.Marshal(u)
		if err != nil {
			t.Error(err)
		}
		all[scene] = append(all[scene], number(decidedWhen.ReplaceAllString(noList.ReplaceAllString(string(raw), ""), "…")))
	}
	snapshot, scene := v.said.Snapshot(), ""
	for e := range snapshot.Entries() {
		m, ok := e.(*transcript.Message)
		switch {
		case ok && m.Role == transcript.RoleUser && v.names[m.Text()]:
			scene = m.Text()
			clear(ids)
			all[scene] = []string{}
		case e.Update() != nil:
			put(scene, e.Update())
			if p, ok := e.(*transcript.Plan); ok && p.Removed {
				all[scene] = append(all[scene], "removed")
			}
		}
	}
	for e := range v.child.Snapshot().Entries() {
		put("(subagent)", e.Update())
	}
	for _, f := range []transcript.Field{transcript.FieldUsage, transcript.FieldConfigOptions, transcript.FieldCommands, transcript.FieldInfo} {
		put("("+string(f)+")", snapshot.Session().Update(f))
	}
	for scene, lines := range v.asked {
		clear(ids)
		for _, line := range lines {
			all[scene] = append(all[scene], "asked: "+number(line))
		}
	}
	return all
}

// A play is an agent that acts the scenes of its version, one for each prompt that has the name of one.
type play struct {
	version int
	scenes  []scene
	view    *view // of what it says
}

func (p *play) agent() *acp.Agent {
	return &acp.Agent{MaxVersion: p.version, Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		i := slices.IndexFunc(p.scenes, func(s scene) bool { return s.name == t.Text() })
		if i < 0 {
			return "", fmt.Errorf("no scene %q", t.Text())
		}
		return acp.StopEndTurn, p.act(ctx, t, p.scenes[i])
	}}
}

func (p *play) act(ctx context.Context, t *acp.Turn, s scene) error {
	p.view.prompted(p.version, s.name)
	id, conn := t.Session().ID(), t.Session().Conn().Conn()
	send := func(id acp.SessionID, c *transcript.Conversation, text string) error {
		p.view.said1or2(p.version, c, text)
		return conn.Notify(ctx, "session/update", json.RawMessage(fmt.Sprintf(`{"sessionId":%q,"update":%s}`, id, text)))
	}
	for _, text := range s.updates {
		if err := send(id, p.view.said, text); err != nil {
			return err
		}
	}
	for _, text := range s.child {
		if err := send("s-subagent_update", p.view.child, text); err != nil {
			return err
		}
	}
	method, params := "session/request_permission", s.asks
	if s.elicits != "" {
		method, params = "elicitation/create", s.elicits
	}
	if params == "" {
		return nil
	}
	var answer json.RawMessage
	if err := conn.Call(ctx, method, json.RawMessage(fmt.Sprintf(`{"sessionId":%q,%s}`, id, params)), &answer); err != nil {
		return err
	}
	text, err := json.Marshal(string(answer))
	if err != nil {
		return err
	}
	return send(id, p.view.said, scene{name: s.name, updates: []string{said(`{"type":"text","text":` + string(text) + `}`)}}.named().updates[0])
}

// prompted and said1or2 note what passes between an agent and its client.
func (v *view) prompted(version int, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if version == 1 {
		v.said.PromptedV1([]acpv1.ContentBlock{&acpv1.TextContent{Text: text}})
	} else {
		v.said.Apply(&acpv2.UserMessage{MessageID: acpv2.MessageID("prompt " + text), Content: acpv2.Set([]acpv2.ContentBlock{acpv2.Text(text)})})
	}
}

func (v *view) said1or2(version int, c *transcript.Conversation, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if version == 1 {
		if u, err := acpv1.UnmarshalSessionUpdate([]byte(text)); err == nil {
			c.ApplyV1(u)
		}
	} else if u, err := acpv2.UnmarshalSessionUpdate([]byte(text)); err == nil {
		c.Apply(u)
	}
}

// An audience is the clients of a session of both versions, over both transports.
type audience struct {
	*rig
	url   string
	id    acp.SessionID
	views map[string]*view

	mu    sync.Mutex
	live  int           // clients that are asked
	asked int           // how many were, this time
	all   chan struct{} // closed when all were
}

// attend connects a client and opens the session, from a position if there is one.
func (a *audience) attend(version int, ws bool, v *view, from string) *acp.ClientConn {
	a.t.Helper()
	var to acp.Transport = acphttp.NewTransport(a.url)
	if ws {
		to = acpws.NewTransport("ws" + strings.TrimPrefix(a.url, "http"))
	}
	c := &acp.Client{MinVersion: version, MaxVersion: version, Update: v.update}
	c.RequestPermission = func(ctx context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
		return a.ask(ctx, r, v, ws && version == 2)
	}
	c.Elicit = func(ctx context.Context, r *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
		return a.elicit(ctx, r, v, ws && version == 2)
	}
	conn, err := c.Connect(a.t.Context(), to)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = conn.Close() })
	cfg := acp.SessionConfig{Cwd: "/project"}
	open := conn.Load
	if from != "" {
		cfg.Meta = json.RawMessage(`{"` + metaKey + `":` + from + `}`)
		open = conn.Resume
	}
	s, err := open(a.t.Context(), a.id, cfg)
	if err != nil {
		a.t.Fatal(err)
	}
	if from == "" {
		v.opened(s)
	}
	return conn
}

// ask answers a permission request.
func (a *audience) ask(ctx context.Context, r *acp.PermissionRequest, v *view, answers bool) (acp.PermissionDecision, error) {
	asked := map[string]any{"title": r.Title, "description": r.Description, "subject": r.V2.Subject, "options": r.Options}
	if !a.question(ctx, asked, v, answers) {
		return acp.CancelPermission(), nil
	}
	return r.Allow(), nil
}

// elicit answers an elicitation.
func (a *audience) elicit(ctx context.Context, r *acp.ElicitationRequest, v *view, answers bool) (*acp.ElicitationResponse, error) {
	asked := map[string]any{"message": r.Message, "form": r.Form, "url": r.URL}
	if r.ToolCallID != "" {
		asked["toolCallId"] = r.ToolCallID
	}
	if !a.question(ctx, asked, v, answers) {
		return acp.CancelElicitation(), nil
	}
	if r.Form == nil {
		return acp.AcceptElicitation(nil), nil
	}
	return acp.AcceptElicitation(map[string]json.RawMessage{
		"name": json.RawMessage(`"word"`), "count": json.RawMessage(`3`), "sure": json.RawMessage(`true`), "some": json.RawMessage(`["a"]`),
	}), nil
}

// question notes what a client is asked, and reports whether it answers: one of them does, once all were asked.
func (a *audience) question(ctx context.Context, asked map[string]any, v *view, answers bool) bool {
	text, err := json.Marshal(asked)
	if err != nil {
		a.t.Error(err)
	}
	v.mu.Lock()
	scene := v.scene()
	v.asked[scene] = append(v.asked[scene], string(text))
	v.mu.Unlock()
	a.mu.Lock()
	if a.all == nil {
		a.all = make(chan struct{})
	}
	all := a.all
	if a.asked++; a.asked == a.live {
		a.asked, a.all = 0, nil
		close(all)
	}
	a.mu.Unlock()
	if answers {
		select {
		case <-all:
			return true
		case <-ctx.Done():
			return false
		}
	}
	<-ctx.Done()
	return false
}

// everybody calls f for both versions and both transports.
func everybody(f func(name string, version int, ws bool)) {
	for version := 1; version <= 2; version++ {
		for _, ws := range []bool{false, true} {
			name := fmt.Sprintf("version %d over HTTP", version)
			if ws {
				name = fmt.Sprintf("version %d over a WebSocket", version)
			}
			f(name, version, ws)
		}
	}
}

// watch has everything acted before an audience: clients that are there all the time, clients that leave in the middle
// of a message and resume there, and clients that load the session when it has ended.
func watch(t *testing.T, p *play) *audience {
	a := &audience{rig: newRig(t, p.agent()), views: make(map[string]*view), live: 4}
	a.max = p.version
	s := &acphttp.Server{Serve: a.g.Serve, Upgrade: acpws.Upgrader{}}
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		_ = s.Close(context.Background())
		web.Close()
	})
	a.url = web.URL + "/acp"
	author := a.connect(3-p.version, func(c *acp.Client) {
		c.Update = nil
		c.RequestPermission = func(ctx context.Context, _ *acp.PermissionRequest) (acp.PermissionDecision, error) {
			<-ctx.Done()
			return acp.CancelPermission(), nil
		}
		c.Elicit = func(ctx context.Context, _ *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
			<-ctx.Done()
			return acp.CancelElicitation(), nil
		}
	})
	session := author.new(t)
	a.id = session.ID()
	resuming := make(map[string]*acp.ClientConn)
	everybody(func(name string, version int, ws bool) {
		a.views["live, "+name] = newView(p.scenes)
		a.attend(version, ws, a.views["live, "+name], "")
		v := newView(p.scenes)
		v.half = make(chan struct{})
		a.views["resumed, "+name] = v
		resuming["resumed, "+name] = a.attend(version, ws, v, "")
	})
	for _, scene := range p.scenes {
		say(t, session, scene.name)
		if scene.name != "half" {
			continue
		}
		for name, conn := range resuming {
			<-a.views[name].half
			_ = conn.Close()
		}
	}
	everybody(func(name string, version int, ws bool) {
		v := a.views["resumed, "+name]
		v.mu.Lock()
		v.stopped = false
		v.mu.Unlock()
		a.attend(version, ws, v, v.position)
		a.views["loaded, "+name] = newView(p.scenes)
		a.attend(version, ws, a.views["loaded, "+name], "")
	})
	for _, v := range a.views {
		<-v.end
	}
	return a
}

// checkStates fails unless clients of version 2 that were there have seen each turn begin and end, once, and in between only that
// they are waited for. What an agent says of its state is not passed on: a turn ends when the log has its end.
func (a *audience) checkStates(t *testing.T, all []scene) {
	t.Helper()
	want := []string{"*acpv2.RunningStateUpdate", "*acpv2.IdleStateUpdate"}
	for _, over := range []string{"HTTP", "a WebSocket"} {
		v := a.views["live, version 2 over "+over]
		for _, s := range all[:len(all)-1] { // when the last one ends is not waited for
			v.mu.Lock()
			var got []string
			for _, state := range v.states[s.name] {
				if waits := state == "*acpv2.RequiresActionStateUpdate"; waits && len(v.asked[s.name]) == 0 {
					t.Errorf("%s, over %s: nothing was asked", s.name, over)
				} else if !waits && (len(got) == 0 || got[len(got)-1] != state) {
					got = append(got, state)
				}
			}
			v.mu.Unlock()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("states in %s, over %s: %s", s.name, over, diff)
			}
		}
	}
}

// outside is what makes no difference to the entries of a transcript, and where it is seen.
var outside = map[string]string{
	"state_update":              "checkStates",
	"available_commands_update": "(commands)",
	"config_option_update":      "(configOptions)",
	"current_mode_update":       "(configOptions)",
	"session_info_update":       "(info)",
	"usage_update":              "(usage)",
	"prompt_suggestions_update": "TestSuggestions",
	"cursor_update":             "TestCursors",
	"replay_complete":           "TestReplayComplete",
}

// differs has what clients of a version are shown in another way than the agent of a version has said it, and why.
var differs = map[[2]int]map[string]string{ // by the versions of the agent and of the client
	{1, 1}: {
		"tool: terminal": "the terminal is one that a client lends; others are shown its output, as text",
		"tool: session":  "it is not known whether version 1 has a capability for it",
		"tool: command":  "the client does not say that it shows what tool calls report of terminals: it is text in the tool call",
		"permission":     decides, "permission: unannounced": decides,
	},
	{1, 2}: {"permission": decides, "permission: unannounced": decides},
	{2, 1}: {
		"terminal_update":       "version 1 has no terminals of agents, and no tool call shows this one",
		"terminal_output_chunk": "version 1 has no terminals of agents, and no tool call shows this one",
		"content: skill":        "version 1 has no skills: it is text",
		"tool: session":         "it is not known whether version 1 has a capability for it",
		"tool: terminal":        "version 1 has no terminals of agents: the output is text in the tool call",
		"permission: tool call": "in version 1 the question is the title of the tool call",
		"permission: command":   "version 1 asks about tool calls only",
		"permission: words":     "version 1 asks about tool calls only, without a description",
	},
	{2, 2}: {"permission: tool call": decides, "permission: command": decides},
}

// decides is why a tool call is shown with more than its updates say.
const decides = "the gateway keeps what a question says of its tool call, and how it was decided"

// decidedWhen are the parts of a decision that are others each time.
var decidedWhen = regexp.MustCompile(`"ask":"ask_[^"]*"|"time":"[^"]*"`)

// ours is what an agent of either version says, and the gateway says itself to all clients.
var ours = map[string]string{
	"user_message":       "the prompts are those that the gateway keeps",
	"user_message_chunk": "the prompts are those that the gateway keeps",
}

// momentary is what clients that come later are not sent, by the protocol.
var momentary = map[string]string{"notice": "a notice is for the moment"}

// TestSameTranscript: whatever an agent of either version can say, clients of both see the same, over both transports, as it
// happens, when they resume in the middle, and when they load the session. The golden file has what the agent has said,
// and what clients see where that is something else, for which there is a reason above.
func TestSameTranscript(t *testing.T) {
	var golden strings.Builder
	for agent := 1; agent <= 2; agent++ {
		all := scenes(agent)
		p := &play{version: agent, scenes: all, view: newView(all)}
		a := watch(t, p)
		a.checkStates(t, all)
		seen := make(map[int]map[string][]string)
		for version := 1; version <= 2; version++ {
			seen[version] = a.views[fmt.Sprintf("live, version %d over HTTP", version)].normal(t)
		}
		for name, v := range a.views {
			version := 1 + strings.Count(name, "version 2")
			if !strings.HasPrefix(name, "live") {
				v.asked = a.views[fmt.Sprintf("live, version %d over HTTP", version)].asked // what is answered is not asked again
			}
			said := v.normal(t)
			for scene, reason := range momentary {
				if strings.HasPrefix(name, "loaded") {
					if len(said[scene]) > 0 {
						t.Errorf("%s is shown %s, although %s", name, scene, reason)
					}
					said[scene] = seen[version][scene]
				}
			}
			if diff := cmp.Diff(seen[version], said); diff != "" {
				t.Errorf("agent of version %d, clients of version %d, live and %s:\n%s", agent, version, name, diff)
			}
		}
		p.view.asked = a.views["live, version 2 over HTTP"].asked
		said := p.view.normal(t)
		order := []string{""}
		for _, scene := range p.scenes {
			order = append(order, scene.name)
		}
		for _, scene := range append(order, "(subagent)", "(usage)", "(configOptions)", "(commands)", "(info)") {
			if len(said[scene]) == 0 && scene != "" && outside[scene] == "" {
				t.Errorf("agent of version %d: nothing is seen of %s", agent, scene)
			}
			fmt.Fprintf(&golden, "== agent of version %d: %s\n%s", agent, scene, lines(said[scene]))
			for version := 1; version <= 2; version++ {
				reason, expected := differs[[2]int{agent, version}][scene]
				if scene != "" && ours[scene] != "" && len(said[scene]) > 0 {
					reason, expected = ours[scene], true
				}
				diff := cmp.Diff(said[scene], seen[version][scene], cmpopts.EquateEmpty())
				switch {
				case diff == "" && expected:
					t.Errorf("agent of version %d, client of version %d: %s is the same, and is listed (%s)", agent, version, scene, reason)
				case diff != "":
					fmt.Fprintf(&golden, "-- client of version %d: %s\n%s", version, reason, lines(seen[version][scene]))
					if reason == "" {
						t.Errorf("agent of version %d, client of version %d: %s differs, for no reason:\n%s", agent, version, scene, diff)
					}
				}
				delete(seen[version], scene)
			}
			delete(said, scene)
		}
		for version, left := range seen {
			if len(left)+len(said) > 0 {
				t.Errorf("agent of version %d, client of version %d: nobody looks at %v and %v", agent, version, left, said)
			}
		}
	}
	const file = "testdata/scenes.golden"
	if *update {
		if err := os.WriteFile(file, []byte(golden.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), golden.String()); diff != "" {
		t.Errorf("%s: %s\n(go test -run TestSameTranscript -update writes it)", file, diff)
	}
}

func lines(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return strings.Join(list, "\n") + "\n"
}
