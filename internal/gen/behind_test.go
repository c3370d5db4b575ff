package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/internal/overlay"
)

// An entry is a file in a package.
type entry struct {
	name, text string
	kind       byte   // 0 is a regular file
	link       string // of a link
}

// pack packs a package as npm does.
func pack(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Size: int64(len(e.text)), Mode: 0o644, Typeflag: e.kind, Linkname: e.link}
		if e.kind == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []interface{ Close() error }{w, z} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// packed is a package with one text for all stable schemas, and one for all unstable ones.
func packed(t *testing.T, version, stable, unstable string) []byte {
	t.Helper()
	entries := []entry{{name: "package/package.json", text: fmt.Sprintf(`{"name":%q,"version":%q}`, sdkPackage, version)},
		{name: "package/dist/index.js", text: "code"}, {name: "../../schema/v1/schema.json", text: "not ours"}}
	for _, s := range sources {
		text := stable
		if strings.Contains(s.upstream, "unstable") {
			text = unstable
		}
		entries = append(entries, entry{name: "package/schema/" + s.upstream, text: text})
	}
	return pack(t, entries...)
}

func integrityOf(data []byte) string {
	sum := sha512.Sum512(data)
	return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

// serveNPM serves one version of the package as a registry does, and has gen ask it.
func serveNPM(t *testing.T, version string, tarball []byte, integrity string) {
	t.Helper()
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	mux.HandleFunc("GET /npm/{name}/latest", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("name") != sdkPackage {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"name": sdkPackage, "version": version,
			"dist": map[string]any{"tarball": s.URL + "/files/sdk.tgz", "integrity": integrity}})
	})
	mux.HandleFunc("GET /files/sdk.tgz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(tarball) })
	t.Setenv("npm_config_registry", s.URL+"/npm")
}

const (
	oldStable   = `{"$defs":{"Kept":{"type":"string"},"Thing":{"type":"object","properties":{"a":{"type":"string"}}}}}`
	oldUnstable = `{"$defs":{"Kept":{"type":"string"},"Draft":{"type":"string"},"Gone":{"type":"string"},
		"Thing":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}}}`
	newStable = `{"$defs":{"Kept":{"type":"string","description":"Words."},"Draft":{"type":"string"},
		"Thing":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}}}`
	newUnstable = `{"$defs":{"Kept":{"type":"string"},"Draft":{"type":"string"},"New":{"type":"string"},
		"Thing":{"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":"string"}},"required":["a"]}}}`
)

// ours writes the schemas of version 2.0.0.
func ours(t *testing.T) (root string) {
	t.Helper()
	from, root := t.TempDir(), t.TempDir()
	for _, s := range sources {
		text := oldStable
		if strings.Contains(s.upstream, "unstable") {
			text = oldUnstable
		}
		put(t, filepath.Join(from, s.upstream), text)
	}
	put(t, filepath.Join(from, "package.json"), fmt.Sprintf(`{"name":%q,"version":"2.0.0"}`, sdkPackage))
	put(t, filepath.Join(root, "schema", "docs.txt"), "kept")
	if err := syncSchemas(from, filepath.Join(root, "schema"), &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	return root
}

// tree returns all files below a directory with their content and time.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		out[path] = fmt.Sprint(info.Mode(), info.ModTime().UnixNano())
		if !d.IsDir() {
			out[path] += get(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// status returns the exit status that belongs to an error.
func status(err error) int {
	var e *exitError
	switch {
	case errors.As(err, &e):
		return e.code
	case err != nil:
		return 1
	}
	return 0
}

// TestBehind: an older and an equal package are 0, a newer one 1, and 2 is what cannot be told, which includes a
// package that differs from what the registry vouches for. Nothing is written.
func TestBehind(t *testing.T) {
	bad := func(data []byte) []byte {
		data = bytes.Clone(data)
		data[len(data)/2] ^= 1
		return data
	}
	older, equal := packed(t, "1.9.9", newStable, newUnstable), packed(t, "2.0.0", oldStable, oldUnstable)
	newer := packed(t, "2.10.0", newStable, newUnstable)
	for _, tt := range []struct {
		name, version, integrity string
		tarball                  []byte
		want                     int
		says                     string
	}{
		{"older", "1.9.9", integrityOf(older), older, 0, "is older than 2.0.0"},
		{"equal", "2.0.0", integrityOf(equal), equal, 0, "are the newest"},
		{"newer", "2.10.0", integrityOf(newer), newer, 1, "are behind"},
		{"several hashes", "2.0.0", "sha1-abc sha512-abc " + integrityOf(equal) + "?x", equal, 0, "are the newest"},
		{"corrupted", "2.10.0", integrityOf(newer), bad(newer), 2, "its SHA-512 differs"},
		{"no hash", "2.10.0", "", newer, 2, "no SHA-512"},
		{"a weak hash", "2.10.0", "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=", newer, 2, "no SHA-512"},
		{"another version than it says", "2.11.0", integrityOf(newer), newer, 2, "the registry says"},
		{"not packed", "2.10.0", integrityOf([]byte("x")), []byte("x"), 2, "sdk.tgz"},
		{"cut off", "2.10.0", integrityOf(newer[:len(newer)/2]), newer[:len(newer)/2], 2, "unexpected EOF"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := ours(t)
			serveNPM(t, tt.version, tt.tarball, tt.integrity)
			t.Setenv("TMPDIR", filepath.Join(root, "tmp"))
			before := tree(t, root)
			for _, format := range [][]string{nil, {"-json"}} {
				var out, stderr bytes.Buffer
				err := run(append([]string{"-root", root, "behind"}, format...), &out, &stderr)
				if got := status(err); got != tt.want {
					t.Errorf("%q: status %d, want %d: %v\n%s", format, got, tt.want, err, &out)
				}
				said := out.String()
				if err != nil {
					said += err.Error()
				}
				if format == nil && !strings.Contains(said, tt.says) {
					t.Errorf("it says %q, want %q", said, tt.says)
				}
				if format != nil && tt.want < 2 && !json.Valid(out.Bytes()) {
					t.Errorf("%s", &out)
				}
			}
			if d := cmp.Diff(before, tree(t, root)); d != "" {
				t.Errorf("something was written: %s", d)
			}
		})
	}
}

// TestBehindReport: what is new, gone, changed and newly stable, from a file and from directories.
func TestBehindReport(t *testing.T) {
	root := ours(t)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "sdk.tgz"), string(packed(t, "2.10.0", newStable, newUnstable)))
	for _, s := range sources {
		text := newStable
		if strings.Contains(s.upstream, "unstable") {
			text = newUnstable
		}
		put(t, filepath.Join(dir, "sdk", "schema", s.upstream), text)
	}
	put(t, filepath.Join(dir, "sdk", "package.json"), fmt.Sprintf(`{"name":%q,"version":"2.10.0"}`, sdkPackage))
	report := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if err := run(append([]string{"-root", root, "behind"}, args...), &out, &out); status(err) != 1 || err.Error() != "" {
			t.Fatalf("%v: %s", err, &out)
		}
		return out.String()
	}
	const documents = `v1.json: 3 definitions, 2 differ
  + Draft
  ~ Thing: +b
v1.unstable.json: 4 definitions, 3 differ
  - Gone
  + New
  ~ Thing: required ~a
v2.json: 3 definitions, 2 differ
  + Draft
  ~ Thing: +b
v2.unstable.json: 4 definitions, 3 differ
  - Gone
  + New
  ~ Thing: required ~a
newly stable in v1: Draft Thing.b
newly stable in v2: Draft Thing.b
The schemas are behind: run go run ./internal/gen sync DIR on the directory schema of the package.
`
	for path, first := range map[string]string{
		"sdk.tgz":    sdkPackage + " 2.10.0; the schemas are of 2.0.0\n",
		"sdk":        sdkPackage + " 2.10.0; the schemas are of 2.0.0\n",
		"sdk/schema": "the directory; the schemas are of 2.0.0\n",
	} {
		if d := cmp.Diff(first+documents, report("-from", filepath.Join(dir, path))); d != "" {
			t.Errorf("%s: %s", path, d)
		}
	}
	var c comparison
	if err := json.Unmarshal([]byte(report("-json", "-from", filepath.Join(dir, "sdk"))), &c); err != nil {
		t.Fatal(err)
	}
	if c.State != stateBehind || c.Version != "2.10.0" || c.Ours != "2.0.0" || len(c.Documents) != len(sources) ||
		len(c.NewlyStable["v2"]) != 2 || c.Documents[1].Changed[0] != (change{"Thing", "required ~a"}) {
		t.Errorf("%+v", c)
	}
}

// TestBehindOverlay: the entries of overlays that the package has by now, that it has otherwise, and that do not
// fit it.
func TestBehindOverlay(t *testing.T) {
	root := ours(t)
	put(t, filepath.Join(root, "schema", overlay.Dir, "a.json"), `{"about":"a","seen":"b","certainty":"inferred",
		"v1":{"unstable":{"defs":{"New":{"type":"string"},"Later":{"type":"string"}},
			"props":{"Thing.b":{"type":"string"},"Thing.c":{"type":"string"},"Gone.x":{"type":"string"}}},
			"promote":["Draft","Later"]},
		"v2":{"unstable":{"defs":{"New":{"type":"integer"}}}}}`)
	file := filepath.Join(t.TempDir(), "sdk.tgz")
	put(t, file, string(packed(t, "2.10.0", newStable, newUnstable)))
	var out bytes.Buffer
	if err := run([]string{"-root", root, "behind", "-json", "-from", file}, &out, &out); status(err) != 1 {
		t.Fatal(err, out.String())
	}
	var c comparison
	if err := json.Unmarshal(out.Bytes(), &c); err != nil {
		t.Fatal(err)
	}
	const at = "overlay/a.json: "
	if d := cmp.Diff([]string{at + "v1.unstable.defs.New", at + "v1.unstable.props.Thing.b", at + "v1.promote Draft"}, c.Obsolete); d != "" {
		t.Error(d)
	}
	var entries []string
	for _, e := range c.Contradicted {
		entries = append(entries, e.Entry)
	}
	if d := cmp.Diff([]string{at + "v1.unstable.props.Gone.x", at + "v2.unstable.defs.New"}, entries); d != "" {
		t.Error(d)
	}
	out.Reset()
	_ = run([]string{"-root", root, "behind", "-from", file}, &out, &out)
	for _, want := range []string{"\nobsolete: " + at + "v1.unstable.defs.New\n", "\ncontradicted: " + at + "v2.unstable.defs.New: the schema has it, and it differs:"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s\nlacks %s", &out, want)
		}
	}
	// Schemas that are equal have nothing of the overlay.
	put(t, file, string(packed(t, "2.0.0", oldStable, oldUnstable)))
	put(t, filepath.Join(root, "schema", overlay.Dir, "a.json"), `{"about":"a","seen":"b","certainty":"read","v1":{"unstable":{"defs":{"New":{"type":"string"}}}}}`)
	out.Reset()
	if err := run([]string{"-root", root, "behind", "-from", file}, &out, &out); err != nil {
		t.Error(err, out.String())
	}
	put(t, filepath.Join(root, "schema", overlay.Dir, "a.json"), "{")
	if err := run([]string{"-root", root, "behind", "-from", file}, &out, &out); status(err) != 2 {
		t.Error(err)
	}
}

// TestBehindOther: a new document, one that is gone, and one that differs beside its definitions.
func TestBehindOther(t *testing.T) {
	root := ours(t)
	r, err := readTarball(packed(t, "2.0.0", oldStable, oldUnstable))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range r.schemas {
		put(t, filepath.Join(dir, "v3", filepath.Base(name)), oldStable)
		if name == "v1/schema.json" {
			text = []byte(strings.TrimSuffix(oldStable, "}") + `,"anyOf":[{"type":"null"}]}`)
		}
		if name != "v2/schema.json" {
			put(t, filepath.Join(dir, name), string(text))
		}
	}
	var out bytes.Buffer
	if err := run([]string{"-root", root, "behind", "-from", dir}, &out, &out); status(err) != 1 {
		t.Error(err)
	}
	for _, want := range []string{
		"v1.json: 2 definitions, 0 differ\n  ~ what is not in $defs\n", "v2.json: 0 definitions, 2 differ\n  - Kept\n",
		"v3/schema.json: 2 definitions, 2 differ\n", "v2.unstable.json: 4 definitions, 0 differ\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s\nlacks %s", &out, want)
		}
	}
}

// TestBehindRefuses: packages that do not fit, and registries that are none.
func TestBehindRefuses(t *testing.T) {
	root, dir := ours(t), t.TempDir()
	long := strings.Repeat(" ", maxSchema+1)
	many := make([]entry, maxSchemas+1)
	for i := range many {
		many[i] = entry{name: fmt.Sprintf("package/schema/v1/%d.json", i), text: "{}"}
	}
	huge := make([]entry, maxUnpacked/len(long)+1)
	for i := range huge {
		huge[i] = entry{name: fmt.Sprintf("package/%d", i), text: long}
	}
	const first = "package/schema/v1/schema.json"
	files := map[string][]byte{
		"has no schemas":          pack(t, entry{name: "schema/v1/schema.json", text: oldStable}, entry{name: "package/schema/../schema/v1/schema.json", text: oldStable}),
		"longer than 8 MiB":       pack(t, entry{name: first, text: long}),
		"is there twice":          pack(t, entry{name: first, text: oldStable}, entry{name: first, text: oldStable}),
		"more than 32 schemas":    pack(t, many...),
		"MiB once unpacked":       pack(t, huge...),
		"v1/schema.json: it is n": pack(t, entry{name: first, text: "{"}),
		"there is no schema/v?":   pack(t, entry{name: first, kind: tar.TypeSymlink, link: "/etc/passwd"}),
	}
	check := func(want string, args ...string) {
		t.Helper()
		var out bytes.Buffer
		err := run(append([]string{"-root", root, "behind"}, args...), &out, &out)
		if status(err) != 2 || !strings.Contains(err.Error()+out.String(), want) {
			t.Errorf("%q: status %d, %v", want, status(err), err)
		}
	}
	for want, data := range files {
		file := filepath.Join(dir, "sdk.tgz")
		put(t, file, string(data))
		check(want, "-from", file)
	}
	outside := filepath.Join(t.TempDir(), "schema.json")
	put(t, outside, oldStable)
	put(t, filepath.Join(dir, "links", "schema", "v1", "kept"), "")
	if err := os.Symlink(outside, filepath.Join(dir, "links", "schema", "v1", "schema.json")); err == nil {
		check("escapes", "-from", filepath.Join(dir, "links"))
	}
	check("no such file", "-from", filepath.Join(dir, "missing"))
	check("usage", "x")
	check("not defined", "-x")
	for registry, want := range map[string]string{
		"file:///etc": "not an http", "ftp://x": "not an http", "http://127.0.0.1:1": "refused",
	} {
		t.Setenv("npm_config_registry", registry)
		check(want)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/long"):
			_, _ = w.Write(bytes.Repeat([]byte(" "), maxManifest+1))
		case strings.HasPrefix(r.URL.Path, "/other"):
			fmt.Fprint(w, `{"name":"other","version":"1.0.0"}`)
		case strings.HasPrefix(r.URL.Path, "/file"):
			fmt.Fprintf(w, `{"name":%q,"version":"1.0.0","dist":{"tarball":"file:///etc/passwd","integrity":"sha512-x"}}`, sdkPackage)
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	for path, want := range map[string]string{
		"/long": "longer than 4 MiB", "/other": `"other"`, "/file": "names no http", "/none": "404",
	} {
		t.Setenv("npm_config_registry", s.URL+path)
		check(want)
	}
}

func TestCompareVersions(t *testing.T) {
	ordered := []string{"", "0.9.0", "1.0.0-alpha.1", "1.0.0", "1.9.0", "1.10.0", "2.0.0-beta", "2.0.0"}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := compareVersions(a, b); got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("%q and %q: %d", a, b, got)
			}
		}
	}
}

// FuzzTarball: no package makes gen fail otherwise than with an error, or take more than its bounds.
func FuzzTarball(f *testing.F) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	_ = w.WriteHeader(&tar.Header{Name: "package/schema/v1/schema.json", Size: 2, Typeflag: tar.TypeReg})
	_, _ = w.Write([]byte("{}"))
	_ = w.Close()
	_ = z.Close()
	f.Add(out.Bytes())
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := readTarball(data)
		if err != nil {
			return
		}
		for name, text := range r.schemas {
			if !isSchema(name) || len(text) > maxSchema {
				t.Errorf("%s, %d bytes", name, len(text))
			}
			if s, err := structureOf(text); err == nil {
				_, _ = diffOf(name, s, s)
			}
		}
	})
}
