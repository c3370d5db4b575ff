package roster

import (
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/config"
)

// TestProxy holds what texts mean, and that an agent with a proxy that does not exist is not found, in whichever way it
// is looked for.
func TestProxy(t *testing.T) {
	cfg := &config.Config{Environ: []string{"PATH=/nowhere"}, Settings: config.Settings{
		Proxies: map[string]config.Proxy{"mine": {Command: "m", Args: []string{"-x y"}}, "empty": {}},
		Agents:  map[string]config.Agent{"good": {Command: "a", Proxies: []string{"mine", "redact --env X"}}, "bad": {Command: "a", Proxies: []string{"none"}}},
	}}
	r := New(cfg)
	for _, tt := range []struct{ text, name, argv, err string }{
		{"mine", "mine", "m '-x y'", ""},
		{"redact", "redact", "redact", ""},
		{"redact --env 'A B'", "redact", "redact --env 'A B'", ""},
		{"./x/proxy -a", "proxy", "./x/proxy -a", ""},
		{"python3 p.py", "python3", "python3 p.py", ""},
		{"min", "", "", `did you mean "mine"?`},
		{"zzzzzz", "", "", "there are empty, mine, budget, context, policy, record, redact"},
		{"empty", "", "", "set proxies.empty.command"},
		{" ", "", "", "is empty"},
		{"a 'b", "", "", "is not closed"},
	} {
		p := r.Proxy(tt.text)
		if tt.err != "" {
			if p.Err == nil || !strings.Contains(p.Err.Error(), tt.err) {
				t.Errorf("%q: %v", tt.text, p.Err)
			}
			continue
		}
		if p.Err != nil || p.Name != tt.name || p.String() != tt.argv || p.Ready != (tt.name == "redact") {
			t.Errorf("%q: %+v", tt.text, p)
		}
	}
	a, err := r.Find("good")
	if err != nil || len(a.Proxies) != 2 {
		t.Errorf("%+v, %v", a.Proxies, err)
	}
	if _, err := r.Find("bad"); err == nil {
		t.Error("an agent without its proxy is found")
	}
	wrong := New(cfg, "none")
	for _, name := range []string{"", "good", "claude", "./x", "https://h/acp"} {
		if _, err := wrong.Find(name); err == nil {
			t.Errorf("%q is found without its proxy", name)
		}
	}
	if _, err := wrong.Command("x"); err == nil {
		t.Error("a command is found without its proxy")
	}
	for _, a := range wrong.All() {
		if a.ProxyErr() == nil {
			t.Errorf("%s has no proxy", a.Name)
		}
	}
	front, err := New(cfg, "redact").Find("good")
	if err != nil || len(front.Proxies) != 3 || front.Proxies[0].Argv[0] != "redact" || front.Proxies[1].Name != "mine" {
		t.Errorf("%+v, %v", front.Proxies, err)
	}
}
