//go:build unix

package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestTrustLink: a file that leads to what the user trusts in another project is not trusted: the
// programs that it names are looked for beside itself.
func TestTrustLink(t *testing.T) {
	p := newPlace(t)
	p.user("")
	const text = "[mcp.m]\ncommand = \"./m\"\n"
	good := p.write("good/"+ProjectFile, text)
	c := p.mustLoad()
	if err := c.Trust(good); err != nil {
		t.Fatal(err)
	}
	trusts := func(file string, want bool) {
		t.Helper()
		if got, err := c.Trusts(file, []byte(text)); err != nil || got != want {
			t.Errorf("%s: %v, %v", file, got, err)
		}
	}
	trusts(good, true)

	evil := p.write("evil/m", "")
	link := filepath.Join(filepath.Dir(evil), ProjectFile)
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	trusts(link, false)

	// The same directory by another name is the same.
	again := filepath.Join(filepath.Dir(filepath.Dir(evil)), "again")
	if err := os.Symlink(filepath.Dir(good), again); err != nil {
		t.Fatal(err)
	}
	trusts(filepath.Join(again, ProjectFile), true)

	// A link can be trusted itself, as what it is.
	if err := c.Trust(link); err != nil {
		t.Fatal(err)
	}
	trusts(link, true)
	if had, err := c.Untrust(good); err != nil || len(had) != 1 {
		t.Errorf("%v, %v", had, err)
	}
	trusts(good, false)
	trusts(link, true)
}

// TestPolicyPipe: a policy that is a pipe is an error, and not waited for.
func TestPolicyPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "policy.json")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Skip(err)
	}
	_, err := ReadRules(Permissions{Policy: name}, "").Policy()
	if err == nil || !strings.Contains(err.Error(), "policy "+name+": is not a regular file") {
		t.Error(err)
	}
}
