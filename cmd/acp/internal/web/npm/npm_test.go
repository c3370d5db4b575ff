package npm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// archive makes the archive of a package.
func archive(t *testing.T, files map[string]string) (data []byte, integrity string) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(b.Bytes())
	return b.Bytes(), "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

func TestRead(t *testing.T) {
	const packages = `{"lockfileVersion":3,"packages":{"":{"version":"0.0.0"},
		"node_modules/b":{"version":"1.0.0","license":"MIT","integrity":"sha512-b"},
		"node_modules/@a/b":{"version":"2.0.0","integrity":"sha512-a"},
		"node_modules/dev":{"version":"1.0.0","integrity":"sha512-d","dev":true},
		"node_modules/other":{"version":"1.0.0","integrity":"sha512-o","optional":true}}}`
	got, err := Read([]byte(packages))
	want := []Package{{Path: "node_modules/@a/b", Version: "2.0.0", Integrity: "sha512-a"}, {"node_modules/b", "1.0.0", "MIT", "sha512-b"}}
	if err != nil || !cmp.Equal(got, want) {
		t.Error(err, cmp.Diff(want, got))
	}
	if url := got[0].URL("https://r.example/"); url != "https://r.example/@a/b/-/b-2.0.0.tgz" || got[0].Name() != "@a/b" {
		t.Error(url, got[0].Name())
	}
	for _, lock := range []string{
		"", "[]", `{"lockfileVersion":2}`,
		`{"lockfileVersion":3,"packages":{"node_modules/../../x":{"version":"1.0.0","integrity":"sha512-x"}}}`,
		`{"lockfileVersion":3,"packages":{"/etc":{"version":"1.0.0","integrity":"sha512-x"}}}`,
		`{"lockfileVersion":3,"packages":{"node_modules/x":{"version":"1.0.0","integrity":"sha1-x"}}}`,
		`{"lockfileVersion":3,"packages":{"node_modules/x":{"integrity":"sha512-x"}}}`,
	} {
		if list, err := Read([]byte(lock)); err == nil {
			t.Errorf("%s: %v", lock, list)
		}
	}
}

func TestFetch(t *testing.T) {
	data, integrity := archive(t, map[string]string{"package/index.js": "export {}", "package/lib/a.js": "1"})
	evil, evilSum := archive(t, map[string]string{"package/../../evil.js": "1"})
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch r.URL.Path {
		case "/good/-/good-1.0.0.tgz":
			_, _ = w.Write(data)
		case "/evil/-/evil-1.0.0.tgz":
			_, _ = w.Write(evil)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	client := server.Client()
	dir := t.TempDir()
	good := []Package{{Path: "node_modules/good", Version: "1.0.0", Integrity: integrity}}
	if Have(good, dir) {
		t.Error("it is there before it was fetched")
	}
	for range 2 { // the second time it is there
		if err := Fetch(t.Context(), client, server.URL, good, dir); err != nil || !Have(good, dir) {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "node_modules/good/lib/a.js")); err != nil || string(text) != "1" || asked.Load() != 1 {
		t.Error(string(text), err, asked.Load())
	}
	for name, p := range map[string]Package{
		"not what the lock file names": {Path: "node_modules/good", Version: "1.0.0", Integrity: strings.Replace(integrity, "sha512-", "sha512-x", 1)},
		"outside":                      {Path: "node_modules/evil", Version: "1.0.0", Integrity: evilSum},
	} {
		other := t.TempDir()
		if err := Fetch(t.Context(), client, server.URL, []Package{p}, other); err == nil {
			t.Error(name)
		}
		if _, err := os.Stat(filepath.Join(other, filepath.FromSlash(p.Path))); err == nil {
			t.Error(name + " is there")
		}
		if _, err := os.Stat(filepath.Join(other, "evil.js")); err == nil {
			t.Error("a file was written outside")
		}
	}
	err := Fetch(t.Context(), client, server.URL, []Package{{Path: "node_modules/none", Version: "1.0.0", Integrity: integrity}}, dir)
	if err == nil || !strings.Contains(fmt.Sprint(err), "404") {
		t.Error(err)
	}
}
