package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// A compared is a package that a comparison table names.
type compared struct{ version, released string }

// readVersions returns what versions.txt says, and on which day somebody last looked for newer ones.
func readVersions(t *testing.T) (all map[string]compared, looked string) {
	t.Helper()
	text, err := os.ReadFile("versions.txt")
	if err != nil {
		t.Fatal(err)
	}
	all = map[string]compared{}
	for line := range strings.Lines(string(text)) {
		switch f := strings.Fields(line); {
		case len(f) == 0 || f[0] == "#":
		case len(f) == 2 && f[0] == "looked":
			looked = f[1]
		case len(f) == 3:
			all[f[0]] = compared{f[1], f[2]}
		default:
			t.Fatalf("versions.txt: %q", line)
		}
	}
	return all, looked
}

// pinned returns the versions that package.json and go.mod files pin.
func pinned(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	if strings.HasSuffix(file, ".json") {
		var p struct{ Dependencies map[string]string }
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		return p.Dependencies
	}
	for _, m := range regexp.MustCompile(`(?m)^\s*(\S+) v(\S+)`).FindAllSubmatch(text, -1) {
		all[string(m[1])] = string(m[2])
	}
	return all
}

// TestVersions: what is run is what the tables name, with the day of its release.
func TestVersions(t *testing.T) {
	all, looked := readVersions(t)
	seen := map[string]bool{}
	for _, file := range []string{"package.json", "real/package.json", "../bench/package.json", "go.mod", "../bench/go.mod"} {
		for name, version := range pinned(t, file) {
			c, ok := all[name]
			if ok && c.version != version {
				t.Errorf("versions.txt has %s %s, %s %s", name, c.version, file, version)
			}
			seen[name] = seen[name] || ok
		}
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	tried, err := os.ReadFile("../docs/agents-tried.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range all {
		if !seen[name] {
			t.Errorf("versions.txt has %s, which nothing pins", name)
		}
		if want := fmt.Sprintf("%s (%s)", c.version, c.released); !strings.Contains(string(readme), want) {
			t.Errorf("README.md does not name %s %s", name, want)
		}
		if !strings.Contains(string(tried), c.version) {
			t.Errorf("docs/agents-tried.md does not name %s %s", name, c.version)
		}
	}
	if !strings.Contains(string(readme), looked) {
		t.Errorf("README.md does not say that the versions are the newest of %s", looked)
	}
}
