package acphost

import (
	"encoding/json"
	"testing"
)

// TestRememberedCommands: “always” for a command that is shown in a text is for that command. Agents
// give all of them the same title.
func TestRememberedCommands(t *testing.T) {
	ask := func(shown string, input string) Request {
		r := Request{Session: "s", Title: "Bash", Kind: "execute", CommandUnknown: true, Shown: shown, Cwd: "/p"}
		if input != "" {
			r.RawInput = json.RawMessage(input)
		}
		return r
	}
	certain := Request{Session: "s", Title: "Bash", Kind: "execute", Command: "touch x", Cwd: "/p"}
	for _, tt := range []struct {
		name          string
		always, again Request
		want          Effect
	}{
		{"the same", ask("touch x", ""), ask("touch x", ""), EffectAllow},
		{"another command", ask("touch x", ""), ask("rm -rf x", ""), ""},
		{"none is shown any more", ask("touch x", ""), ask("", ""), ""},
		{"none was shown", ask("", ""), ask("", ""), ""},
		{"none was shown, one is", ask("", ""), ask("rm -rf x", ""), ""},
		{"the same input", ask("", `{"task":7}`), ask("", `{"task": 7}`), EffectAllow},
		{"the same input, another command", ask("touch x", `{"task":7}`), ask("rm -rf x", `{"task":7}`), ""},
		{"certain, then shown", certain, ask("touch x", ""), ""},
		{"shown, then certain", ask("touch x", ""), certain, ""},
		{"certain", certain, certain, EffectAllow},
	} {
		p := new(Policy)
		p.Always(tt.always, EffectAllow)
		if got := p.recall(&tt.again); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
