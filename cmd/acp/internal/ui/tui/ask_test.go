package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/app"
)

// TestPreselected: Enter allows once, wherever the agent offers that, or nothing; it never grants more.
func TestPreselected(t *testing.T) {
	option := func(kind acpv2.PermissionOptionKind, name string) acpv2.PermissionOption {
		return acpv2.PermissionOption{OptionID: acp.PermissionOptionID(name), Name: name, Kind: kind}
	}
	always := option(acpv2.PermissionOptionKindAllowAlways, "Always Allow in project: touch *")
	once := option(acpv2.PermissionOptionKindAllowOnce, "Allow")
	again := option(acpv2.PermissionOptionKindAllowOnce, "Allow differently")
	reject := option(acpv2.PermissionOptionKindRejectOnce, "Reject")
	for _, tt := range []struct {
		name    string
		options []acpv2.PermissionOption
		want    string // "" if Enter does nothing
		next    string // after a step down
	}{
		{"first", []acpv2.PermissionOption{once, always, reject}, "Allow", "Always Allow in project: touch *"},
		{"second", []acpv2.PermissionOption{always, once, reject}, "Allow", "Always Allow in project: touch *"},
		{"last", []acpv2.PermissionOption{always, reject, once}, "Allow", "Always Allow in project: touch *"},
		{"not offered", []acpv2.PermissionOption{always, reject}, "", "Always Allow in project: touch *"},
		{"twice", []acpv2.PermissionOption{once, again, reject}, "", "Allow"},
		{"only no", []acpv2.PermissionOption{reject}, "", "Reject"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, step := range []struct {
				keys []string
				want string
			}{{[]string{"enter"}, tt.want}, {[]string{"down", "enter"}, tt.next}} {
				r := newRig(t, 80, 24, nil).start()
				a := someAsk(2)
				a.req.Options = tt.options
				r.send(askMsg{a})
				for _, k := range step.keys {
					r.now = r.now.Add(2 * time.Second) // nobody types
					r.keys(k)
				}
				r.now = r.now.Add(2 * time.Second)
				r.send(tickMsg{})
				select {
				case id := <-a.answer:
					if string(id) != step.want {
						t.Errorf("%q has answered %q, want %q", step.keys, id, step.want)
					}
				default:
					if step.want != "" {
						t.Errorf("%q has not answered", step.keys)
					}
					r.wants("a key to choose")
				}
			}
		})
	}
}

// TestAskedBlindly: where it is not known what would be run, the dialog says so.
func TestAskedBlindly(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	a := someAsk(0)
	a.req.Kind, a.req.Command, a.req.CommandUnknown = "execute", "", true
	r.send(askMsg{a})
	r.wants("It is not known what would run.")
}

// TestRejectedWithReason: the reason of a rejection reaches the agent: during the turn in version 2,
// and in version 1 before all other prompts, however the turn ends.
func TestRejectedWithReason(t *testing.T) {
	for _, version := range []int{1, 2} {
		r := newRig(t, 80, 24, nil).start()
		r.link.version = version
		r.keys("go on", "enter")
		r.run(r.cmds[len(r.cmds)-1])
		r.keys("later", "enter")
		a := someAsk(2)
		a.req.Session = "s-1"
		r.now = r.now.Add(2 * time.Second)
		r.send(askMsg{a})
		r.now = r.now.Add(2 * time.Second)
		r.wants("r  Reject, and tell the agent what to do instead")
		r.keys("r")
		r.wants("What should the agent do instead?")
		r.keys("x", "esc")
		r.wants("r  Reject, and tell")
		r.now = r.now.Add(2 * time.Second)
		r.keys("r", "use make")
		r.wants("› use make")
		r.run(r.keys("enter"))
		r.answered(a, a.req.Reject())
		if version == 1 {
			r.talk.results <- turnEnd{res: &acp.Result{StopReason: acp.StopCancelled}}
			r.send(turnMsg{attempt: r.m.attempt, talk: r.talk, result: &acp.Result{StopReason: acp.StopCancelled}})
			r.run(r.cmds[len(r.cmds)-1])
		}
		sent := r.talk.sent()
		last, _ := sent[len(sent)-1][0].(*acp.TextContent)
		if last == nil || last.Text != "use make" || len(r.m.queue) != 1 {
			t.Errorf("v%d: sent %d, the last %v; %q wait", version, len(sent), last, r.m.queue)
		}
	}
}

// TestAllowedByRule: the rule that stands for a lasting answer is shown, can be changed, and goes
// where the user says. One that does not allow the request is not accepted.
func TestAllowedByRule(t *testing.T) {
	var added []string
	r := newRig(t, 90, 30, func(o *Options) {
		o.addRule = func(effect acphost.Effect, rule string, scope app.RuleScope) (string, error) {
			added = append(added, fmt.Sprint(effect, " ", rule, " ", scope))
			return "", nil
		}
		o.ruleFile = func(scope app.RuleScope) (string, error) {
			return []string{"", "/p/.acp.toml", "/c/config.toml"}[scope], nil
		}
	}).start()
	a := someAsk(2)
	a.req.Kind, a.req.Command, a.req.Session = "execute", "go test ./x", "s-1"
	r.send(askMsg{a})
	r.now = r.now.Add(2 * time.Second)
	r.wants("e  Allow by a rule: command:go test *")
	r.keys("e")
	r.wants("› command:go test *", "▸ until you leave", "in this project: /p/.acp.toml", "everywhere: /c/config.toml")
	for range len("*") {
		r.keys("backspace")
	}
	r.keys("y")
	r.wants("does not match this request yet")
	r.keys("enter")
	r.wants("this rule does not allow the request")
	r.keys("backspace", "*", "down", "down", "down", "up")
	r.lacks("does not")
	r.run(r.keys("enter"))
	r.answered(a, a.req.Allow())
	if diff := cmp.Diff([]string{"allow command:go test * 1"}, added); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.wants("allowed from now on: command:go test *")
}

// TestFullScreen: a question that does not fit is read on the whole screen, where no key answers it.
func TestFullScreen(t *testing.T) {
	r := newRig(t, 40, 15, nil).start()
	a := someAsk(2)
	a.req.Description = strings.Repeat("line\n\n", 100)
	r.send(askMsg{a})
	r.now = r.now.Add(2 * time.Second)
	if n := strings.Count(r.screen(), "line"); n > 6 {
		t.Fatalf("%d lines are shown", n)
	}
	r.keys("f")
	if n := strings.Count(r.screen(), "line"); n < 5 {
		t.Errorf("%d lines are shown:\n%s", n, r.screen())
	}
	r.keys("y", "n", "down", "space", "end")
	r.wants("Esc shows the choices")
	select {
	case id := <-a.answer:
		t.Errorf("a key answered %q", id)
	default:
	}
	r.keys("esc")
	r.now = r.now.Add(2 * time.Second)
	r.keys("y")
	r.answered(a, a.req.Allow())
}

// answered fails unless a question was answered with an option.
func (r *rig) answered(a *ask, want acp.PermissionOptionID) {
	r.t.Helper()
	select {
	case id := <-a.answer:
		if id != want {
			r.t.Errorf("answered %q, want %q", id, want)
		}
	default:
		r.t.Errorf("no answer:\n%s", r.screen())
	}
}

// TestTypedAtQuestion: what is typed while a question is open, or the output of a command, and is no answer, is the next
// prompt, with its first letter.
func TestTypedAtQuestion(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	a := someAsk(2)
	r.send(askMsg{a})
	r.now = r.now.Add(3 * time.Second)
	for _, k := range strings.Split("hello", "") {
		r.keys(k)
	}
	if got := r.m.input.value(); got != "hello" {
		t.Errorf("the prompt has %q", got)
	}
	r.now = r.now.Add(2 * time.Second)
	r.keys("y")
	r.answered(a, a.req.Allow())
	r.wants("hello")

	for _, tt := range []struct {
		lines int
		typed string
		want  string
	}{{1, "hello there", "hello there"}, {1, "just", "just"}, {100, "hello", "hello"}, {100, "jjk", ""}} {
		r := newRig(t, 80, 24, nil).start()
		r.m.overlay = &pager{title: "! ls", lines: make([]string, tt.lines)}
		r.send(tickMsg{})
		for _, k := range strings.Split(tt.typed, "") {
			if k == " " {
				k = "space"
			}
			r.keys(k)
		}
		if got := r.m.input.value(); got != tt.want || (r.m.overlay == nil) != (tt.want != "") {
			t.Errorf("%d lines, %q typed: the prompt has %q", tt.lines, tt.typed, got)
		}
	}
}

// TestAlwaysIsNarrow: the key a allows a command and its like until the user leaves, and never everything that runs;
// that, which the agent may offer, has no key. “Allow once” comes first, whatever the order of the agent.
func TestAlwaysIsNarrow(t *testing.T) {
	for command, want := range map[string]string{"go test ./x": "command:go test *", "go version": "command:go version", "rm -rf ./dirx; echo removed": `command:"rm -rf ./dirx; echo removed"`} {
		var added []string
		r := newRig(t, 100, 30, func(o *Options) {
			o.addRule = func(effect acphost.Effect, rule string, scope app.RuleScope) (string, error) {
				added = append(added, fmt.Sprint(effect, " ", rule, " ", scope))
				return "", nil
			}
		}).start()
		a := someAsk(2)
		a.req.Kind, a.req.Command, a.req.Session = "execute", command, "s-1"
		a.req.Options = []acp.PermissionOption{
			{OptionID: "all", Name: "Allow for this session", Kind: acp.PermissionOptionKindAllowAlways},
			{OptionID: "once", Name: "Allow", Kind: acp.PermissionOptionKindAllowOnce},
			{OptionID: "no", Name: "Reject", Kind: acp.PermissionOptionKindRejectOnce},
		}
		r.send(askMsg{a})
		r.now = r.now.Add(2 * time.Second)
		r.wants("1 y  Allow", "2 a  Allow from now on, until you leave: "+want, "3    Allow for this session")
		r.run(r.keys("a"))
		r.answered(a, "once")
		if diff := cmp.Diff([]string{"allow " + want + " 0"}, added); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
