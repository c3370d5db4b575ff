package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/internal/long"
)

// A verb is what a client can ask of the gateway: a method, or a method with something in it that matters for who may.
type verb struct {
	method string
	params string // "S" is the session, "D" a directory
	own    string // the least role of a device of the session's owner; "-" if the gateway does not serve it
	shared string // the least role in a session of somebody else, for a device that may do everything of its own
}

// anybody is the role of what everybody may do who sees the session.
const anybody = RoleViewer

// command is the role of what needs more than to be an owner.
const command = "command"

// verbs has a row for each method of the protocol and of the gateway: TestEveryVerb looks for those that are missing.
var verbs = []verb{
	{"initialize", "", anybody, anybody}, {"session/list", `{}`, anybody, anybody},
	{"session/new", `{"cwd":"D","mcpServers":[]}`, RolePrompter, anybody},
	{"session/new", `{"cwd":"D","mcpServers":[],"_meta":{"` + metaKey + `":{"agent":"other"}}}`, RolePrompter, anybody},
	{"session/new", `{"cwd":"D","mcpServers":[],"_meta":{"` + metaKey + `":{"agent":"sh -c x"}}}`, command, command},
	{"session/new", `{"cwd":"D","mcpServers":[{"type":"stdio","name":"x","command":"sh","args":[],"env":[]}]}`, RoleApprover, anybody},
	{"lend", `{"sessionId":"S"}`, RolePrompter, command},
	{"session/load", `{"sessionId":"S","cwd":"D","mcpServers":[]}`, anybody, anybody},
	{"session/resume", `{"sessionId":"S","cwd":"D","mcpServers":[]}`, anybody, anybody},
	{"session/fork", `{"sessionId":"S","cwd":"D","mcpServers":[]}`, RolePrompter, anybody},
	{"session/fork", `{"sessionId":"S","cwd":"D","mcpServers":[{"type":"stdio","name":"x","command":"sh","args":[],"env":[]}]}`, RoleApprover, anybody},
	{"session/status", `{"sessionId":"S"}`, anybody, anybody},
	{"session/prompt", `{"sessionId":"S","prompt":[{"type":"text","text":"x"}]}`, RolePrompter, RolePrompter},
	{"session/prompt", `{"sessionId":"S","prompt":[{"type":"text","text":"/approve x"}]}`, RoleApprover, RoleApprover},
	{"session/prompt", `{"sessionId":"S","prompt":[{"type":"text","text":"x"},{"type":"text","text":" /own"}]}`, RoleApprover, RoleOwner},
	{methodSteering, `{"sessionId":"S","prompt":[{"type":"text","text":"x"}]}`, RolePrompter, RolePrompter},
	{methodSteering, `{"sessionId":"S","prompt":[{"type":"text","text":"/approve x"}]}`, RoleApprover, RoleApprover},
	{"session/cancel", `{"sessionId":"S"}`, RolePrompter, RolePrompter},
	{"session/set_mode", `{"sessionId":"S","modeId":"plan"}`, RoleApprover, RoleApprover},
	{"session/set_config_option", `{"sessionId":"S","configId":"mode","value":"plan","type":"id"}`, RoleApprover, RoleApprover},
	{"session/set_title", `{"sessionId":"S","title":"t"}`, RolePrompter, RoleOwner},
	{"session/archive", `{"sessionId":"S"}`, RolePrompter, RoleOwner}, {"session/unarchive", `{"sessionId":"S"}`, RolePrompter, RoleOwner},
	{"history", `{"sessionId":"S"}`, anybody, anybody}, {"export", `{"sessionId":"S"}`, anybody, anybody},
	{"files", `{"sessionId":"S"}`, RolePrompter, RolePrompter}, {"hidden", `{}`, anybody, anybody}, {"ping", `{}`, anybody, anybody}, {"agents", `{}`, anybody, anybody},
	{"nodes", `{}`, RoleOwner, anybody}, {"drain", `{}`, RoleOwner, anybody}, {"nodes/forget", `{"node":"x"}`, RoleOwner, anybody},
	{"share", `{"sessionId":"S"}`, RoleApprover, RoleOwner},
	{"share", `{"sessionId":"S","user":"zoe","role":"approver"}`, RoleApprover, RoleOwner},
	{"share", `{"sessionId":"S","user":"zoe","role":"owner"}`, RoleOwner, RoleOwner},
	{"session/close", `{"sessionId":"S"}`, anybody, anybody},
	{"session/delete", `{"sessionId":"S"}`, RolePrompter, RoleOwner},

	{"auth/login", `{}`, "-", "-"}, {"auth/logout", `{}`, "-", "-"}, {"auth/status", `{}`, "-", "-"}, {"authenticate", `{}`, "-", "-"}, {"logout", `{}`, "-", "-"},
	{"session/options", `{"cwd":"D"}`, "-", "-"}, {"providers/list", `{}`, "-", "-"}, {"providers/set", `{}`, "-", "-"}, {"providers/disable", `{}`, "-", "-"},
	{"mcp/message", `{}`, "-", "-"}, {"terminal/cancel", `{}`, "-", "-"}, {"tool_call/cancel", `{}`, "-", "-"},
	{"document/didOpen", `{}`, "-", "-"}, {"document/didChange", `{}`, "-", "-"}, {"document/didClose", `{}`, "-", "-"},
	{"document/didFocus", `{}`, "-", "-"}, {"document/didSave", `{}`, "-", "-"},
	{"nes/accept", `{}`, "-", "-"}, {"nes/close", `{}`, "-", "-"}, {"nes/reject", `{}`, "-", "-"}, {"nes/start", `{}`, "-", "-"}, {"nes/suggest", `{}`, "-", "-"},
}

// ownMethods returns the names of the gateway's own methods, as its source has them.
func ownMethods(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`Name: ownmeta\.Method \+ "([^"]*)"`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllSubmatch(data, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}

// TestVerbs: each method that a client can call has a row in verbs.
func TestVerbs(t *testing.T) {
	has := func(name string) bool {
		return slices.ContainsFunc(verbs, func(v verb) bool { return v.method == name })
	}
	for _, m := range acpv2.Methods() {
		if m.Side == acpv2.SideAgent && !has(m.Name) {
			t.Errorf("verbs has no row for %s of version 2", m.Name)
		}
	}
	for _, m := range acpv1.Methods() {
		if m.Side == acpv1.SideAgent && !has(m.Name) {
			t.Errorf("verbs has no row for %s of version 1", m.Name)
		}
	}
	own := ownMethods(t)
	if len(own) < 8 {
		t.Errorf("only %q", own)
	}
	for _, name := range own {
		if !has(name) {
			t.Errorf("verbs has no row for the gateway's own method %s", name)
		}
	}
}

// who returns a client of a user with a role.
func whoOf(user, role string) Who {
	who := Who{User: user, Name: user + "'s " + role, Role: role}
	for least, rights := range map[string]Rights{
		RolePrompter: MayPrompt, RoleApprover: MayApprove, RoleOwner: MayOperate | MayGrant,
	} {
		if reaches(role, least) {
			who.Rights |= rights
		}
	}
	return who
}

// served reports whether a version of the protocol has a method. The gateway's own methods are in both.
func served(method string, version int) bool {
	if !strings.Contains(method, "/") || method == methodSteering {
		return true
	}
	if version == 1 {
		return slices.ContainsFunc(acpv1.Methods(), func(m acpv1.MethodInfo) bool { return m.Name == method && m.Side == acpv1.SideAgent })
	}
	return slices.ContainsFunc(acpv2.Methods(), func(m acpv2.MethodInfo) bool { return m.Name == method && m.Side == acpv2.SideAgent })
}

// TestEveryVerb walks each verb with each role, of a device and of a user with whom a session is shared. What is refused is
// reported, and what is not is not.
func TestEveryVerb(t *testing.T) {
	type door struct {
		name string
		who  func(role string) Who
		role func(v verb) string
	}
	doors := []door{
		{"device", func(role string) Who { return whoOf("ann", role) }, func(v verb) string { return v.own }},
		{"shared", func(role string) Who {
			who := whoOf(role, RoleOwner)
			who.Rights |= MayOperate
			return who
		}, func(v verb) string { return v.shared }},
		{"token of the server", func(string) Who {
			who := whoOf("ann", RoleOwner)
			who.Rights |= MayCommand
			return who
		}, func(verb) string { return anybody }},
	}
	for _, door := range doors {
		for _, role := range shareRoles {
			for version := 1; version <= 2; version++ {
				if version == 1 && role != RolePrompter && !long.All() {
					continue
				}
				t.Run(fmt.Sprintf("%s, %s, version %d", door.name, role, version), func(t *testing.T) {
					walk(t, door.who(role), role, version, door.role, door.name == "token of the server")
				})
			}
		}
	}
}

type whoKey struct{}

// walk tries each verb as a client of a version.
func walk(t *testing.T, who Who, role string, version int, least func(verb) string, all bool) {
	agent := talking(nil)
	agent.SetOption = func(context.Context, *acp.AgentSession, acp.SessionConfigID, acp.SessionConfigOptionValue) error {
		return nil
	}
	agent.NewSession = func(_ context.Context, s *acp.AgentSession) error {
		err := s.SetOptions(acp.SessionConfigOption{
			ConfigID: "mode", Name: "Mode", Category: acp.SessionConfigOptionCategoryMode,
			Kind: &acp.SessionConfigSelect{CurrentValue: "ask", Options: acp.SessionConfigSelectOptionList{{Value: "ask", Name: "Ask"}, {Value: "plan", Name: "Plan"}}},
		})
		if err != nil {
			return err
		}
		return s.SetCommands(
			acp.SlashCommand{Name: "approve", Meta: ownmeta.Of(ownmeta.Ranked{Role: RoleApprover})},
			acp.SlashCommand{Name: "own", Meta: ownmeta.Of(ownmeta.Ranked{Role: RoleOwner})},
		)
	}
	r := newRig(t, agent)
	var mu sync.Mutex
	var refused []string
	cancels := make(chan struct{}, len(verbs)) // those that were refused
	r.g.cfg.Knows = func(name string) bool { return name == "sh -c x" }
	r.g.cfg.Audit.Refused = func(f Refusal) {
		mu.Lock()
		defer mu.Unlock()
		if f.User != who.User || f.Device != who.Name {
			t.Errorf("%+v is not about %s", f, who.Name)
		}
		refused = append(refused, f.Method)
		if f.Method == "session/cancel" {
			cancels <- struct{}{}
		}
	}
	r.g.cfg.Who = func(ctx context.Context) Who {
		if who, ok := ctx.Value(whoKey{}).(Who); ok {
			return who
		}
		return whoOf("ann", RoleOwner)
	}
	ann := r.connect(2)
	c := r.connectIn(context.WithValue(context.Background(), whoKey{}, who), version)
	s := ann.new(t)
	say(t, s, "x") // so that the agent has said what commands it has
	if who.User != "ann" {
		if _, err := ShareMethod.Call(t.Context(), ann.conn.Conn(), &ShareRequest{SessionID: s.ID(), User: who.User, Role: role}); err != nil {
			t.Fatal(err)
		}
	}
	c.load(t, s.ID())
	for _, v := range verbs {
		if v.params == "" || least(v) == "-" || !served(v.method, version) {
			continue
		}
		mu.Lock()
		refused = nil
		mu.Unlock()
		r.g.refusals.mu.Lock()
		r.g.refusals.last = nil
		r.g.refusals.mu.Unlock()
		method := v.method
		if !strings.Contains(method, "/") {
			method = ownmeta.Method + method
		}
		params := json.RawMessage(strings.NewReplacer(`"S"`, `"`+string(s.ID())+`"`, `"D"`, `"/project"`).Replace(v.params))
		want := !all && !reaches(role, least(v)) && role != least(v)
		var err error
		if v.method == "session/cancel" { // which has no answer
			err = c.conn.Conn().Notify(t.Context(), method, params)
			if want {
				<-cancels
			}
		} else {
			var res json.RawMessage
			err = c.conn.Conn().Call(t.Context(), method, params, &res)
		}
		mu.Lock()
		got := slices.Clone(refused)
		mu.Unlock()
		if is := reason(err) == reasonRole; is != (want && v.method != "session/cancel") {
			t.Errorf("%s %s: %v", v.method, v.params, err)
		}
		if reported := len(got) == 1 && got[0] == method; reported != want {
			t.Errorf("%s %s: %q were reported as refused", v.method, v.params, got)
		}
	}
}
