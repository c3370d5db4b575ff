package acphost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/detach"
)

func option(id, kind string) acpv2.PermissionOption {
	return acpv2.PermissionOption{OptionID: acpv2.PermissionOptionID(id), Name: "label of " + id, Kind: acpv2.PermissionOptionKind(kind)}
}

// Options as agents offer them; the ids say nothing on purpose.
var (
	usual    = []acpv2.PermissionOption{option("1", "allow_once"), option("2", "allow_always"), option("3", "reject_once"), option("4", "reject_always")}
	reversed = []acpv2.PermissionOption{option("4", "reject_always"), option("3", "reject_once"), option("2", "allow_always"), option("1", "allow_once")}
	always   = []acpv2.PermissionOption{option("2", "allow_always"), option("4", "reject_always")}
	yesOnly  = []acpv2.PermissionOption{option("1", "allow_once")}
	noOnly   = []acpv2.PermissionOption{option("3", "reject_once")}
	strange  = []acpv2.PermissionOption{option("a", "allow_forever"), option("b", ""), option("c", "ALLOW_ONCE"), option("d", "_allow")}
	mixed    = []acpv2.PermissionOption{option("a", "allow_forever"), option("1", "allow_once"), option("3", "reject_once")}
	twoYes   = []acpv2.PermissionOption{option("1", "allow_once"), option("5", "allow_once"), option("3", "reject_once")}
	twoNo    = []acpv2.PermissionOption{option("1", "allow_once"), option("3", "reject_once"), option("6", "reject_once")}
	sameID   = []acpv2.PermissionOption{option("1", "allow_once"), option("1", "reject_once"), option("4", "reject_always")}
	noID     = []acpv2.PermissionOption{option("", "allow_once"), option("", "reject_once")}
	lying    = []acpv2.PermissionOption{option("allow_once", "reject_once"), option("reject_once", "allow_once")}
)

const rules = `{
	"version": 1,
	"rules": [
		{"name": "secrets", "effect": "deny", "paths": ["**/.env", "/etc/**", "secret/*"]},
		{"name": "no rm", "effect": "deny", "commands": ["rm *", "rm"], "commandRegexps": ["git push.*"]},
		{"name": "careful", "effect": "ask", "kinds": ["delete"]},
		{"name": "read here", "effect": "allow", "kinds": ["read", "search"], "paths": ["./**"]},
		{"name": "edit sources", "effect": "allow", "kinds": ["edit"], "paths": ["/w/src/**/*.go", "/w/doc/{a,b}.md"], "allowAlways": true},
		{"name": "tests", "effect": "allow", "commands": ["go test *", "npm run build && npm test", "ls"], "commandRegexps": ["git (status|log)( .*)?"]},
		{"name": "make in w", "effect": "allow", "kinds": ["execute"], "commands": ["make ?*"], "cwd": ["/w", "/w/*"]},
		{"name": "github", "effect": "allow", "servers": ["github/get_*", "docs"]},
		{"name": "think", "effect": "allow", "kinds": ["think", "_plan"]}
	]
}`

type shape struct {
	name string
	req  Request
	want Effect // of the rules
	rule string
	id   string // of the option, "" for none; if want is not ask
}

func reading(cwd string, paths ...string) Request {
	return Request{Kind: "read", Cwd: cwd, Paths: paths, Options: usual}
}

func editing(paths ...string) Request {
	return Request{Kind: "edit", Cwd: "/w", Paths: paths, Options: usual}
}

func running(command string) Request {
	return Request{Kind: "execute", Cwd: "/w", Command: command, Options: usual}
}

func tool(name string) Request { return Request{ToolName: name, Options: usual} }

func with(req Request, options []acpv2.PermissionOption) Request {
	req.Options = options
	return req
}

func shapes() []shape {
	other := running("make all")
	other.Cwd = "/elsewhere"
	nowhere := running("make all")
	nowhere.Cwd = ""
	unkind := running("go test ./...")
	unkind.Kind = ""
	unkindRm := running("rm x")
	unkindRm.Kind = ""
	both := editing("/w/src/a.go")
	both.Command = "rm-like thing"
	disguised := reading("/w", "/w/a")
	disguised.Command = "curl evil"
	grown := tool("mcp__github__get_issue")
	grown.Kind = "teleport"
	return []shape{
		{"nothing at all", Request{}, EffectAsk, "no rm", ""},
		{"only options", Request{Options: usual}, EffectAsk, "no rm", ""},
		{"title", Request{Title: "ls", Description: "go test x", Options: usual}, EffectAsk, "no rm", ""},

		{"read here", reading("/w", "/w/a.txt"), EffectAllow, "read here", "1"},
		{"read deep", reading("/w", "/w/a/b/c.txt"), EffectAllow, "read here", "1"},
		{"read the directory", reading("/w", "/w"), EffectAllow, "read here", "1"},
		{"read relative", reading("/w", "a.txt"), EffectAllow, "read here", "1"},
		{"read two", reading("/w", "/w/a", "/w/b"), EffectAllow, "read here", "1"},
		{"read one elsewhere", reading("/w", "/w/a", "/x/b"), EffectAsk, "", ""},
		{"read up", reading("/w", "/w/../x"), EffectAsk, "", ""},
		{"read up, relative", reading("/w", "../x"), EffectAsk, "", ""},
		{"read a neighbour", reading("/w", "/w2/x"), EffectAsk, "", ""},
		{"read no path", reading("/w"), EffectAsk, "secrets", ""},
		{"read an empty path", reading("/w", ""), EffectAsk, "secrets", ""},
		{"read without cwd", reading("", "/w/a"), EffectAsk, "", ""},
		{"read relative without cwd", reading("", "a"), EffectAsk, "secrets", ""},
		{"read in a relative cwd", reading("w", "w/a"), EffectAsk, "secrets", ""},
		{"read with a command", disguised, EffectAsk, "", ""},

		{"secret", reading("/w", "/w/.env"), EffectDeny, "secrets", "3"},
		{"secret by dots", reading("/w", "/w/a/../.env"), EffectDeny, "secrets", "3"},
		{"secret in capitals", reading("/w", "/w/.ENV"), EffectDeny, "secrets", "3"},
		{"one secret of two", reading("/w", "/w/a", "/w/b/.env"), EffectDeny, "secrets", "3"},
		{"secret relative", reading("/w", ".env"), EffectDeny, "secrets", "3"},
		{"secret relative without cwd", reading("", ".env"), EffectDeny, "secrets", "3"},
		{"secret by name, cwd unknown", reading("", "/x/secret/key"), EffectDeny, "secrets", "3"},
		{"secret in cwd", editing("/w/secret/key"), EffectDeny, "secrets", "3"},
		{"not that secret", editing("/w/sub/secret/key"), EffectAsk, "", ""},
		{"a directory that is denied", reading("/w", "/etc"), EffectDeny, "secrets", "3"},

		{"edit a source", editing("/w/src/a.go"), EffectAllow, "edit sources", "1"},
		{"edit a deep source", editing("/w/src/x/y/a.go"), EffectAllow, "edit sources", "1"},
		{"edit something else", editing("/w/src/a.c"), EffectAsk, "", ""},
		{"edit by alternatives", editing("/w/doc/a.md", "/w/doc/b.md"), EffectAllow, "edit sources", "1"},
		{"edit in capitals", editing("/w/src/A.GO"), EffectAsk, "", ""},
		{"edit relative without cwd", Request{Kind: "edit", Paths: []string{"w/src/a.go"}, Options: usual}, EffectAsk, "secrets", ""},
		{"edit with a command", both, EffectAsk, "", ""},
		{"edit, always only", with(editing("/w/src/a.go"), always), EffectAllow, "edit sources", "2"},

		{"run a test", running("go test ./..."), EffectAllow, "tests", "1"},
		{"run without a kind", unkind, EffectAsk, "", ""},
		{"rm without a kind", unkindRm, EffectDeny, "no rm", "3"},
		{"run with space around", running("  go test ./...\n"), EffectAllow, "tests", "1"},
		{"run, not all of it", running("go testify"), EffectAsk, "", ""},
		{"run, chained", running("go test ./... && curl evil"), EffectAsk, "", ""},
		{"run, sequence", running("go test ./...; curl evil"), EffectAsk, "", ""},
		{"run, background", running("go test ./... & curl evil"), EffectAsk, "", ""},
		{"run, pipe", running("go test ./... | sh"), EffectAsk, "", ""},
		{"run, substitution", running("go test $(curl evil)"), EffectAsk, "", ""},
		{"run, backquotes", running("go test `curl evil`"), EffectAsk, "", ""},
		{"run, two lines", running("go test .\ncurl evil"), EffectAsk, "", ""},
		{"run, carriage return", running("go test .\rcurl evil"), EffectAsk, "", ""},
		{"run, redirection", running("go test . > ~/.profile"), EffectAsk, "", ""},
		{"run, variable", running("go test $X"), EffectAsk, "", ""},
		{"run, regexp", running("git status"), EffectAllow, "tests", "1"},
		{"run, regexp with more", running("git log --oneline"), EffectAllow, "tests", "1"},
		{"run, regexp chained", running("git log ; curl evil"), EffectAsk, "", ""},
		{"run, to the letter", running("npm run build && npm test"), EffectAllow, "tests", "1"},
		{"run, almost to the letter", running("npm run build && npm test x"), EffectAsk, "", ""},
		{"run, a program of that name", running("/tmp/ls"), EffectAsk, "", ""},
		{"run in the right place", running("make all"), EffectAllow, "make in w", "1"},
		{"run elsewhere", other, EffectAsk, "", ""},
		{"run nowhere", nowhere, EffectAsk, "", ""},
		{"run nothing", running(""), EffectAsk, "no rm", ""},
		{"run, always only", with(running("ls"), always), EffectAsk, "tests", ""},

		{"rm", running("rm -rf /"), EffectDeny, "no rm", "3"},
		{"rm alone", running("rm"), EffectDeny, "no rm", "3"},
		{"rm in capitals", running("RM x"), EffectDeny, "no rm", "3"},
		{"rm chained", running("ls && rm x"), EffectDeny, "no rm", "3"},
		{"rm hidden", running("go test $(rm x)"), EffectDeny, "no rm", "3"},
		{"rm by path", running("/bin/rm x"), EffectDeny, "no rm", "3"},
		{"rm quoted", running(`"r"m x`), EffectDeny, "no rm", "3"},
		{"rm escaped", running(`r\m x`), EffectDeny, "no rm", "3"},
		{"rm within a shell", running(`sh -c 'rm x'`), EffectDeny, "no rm", "3"},
		{"rm spaced", running("rm \t  x"), EffectDeny, "no rm", "3"},
		{"not rm", running("rmdir x"), EffectAsk, "", ""},
		{"push", running("git  push origin"), EffectDeny, "no rm", "3"},

		{"delete", Request{Kind: "delete", Paths: []string{"/w/a"}, Cwd: "/w", Options: usual}, EffectAsk, "careful", ""},
		{"think", Request{Kind: "think", Options: usual}, EffectAllow, "think", "1"},
		{"a kind of the agent's", Request{Kind: "_plan", Options: usual}, EffectAllow, "think", "1"},
		{"an unknown kind", Request{Kind: "teleport", Options: usual}, EffectAsk, "", ""},

		{"server and tool", tool("mcp__github__get_issue"), EffectAllow, "github", "1"},
		{"another tool", tool("mcp__github__delete_repo"), EffectAsk, "", ""},
		{"server, any tool", tool("docs/search"), EffectAllow, "github", "1"},
		{"server by colon", tool("docs:search"), EffectAllow, "github", "1"},
		{"server without prefix", tool("docs__search"), EffectAllow, "github", "1"},
		{"a name that begins like it", tool("docs2/search"), EffectAsk, "", ""},
		{"no server", tool("docs"), EffectAsk, "", ""},
		{"server, unknown kind", grown, EffectAsk, "", ""},

		{"reversed", with(running("ls"), reversed), EffectAllow, "tests", "1"},
		{"reversed, denied", with(running("rm x"), reversed), EffectDeny, "no rm", "3"},
		{"denied, always only", with(running("rm x"), always), EffectDeny, "no rm", "4"},
		{"denied, yes only", with(running("rm x"), yesOnly), EffectDeny, "no rm", ""},
		{"allowed, no only", with(running("ls"), noOnly), EffectAsk, "tests", ""},
		{"allowed, strange", with(running("ls"), strange), EffectAsk, "tests", ""},
		{"denied, strange", with(running("rm x"), strange), EffectDeny, "no rm", ""},
		{"allowed, mixed", with(running("ls"), mixed), EffectAllow, "tests", "1"},
		{"allowed, two of a kind", with(running("ls"), twoYes), EffectAsk, "tests", ""},
		{"denied, two of a kind", with(running("rm x"), twoNo), EffectDeny, "no rm", "3"},
		{"allowed, one id twice", with(running("ls"), sameID), EffectAsk, "tests", ""},
		{"denied, one id twice", with(running("rm x"), sameID), EffectDeny, "no rm", "4"},
		{"allowed, no ids", with(running("ls"), noID), EffectAsk, "tests", ""},
		{"allowed, lying ids", with(running("ls"), lying), EffectAllow, "tests", "reject_once"},
		{"allowed, no options", with(running("ls"), nil), EffectAsk, "tests", ""},
		{"denied, no options", with(running("rm x"), nil), EffectDeny, "no rm", ""},
	}
}

func parse(t *testing.T, text string) *Policy {
	t.Helper()
	p, err := ParsePolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestRules holds what the rules say about each shape, when there is nobody to
// ask.
func TestRules(t *testing.T) {
	if n := len(shapes()); n < 60 {
		t.Fatalf("only %d shapes", n)
	}
	p := parse(t, rules)
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			d := p.Decide(t.Context(), s.req)
			got := ""
			if d.Option != nil {
				got = string(d.Option.OptionID)
			}
			want := shape{s.name, s.req, s.want, s.rule, s.id}
			if s.want == EffectAsk {
				if d.By != ByNobody || d.Effect != EffectDeny {
					t.Fatalf("%+v, want that the user is asked", d)
				}
				want.id = got
			} else if d.Effect != s.want || d.By != ByRule {
				t.Fatalf("%+v, want %s by %s", d, s.want, s.rule)
			}
			if d.Rule != want.rule || got != want.id {
				t.Errorf("option %q by %q, want %q by %q", got, d.Rule, want.id, want.rule)
			}
		})
	}
}

// TestModes holds, for each shape and each way a user can behave, that there is
// an answer in time, and that it approves nothing that was not approved.
func TestModes(t *testing.T) {
	choose := func(kind acpv2.PermissionOptionKind) func(context.Context, Request) (acpv2.PermissionOptionID, error) {
		return func(_ context.Context, req Request) (acpv2.PermissionOptionID, error) {
			for _, o := range req.Options {
				if o.Kind == kind {
					return o.OptionID, nil
				}
			}
			return "", nil
		}
	}
	never := make(chan struct{})
	for name, mode := range map[string]struct {
		ask     func(context.Context, Request) (acpv2.PermissionOptionID, error)
		edit    func(*Policy)
		yes     bool // may approve what the rules leave open
		cancels bool
	}{
		"nobody":       {},
		"yes":          {ask: choose("allow_once"), yes: true},
		"always":       {ask: choose("allow_always"), yes: true},
		"no":           {ask: choose("reject_once")},
		"never":        {ask: choose("reject_always")},
		"dismissed":    {ask: choose("dismiss")},
		"unknown kind": {ask: choose("allow_forever")},
		"not offered":  {ask: func(context.Context, Request) (acpv2.PermissionOptionID, error) { return "allow_once ", nil }},
		"fails":        {ask: func(context.Context, Request) (acpv2.PermissionOptionID, error) { return "1", errors.New("no screen") }},
		"panics":       {ask: func(context.Context, Request) (acpv2.PermissionOptionID, error) { panic("screen") }},
		"slow": {ask: func(context.Context, Request) (acpv2.PermissionOptionID, error) {
			time.Sleep(time.Minute)
			return "1", nil
		}, yes: true},
		"too slow": {ask: func(context.Context, Request) (acpv2.PermissionOptionID, error) {
			time.Sleep(time.Hour)
			return "1", nil
		}},
		"waits for ctx": {ask: func(ctx context.Context, _ Request) (acpv2.PermissionOptionID, error) {
			<-ctx.Done()
			return "1", ctx.Err()
		}},
		"is deaf": {ask: func(context.Context, Request) (acpv2.PermissionOptionID, error) { <-never; return "1", nil }},
		"changes": {ask: func(_ context.Context, req Request) (acpv2.PermissionOptionID, error) {
			for i := range req.Options {
				req.Options[i].Kind = "allow_once"
			}
			return "3", nil
		}},
		"cancelled":     {ask: func(ctx context.Context, _ Request) (acpv2.PermissionOptionID, error) { <-ctx.Done(); return "1", nil }, cancels: true},
		"default allow": {edit: func(p *Policy) { p.Default = EffectAllow }, yes: true},
		"default deny":  {edit: func(p *Policy) { p.Default = EffectDeny }},
		"default odd":   {edit: func(p *Policy) { p.Default = "Allow" }},
		"forgetful":     {ask: choose("allow_always"), edit: func(p *Policy) { p.Remember = RememberNever }, yes: true},
		"unforgetting":  {ask: choose("allow_always"), edit: func(p *Policy) { p.Remember = RememberForever }, yes: true},
		"broken audit":  {edit: func(p *Policy) { p.Audit = func(Record) { panic("disk full") } }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				never = make(chan struct{})
				for _, s := range shapes() {
					p := parse(t, rules)
					p.Ask = mode.ask
					if mode.edit != nil {
						mode.edit(p)
					}
					ctx, cancel := context.WithCancel(t.Context())
					if mode.cancels {
						time.AfterFunc(time.Second, cancel)
					}
					begin := time.Now()
					d := p.Decide(ctx, s.req)
					took := time.Since(begin)
					cancel()

					if took > DefaultAskTimeout || mode.cancels && took > time.Second {
						t.Errorf("%s: answered after %v", s.name, took)
					}
					if o := d.Option; o != nil && !slices.ContainsFunc(s.req.Options, func(x acpv2.PermissionOption) bool {
						return x.OptionID == o.OptionID && x.Kind == o.Kind && x.Name == o.Name
					}) {
						t.Errorf("%s: %+v was not offered", s.name, o)
					}
					approved := d.Option != nil && strings.HasPrefix(string(d.Option.Kind), "allow_")
					switch {
					case approved != (d.Effect == EffectAllow) && !(d.Effect == EffectAsk && d.Option.Kind == "allow_forever"):
						t.Errorf("%s: %+v with %+v", s.name, d, d.Option)
					case d.Effect == EffectAllow && s.want == EffectDeny,
						d.Effect == EffectAllow && s.want == EffectAsk && !mode.yes,
						d.Effect != EffectAllow && s.want == EffectAllow,
						d.By == ByDefault && d.Effect == EffectAllow && !knownKind(s.req.Kind):
						t.Errorf("%s: %+v, the rules say %s", s.name, d, s.want)
					case d.Effect == EffectAllow && d.Option.Kind == "allow_always" && d.By != ByUser && s.rule != "edit sources":
						t.Errorf("%s: %+v allows more than the once it was asked for", s.name, d)
					}
				}
				close(never)
				time.Sleep(2 * time.Hour) // on the bubble's clock: hooks that are late return
			})
		})
	}
}

func TestDecisionSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := running("uname")
		for _, tt := range []struct {
			name string
			ask  func(context.Context, Request) (acpv2.PermissionOptionID, error)
			want Decision
			took time.Duration
		}{
			{"once", func(context.Context, Request) (acpv2.PermissionOptionID, error) { return "1", nil }, Decision{Option: new(usual[0]), Effect: EffectAllow, By: ByUser, Reason: "no rule allows it"}, 0},
			{"no", func(context.Context, Request) (acpv2.PermissionOptionID, error) { return "3", nil }, Decision{Option: new(usual[2]), Effect: EffectDeny, By: ByUser, Reason: "no rule allows it"}, 0},
			{"dismissed", func(context.Context, Request) (acpv2.PermissionOptionID, error) { return "", nil }, Decision{Option: nil, Effect: EffectDeny, By: ByUser, Reason: "no rule allows it"}, 0},
			{"not offered", func(context.Context, Request) (acpv2.PermissionOptionID, error) { return "9", nil }, Decision{Option: nil, Effect: EffectDeny, By: ByUser, Reason: "no rule allows it"}, 0},
			{"fails", func(context.Context, Request) (acpv2.PermissionOptionID, error) { return "1", errors.New("x") }, Decision{Option: new(usual[2]), Effect: EffectDeny, By: ByFailure, Reason: "no rule allows it"}, 0},
			{"exits", func(context.Context, Request) (acpv2.PermissionOptionID, error) { runtime.Goexit(); return "1", nil }, Decision{Option: new(usual[2]), Effect: EffectDeny, By: ByFailure, Reason: "no rule allows it"}, 0},
			{"late", func(context.Context, Request) (acpv2.PermissionOptionID, error) {
				time.Sleep(time.Hour)
				return "1", nil
			}, Decision{Option: new(usual[2]), Effect: EffectDeny, By: ByTimeout, Reason: "no rule allows it"}, 5 * time.Second},
			{"gives up", func(ctx context.Context, _ Request) (acpv2.PermissionOptionID, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}, Decision{Option: new(usual[2]), Effect: EffectDeny, By: ByTimeout, Reason: "no rule allows it"}, 5 * time.Second},
		} {
			var records []Record
			p := &Policy{Ask: tt.ask, AskTimeout: 5 * time.Second, Audit: func(r Record) { records = append(records, r) }}
			d := p.Decide(t.Context(), open)
			if diff := cmp.Diff(tt.want, d); diff != "" {
				t.Errorf("%s: %s", tt.name, diff)
			}
			if len(records) != 1 || records[0].TookMillis != tt.took.Milliseconds() || records[0].By != tt.want.By {
				t.Errorf("%s: %+v", tt.name, records)
			}
		}
		time.Sleep(2 * time.Hour) // on the bubble's clock: hooks that are late return
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if d := new(Policy).Decide(canceled, open); d.Option != nil || d.By != ByCancelling {
			t.Errorf("%+v", d)
		}
	})
}

// TestAskingBound holds that hooks that never return do not add up.
func TestAskingBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := &Policy{AskTimeout: time.Second, Ask: func(context.Context, Request) (acpv2.PermissionOptionID, error) {
			<-release
			return "1", nil
		}}
		for i := range detach.Max + 3 {
			want := ByTimeout
			if i >= detach.Max {
				want = ByNobody
			}
			if d := p.Decide(t.Context(), running("x")); d.By != want {
				t.Fatalf("question %d: %+v", i, d)
			}
		}
		close(release)
		synctest.Wait()
		p.Ask = func(context.Context, Request) (acpv2.PermissionOptionID, error) { return "1", nil }
		if d := p.Decide(t.Context(), running("x")); d.By != ByUser {
			t.Errorf("%+v", d)
		}
	})
}

func TestRecord(t *testing.T) {
	var got Record
	p := parse(t, rules)
	p.Audit = func(r Record) { got = r }
	req := running("rm x")
	req.Session, req.ToolCallID, req.ToolName, req.Title = "s1", "c1", "bash", strings.Repeat("ä", 4000)
	req.Paths = []string{"/w/a"}
	p.Decide(t.Context(), req)
	if got.Time.IsZero() || len(got.Title) != maxRecordText {
		t.Errorf("%v, %d bytes of title", got.Time, len(got.Title))
	}
	got.Time, got.Title, got.TookMillis = time.Time{}, "", 7
	data, err := json.Marshal(got)
	want := `{"time":"0001-01-01T00:00:00Z","session":"s1","toolCallId":"c1","toolName":"bash","kind":"execute","command":"rm x",` +
		`"cwd":"/w","paths":["/w/a"],"effect":"deny","by":"rule","rule":"no rm","reason":"the rule no rm denies it","optionId":"3","optionKind":"reject_once","tookMillis":7}`
	if string(data) != want || err != nil {
		t.Errorf("%s, %v\nwant %s", data, err, want)
	}
	req = Request{}
	for i := range 100 {
		req.Paths = append(req.Paths, fmt.Sprint("/", i))
	}
	p.Decide(t.Context(), req)
	if len(got.Paths) != maxRecordPaths || got.MorePaths != 36 || got.OptionID != "" {
		t.Errorf("%d paths and %d more, option %q", len(got.Paths), got.MorePaths, got.OptionID)
	}
}
