package tap

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/trace"
)

// TestAudit holds what is written to the log, that it goes on, and that what cannot be written is told.
func TestAudit(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	for range 2 {
		log := new(Audit)
		if err := log.Open(name); err != nil {
			t.Fatal(err)
		}
		log.Write(&Entry{Decision: DecisionRefuse, By: ByRoots, Paths: []string{"/x"}})
		if problems := log.Close(); problems != nil {
			t.Error(problems)
		}
		log.Write(&Entry{}) // after the end
	}
	text, err := os.ReadFile(name)
	const line = `{"time":"0001-01-01T00:00:00Z","decision":"refuse","by":"roots","paths":["/x"]}` + "\n"
	if string(text) != line+line || err != nil {
		t.Errorf("%s, %v", text, err)
	}
	log := new(Audit)
	if err := log.Open(name); err != nil {
		t.Fatal(err)
	}
	_ = log.f.Close()
	log.Write(&Entry{})
	if problems := log.Close(); len(problems) != 1 || !strings.HasPrefix(problems[0], "1 decisions could not be written") {
		t.Errorf("%q", problems)
	}
}

// TestAuditTorn holds that a line that was cut off does not spoil the next.
func TestAuditTorn(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	const cut = `{"time":"0001-01-01T00:0`
	if err := os.WriteFile(name, []byte(cut), 0o600); err != nil {
		t.Fatal(err)
	}
	log := new(Audit)
	if err := log.Open(name); err != nil {
		t.Fatal(err)
	}
	log.Write(&Entry{Method: "a"})
	log.torn = true // as after a write of which only a part was done
	log.Write(&Entry{Method: "b"})
	log.Write(&Entry{Method: "c"})
	if problems := log.Close(); problems != nil {
		t.Error(problems)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	line := func(method string) string {
		return `{"time":"0001-01-01T00:00:00Z","method":"` + method + `","decision":"","by":""}` + "\n"
	}
	if diff := cmp.Diff(cut+"\n"+line("a")+"\n"+line("b")+line("c"), string(text)); diff != "" {
		t.Error(diff)
	}
}

// TestAuditSecrets holds that what looks like a secret is not in the log.
func TestAuditSecrets(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	log := &Audit{Redactor: new(trace.Redactor)}
	if err := log.Open(name); err != nil {
		t.Fatal(err)
	}
	log.Write(&Entry{Title: `run "x"`, Command: "curl -H 'Authorization: Bearer hunter2hunter2'", Paths: []string{"/x"}})
	log.Close()
	text, err := os.ReadFile(name)
	if err != nil || strings.Contains(string(text), "hunter2") || !strings.Contains(string(text), `"title":"run \"x\""`) || !json.Valid(text) {
		t.Errorf("%s, %v", text, err)
	}
}
