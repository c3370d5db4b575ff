package assets

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// loads finds the files that a document or a script has loaded.
var loads = regexp.MustCompile(`(?:href|src)="/([^"]+)"|(?:from|import\()? ?"\./([^"]+\.js)"`)

// TestComplete: what the pages load is there, from their documents on, and nothing is there that none of them loads.
func TestComplete(t *testing.T) {
	used := map[string]bool{
		"sw.js": true, "licences.txt": true, // which a script and people ask for
		"icon-192.png": true, "icon-512.png": true, // which the manifest names
	}
	var follow func(name string)
	follow = func(name string) {
		if used[name] {
			return
		}
		used[name] = true
		data, err := Read(name)
		if err != nil {
			t.Error(err)
			return
		}
		if ext := path.Ext(name); ext != ".html" && ext != ".js" {
			return
		}
		for _, m := range loads.FindAllStringSubmatch(string(data), -1) {
			follow(m[1] + m[2])
		}
	}
	follow("index.html")
	follow("tap.html")
	entries, err := fs.ReadDir(Files, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !used[strings.TrimSuffix(e.Name(), Packed)] {
			t.Errorf("no page loads %s", e.Name())
		}
	}
}
