package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/internal/overlay"
)

// merged makes official schemas of what the overlays say, in a workspace.
func merged(t *testing.T, root string) {
	t.Helper()
	set, err := overlay.Read(filepath.Join(root, "schema"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sources {
		doc, err := set.Schema(s.ours)
		if err != nil {
			t.Fatal(err)
		}
		var short bytes.Buffer
		if err := json.Compact(&short, doc); err != nil {
			t.Fatal(err)
		}
		defer put(t, filepath.Join(root, "schema", s.ours), short.String())
	}
}

// certain says of all overlays that they were read.
func certain(t *testing.T, root string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "schema", overlay.Dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		put(t, f, strings.Replace(get(t, f), `"certainty": "inferred"`, `"certainty": "read"`, 1))
	}
}

// TestOverlayObsolete: an official schema that has what the overlays say makes the same
// packages without them; with them, each of their entries is reported.
func TestOverlayObsolete(t *testing.T) {
	long.Test(t)
	root := workspace(t)
	schemas := filepath.Join(root, "schema")
	certain(t, root)
	want, err := generate(schemas)
	if err != nil {
		t.Fatal(err)
	}
	merged(t, root)
	if _, err := generate(schemas); err == nil || !strings.Contains(err.Error(), "overlay/speed.json: v1.unstable.values.SessionConfigOptionCategory: the schema has it, equal: delete this entry") {
		t.Errorf("both say the same: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(schemas, overlay.Dir)); err != nil {
		t.Fatal(err)
	}
	got, err := generate(schemas)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Errorf("%d files, with overlays %d", len(got), len(want))
	}
	for name, text := range want {
		if !bytes.Equal(got[name], text) {
			t.Errorf("%s differs", name)
		}
	}
}

// TestOverlayContradicted: an official schema that says something else is reported with the
// file and the entry.
func TestOverlayContradicted(t *testing.T) {
	root := workspace(t)
	merged(t, root)
	path := filepath.Join(root, "schema", "v2.unstable.json")
	put(t, path, strings.Replace(get(t, path), `"ReplayComplete":{"type":"object"`, `"ReplayComplete":{"type":"object","required":["x"]`, 1))
	_, err := generate(filepath.Join(root, "schema"))
	const want = "overlay/replay-complete.json: v2.unstable.defs.ReplayComplete: the schema has it, and it differs"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// TestOverlaySource: the overlays that there are are written down, and -check says so.
func TestOverlaySource(t *testing.T) {
	root := workspace(t)
	schemas := filepath.Join(root, "schema")
	source, err := currentSource(schemas)
	if err != nil || string(source) != get(t, filepath.Join(schemas, sourceFile)) {
		t.Errorf("%v\n%s", err, source)
	}
	speed := filepath.Join(schemas, overlay.Dir, "speed.json")
	put(t, speed, get(t, speed)+"\n")
	changed, err := currentSource(schemas)
	if err != nil || bytes.Equal(changed, source) || bytes.Count(changed, []byte("\n")) != bytes.Count(source, []byte("\n")) {
		t.Errorf("%v\n%s", err, changed)
	}
	if err := compare(root, map[string][]byte{"schema/SOURCE": changed}); err == nil || !strings.Contains(err.Error(), "schema/SOURCE") {
		t.Errorf("an overlay was changed: %v", err)
	}
	dir := upstream(t, prose)
	if err := os.RemoveAll(filepath.Join(schemas, "v1.json")); err != nil {
		t.Fatal(err)
	}
	if err := syncSchemas(dir, schemas, t.Output()); err != nil {
		t.Fatal(err)
	}
	if got := get(t, filepath.Join(schemas, sourceFile)); !strings.Contains(got, "version unknown") || strings.Count(got, " overlay/") != strings.Count(string(changed), " overlay/") {
		t.Errorf("%s", got)
	}
}

// TestOverlayInferred: what nobody has seen the schema of says so, and nothing else does.
func TestOverlayInferred(t *testing.T) {
	set, err := overlay.Read(filepath.Join(moduleRoot, "schema"))
	if err != nil {
		t.Fatal(err)
	}
	text := func(name string) string {
		return strings.Join(strings.Fields(strings.ReplaceAll(get(t, filepath.Join(moduleRoot, name)), "//", " ")), " ")
	}
	for _, v := range []string{"v1", "v2"} {
		if n := strings.Count(text("acp"+v+"/session_open_gen.go"), inferredNote); n != 1 {
			t.Errorf("%s: the cursor of session/fork says %d times that it is inferred", v, n)
		}
		if n := strings.Count(text("acp"+v+"/cursor_gen.go"), inferredNote); n != 0 {
			t.Errorf("%s: cursors are not inferred, but %d comments say so", v, n)
		}
	}
	for _, f := range set.Files {
		if !json.Valid([]byte(get(t, filepath.Join(moduleRoot, "schema", overlay.Dir, f.Name)))) || f.About == "" {
			t.Errorf("%s says nothing", f.Name)
		}
	}
}
