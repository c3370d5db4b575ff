package roster

import (
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/remote"
)

func TestURL(t *testing.T) {
	for _, tt := range []struct {
		text             string
		is               bool
		network, address string // "" for a URL that is refused, "http" for one of package remote
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
		{"https://host", true, "http", ""},
		{"wss://host/acp", true, "http", ""},
		{"http://127.0.0.1:7842/acp?a=b", true, "http", ""},
		{"unix:/run/agent.sock", true, "http", ""},
		{"unix:agent.sock", true, "http", ""},
		{"https://user:word@host", true, "", ""},
		{"https://user@host", true, "", ""},
		{"https://host/?access_token=x", true, "", ""},
		{"https://host/#x", true, "", ""},
		{"https:///acp", true, "", ""},
		{"unix:", false, "", ""},
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
		a, err := New(&config.Config{Dirs: config.Dirs{State: "/state"}}).Find(tt.text)
		if tt.network == "" {
			if exitcode.Of(err) != exitcode.Usage {
				t.Errorf("%s: %+v, %v, want it refused", tt.text, a, err)
			}
			continue
		}
		if err != nil || a.URL != tt.text || a.Command != "" || a.Name != tt.text {
			t.Errorf("%s: %+v, %v", tt.text, a, err)
		}
		if tt.network == "http" {
			if !remote.Is(tt.text) || a.Remote.State != "/state" {
				t.Errorf("%s: %+v", tt.text, a)
			}
			continue
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

// TestRemoteOfSettings: where the token is comes from the settings, the token itself from there.
func TestRemoteOfSettings(t *testing.T) {
	r := New(&config.Config{
		Environ:  []string{"ACP_TOKEN=general", "MINE=special"},
		Settings: config.Settings{Agents: map[string]config.Agent{"far": {URL: "https://h/acp", TokenEnv: "MINE", Insecure: true}, "near": {URL: "https://h/acp"}}},
	})
	for name, want := range map[string]string{"far": "special", "near": "general", "https://h/acp": "general"} {
		a, err := r.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if token, err := a.Remote.Token.Token(); token != want || err != nil || a.Remote.Insecure != (name == "far") {
			t.Errorf("%s: %q, %v, %+v", name, token, err, a.Remote)
		}
	}
	if a, err := r.Command("https://h/acp"); err != nil || a.URL != "https://h/acp" || a.Command != "" {
		t.Errorf("an agent that was stored: %+v, %v", a, err)
	}
}
