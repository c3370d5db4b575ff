package roster

import (
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

func TestURL(t *testing.T) {
	for _, tt := range []struct {
		text             string
		is               bool
		network, address string // "" for a URL that is refused
	}{
		{"tcp://127.0.0.1:3000", true, "tcp", "127.0.0.1:3000"},
		{"tcp://[::1]:3000", true, "tcp", "[::1]:3000"},
		{"tcp://agents.example:3000", true, "tcp", "agents.example:3000"},
		{"unix:///run/agent.sock", true, "unix", "/run/agent.sock"},
		{"tcp://127.0.0.1", true, "", ""},
		{"tcp://:3000", true, "", ""},
		{"tcp://user:word@host:3000", true, "", ""},
		{"tcp://host:3000/path", true, "", ""},
		{"unix://run/agent.sock", true, "", ""},
		{"unix://", true, "", ""},
		{"https://host", true, "", ""},
		{"wss://host/acp", true, "", ""},
		{"ftp://host", true, "", ""},
		{"tcp://host:no", true, "", ""},
		{"://host", false, "", ""},
		{"agent --at tcp://host:1", false, "", ""},
		{"./a://b", false, "", ""},
		{"claude", false, "", ""},
	} {
		if got := IsURL(tt.text); got != tt.is {
			t.Errorf("IsURL(%q) = %v", tt.text, got)
		}
		if !tt.is {
			continue
		}
		a, err := New(&config.Config{}).Find(tt.text)
		if tt.network == "" {
			if exitcode.Of(err) != exitcode.Usage {
				t.Errorf("%s: %+v, %v, want it refused", tt.text, a, err)
			}
			continue
		}
		if err != nil || a.URL != tt.text || a.Command != "" || a.Name != tt.text {
			t.Errorf("%s: %+v, %v", tt.text, a, err)
		}
		if network, address := Dial(tt.text); network != tt.network || address != tt.address {
			t.Errorf("%s: %s %s, want %s %s", tt.text, network, address, tt.network, tt.address)
		}
		if file, ok := Installed(a); !ok || file != "" {
			t.Errorf("%s: installed %q, %v", tt.text, file, ok)
		}
	}
}

// TestURLOfSettings: an agent of the settings is a command or a URL, not both, and a URL takes the place
// of a preset's command.
func TestURLOfSettings(t *testing.T) {
	r := New(&config.Config{Settings: config.Settings{Agents: map[string]config.Agent{
		"both":   {Command: "x", URL: "tcp://h:1"},
		"bad":    {URL: "tcp://h"},
		"good":   {URL: "tcp://h:1"},
		"gemini": {URL: "unix:///g"},
	}}})
	for name, want := range map[string]string{"both": "", "bad": "", "good": "tcp://h:1", "gemini": "unix:///g"} {
		a, err := r.Find(name)
		if want == "" && exitcode.Of(err) != exitcode.Usage || want != "" && (err != nil || a.URL != want || a.Command != "") {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
}
