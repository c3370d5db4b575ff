// Command bundle makes the page of its sources: it fetches the packages that package-lock.json names, has esbuild
// bundle them with what is in src, and writes the result to assets. It needs no Node, but the network once.
//
//	go generate ./cmd/acp/internal/web          # write the page
//	go run ./cmd/acp/internal/web/bundle -check # fail if it is another one
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/goacp/acp/cmd/acp/internal/web/assets"
	"github.com/goacp/acp/cmd/acp/internal/web/npm"
	"github.com/goacp/acp/cmd/acp/internal/web/source"
)

// licencesFile has the licences of what is in the bundle. It is not packed, since people read it in the repository.
const licencesFile = "licences.txt"

func main() {
	check := flag.Bool("check", false, "write nothing; fail if the page differs from its sources")
	dir := flag.String("dir", "", "the folder of package web (default: where this is run)")
	flag.Parse()
	if err := run(*dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run(dir string, check bool) error {
	if dir == "" {
		dir = "."
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	made, err := build(dir)
	if err != nil {
		return err
	}
	files := make(map[string][]byte)
	for name, data := range made {
		if name != licencesFile {
			name += assets.Packed
		}
		files[name] = data
	}
	sum, err := source.Sum(os.DirFS(dir))
	if err != nil {
		return err
	}
	files["bundle.sum"] = []byte(sum + "\n")
	folder := filepath.Join(dir, "assets")
	stale := func(name string) bool { _, made := files[name]; return !made && isMade(name) }
	if check {
		return differ(folder, files, stale)
	}
	old, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range old {
		if stale(e.Name()) {
			if err := os.Remove(filepath.Join(folder, e.Name())); err != nil {
				return err
			}
		}
	}
	for name, data := range files {
		if err := write(filepath.Join(folder, name), data); err != nil {
			return err
		}
	}
	return nil
}

// write writes a file, unless it is there: another version of Go may pack the same content in other bytes.
func write(file string, data []byte) error {
	if there, err := read(file); err == nil && bytes.Equal(there, data) {
		return nil
	}
	if filepath.Ext(file) == assets.Packed {
		var err error
		if data, err = assets.Pack(data); err != nil {
			return err
		}
	}
	return os.WriteFile(file, data, 0o644)
}

// read returns the content of a file, unpacked.
func read(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err == nil && filepath.Ext(file) == assets.Packed {
		return assets.Unpack(data)
	}
	return data, err
}

// isMade reports whether a file of assets is made by this program; the others are written by hand.
func isMade(name string) bool {
	switch filepath.Ext(name) {
	case assets.Packed, ".sum", ".txt":
		return true
	}
	return false
}

// differ returns an error that names what is not as it would be made.
func differ(folder string, files map[string][]byte, stale func(string) bool) error {
	var wrong []string
	for name, data := range files {
		if there, err := read(filepath.Join(folder, name)); err != nil || !bytes.Equal(there, data) {
			wrong = append(wrong, name)
		}
	}
	old, err := os.ReadDir(folder)
	for _, e := range old {
		if stale(e.Name()) {
			wrong = append(wrong, e.Name())
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		err = errors.Join(err, fmt.Errorf("not what the sources say: %s; run go generate ./cmd/acp/internal/web", strings.Join(wrong, ", ")))
	}
	return err
}

// build returns the files of the pages: that of the gateway, and that of a tap. What both have is in chunks that both load.
func build(dir string) (map[string][]byte, error) {
	packages, store, err := fetch(dir)
	if err != nil {
		return nil, err
	}
	files, loads, err := bundle(dir, store, api.FormatESModule, nil, "app.tsx", "app.css", "tap.ts", "tap.css")
	if err != nil {
		return nil, err
	}
	// The service worker is a script of its own, which no module can be part of. It keeps all parts of the page.
	chunks := []string{}
	for name := range files {
		if strings.HasPrefix(name, "chunk-") {
			chunks = append(chunks, "/"+name)
		}
	}
	slices.Sort(chunks)
	names, err := json.Marshal(chunks)
	if err != nil {
		return nil, err
	}
	worker, _, err := bundle(dir, store, api.FormatIIFE, map[string]string{"CHUNKS": string(names)}, "sw.ts")
	if err != nil {
		return nil, err
	}
	maps.Copy(files, worker)
	for name, script := range map[string]string{"index.html": "app.js", "tap.html": "tap.js"} {
		html, err := os.ReadFile(filepath.Join(dir, "src", name))
		if err != nil {
			return nil, err
		}
		files[name] = preload(html, loads[script])
	}
	files[licencesFile], err = licences(packages, store)
	return files, err
}

// locked returns the packages of the lock file, and the folder in which they are once they were fetched.
func locked(dir string) (packages []npm.Package, store string, err error) {
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return nil, "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, "", err
	}
	packages, err = npm.Read(lock)
	return packages, filepath.Join(cache, "acp-web-packages"), err
}

// fetch returns the same once they were.
func fetch(dir string) ([]npm.Package, string, error) {
	packages, store, err := locked(dir)
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return packages, store, npm.Fetch(ctx, http.DefaultClient, cmp.Or(os.Getenv("npm_config_registry"), npm.Registry), packages, store)
}

// preload has the chunks that a page begins with loaded together with its script, and not only when that is there.
func preload(html []byte, chunks []string) []byte {
	before := []byte(`<script type="module"`)
	var links []byte
	for _, c := range chunks {
		links = fmt.Appendf(links, "<link rel=\"modulepreload\" href=\"%s\">\n", c)
	}
	html = bytes.ReplaceAll(html, []byte("\r\n"), []byte("\n"))
	return bytes.Replace(html, before, append(links, before...), 1)
}

// bundle returns the files that sources of src make, by their names, and the paths of the chunks that each script begins
// with. Modules have parts that are loaded later. Paths decide about names and order in a bundle, so it is made in a folder
// in which those of sources and packages are always the same. define gives names in the sources a value.
func bundle(dir, store string, format api.Format, define map[string]string, sources ...string) (_ map[string][]byte, loads map[string][]string, err error) {
	at, err := os.MkdirTemp("", "acp-web-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(at)) }()
	if err := os.CopyFS(filepath.Join(at, "src"), os.DirFS(filepath.Join(dir, "src"))); err != nil {
		return nil, nil, err
	}
	if err := os.Symlink(filepath.Join(store, "node_modules"), filepath.Join(at, "node_modules")); err != nil {
		return nil, nil, err
	}
	var entries []string
	for _, name := range sources {
		entries = append(entries, filepath.Join(at, "src", filepath.FromSlash(name)))
	}
	var marked atomic.Bool
	defined := map[string]string{"process.env.NODE_ENV": `"production"`}
	maps.Copy(defined, define)
	res := api.Build(api.BuildOptions{
		EntryPoints: entries, Outdir: filepath.Join(at, "assets"), AbsWorkingDir: at, PreserveSymlinks: true,
		Bundle: true, Format: format, Splitting: format == api.FormatESModule, ChunkNames: "chunk-[hash]", Platform: api.PlatformBrowser,
		Target: api.ES2022, MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, LineLimit: 400,
		JSX: api.JSXAutomatic, JSXImportSource: "preact", LegalComments: api.LegalCommentsNone, Charset: api.CharsetUTF8,
		Plugins: []api.Plugin{{Name: "schemas", Setup: func(b api.PluginBuild) {
			b.OnLoad(api.OnLoadOptions{Filter: `[/\\]zod\.gen\.js$`}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
				data, err := os.ReadFile(a.Path)
				if err != nil {
					return api.OnLoadResult{}, err
				}
				marked.Store(true)
				text, err := droppable(string(data))
				return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS}, err
			})
		}}},
		Define: defined, Metafile: true, LogLevel: api.LogLevelWarning, Write: false,
		TsconfigRaw: `{"compilerOptions":{"jsx":"react-jsx","jsxImportSource":"preact","target":"es2022","useDefineForClassFields":true}}`,
	})
	if len(res.Errors) > 0 {
		return nil, nil, errors.New("the bundle has errors")
	}
	if !marked.Load() && strings.Contains(res.Metafile, "node_modules/zod/") {
		return nil, nil, errors.New("the schemas of the protocol package have another name, and all of them are in the bundle")
	}
	files := make(map[string][]byte)
	for _, f := range res.OutputFiles {
		files[filepath.Base(f.Path)] = f.Contents
	}
	loads, err = imports(res.Metafile)
	return files, loads, err
}

// droppable marks the constants of a module so that esbuild can leave out the unused ones. The protocol package has a
// schema for every type of every version, each made by calls, which for all esbuild knows could have side effects. Building
// them takes a browser longer than everything else it does before it shows something.
func droppable(module string) (string, error) {
	const export = "export const "
	var b strings.Builder
	open, any := false, false
	lines := strings.SplitAfter(module, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, export) {
			name, value, ok := strings.Cut(line[len(export):], " = ")
			if !ok || open {
				return "", fmt.Errorf("line %d is not understood: %s", i+1, line)
			}
			open, any = true, true
			line = export + name + " = /* @__PURE__ */ (() => (" + value
		}
		if rest, ok := strings.CutSuffix(strings.TrimRight(line, "\r\n"), ";"); ok && open && (i+1 == len(lines) || begins(lines[i+1])) {
			open = false
			line = rest + "))();\n"
		}
		b.WriteString(line)
	}
	if open || !any {
		return "", errors.New("no constants, or one without an end")
	}
	return b.String(), nil
}

// begins reports whether a line begins a statement or a comment, so that the line before it may end one.
func begins(line string) bool {
	return line == "" || strings.HasPrefix(line, "/*") || strings.HasPrefix(line, "//") || strings.HasPrefix(line, "export ") || strings.HasPrefix(line, "const ")
}

// imports reads from esbuild's account of a build which files each script imports, directly or through others, by paths as
// pages use them.
func imports(metafile string) (map[string][]string, error) {
	var meta struct {
		Outputs map[string]struct {
			Imports []struct {
				Path, Kind string
				External   bool
			}
		}
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return nil, fmt.Errorf("esbuild's account of the build: %w", err)
	}
	all := make(map[string][]string)
	for name := range meta.Outputs {
		seen := map[string]bool{}
		var follow func(name string)
		follow = func(name string) {
			for _, imp := range meta.Outputs[name].Imports {
				if imp.Kind == "import-statement" && !imp.External && !seen[imp.Path] {
					seen[imp.Path] = true
					follow(imp.Path)
				}
			}
		}
		follow(name)
		paths := []string{}
		for _, p := range slices.Sorted(maps.Keys(seen)) {
			paths = append(paths, "/"+path.Base(p))
		}
		all[path.Base(name)] = paths
	}
	return all, nil
}

// licences returns the texts of the licences of everything that is in the bundle.
func licences(packages []npm.Package, store string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("The page contains the following packages.\n")
	for _, p := range packages {
		if strings.HasPrefix(p.Path, "node_modules/@types/") { // no code
			continue
		}
		dir := filepath.Join(store, filepath.FromSlash(p.Path))
		fmt.Fprintf(&b, "\n%s %s (%s)\n%s\n", p.Name(), p.Version, p.Licence, p.URL(npm.Registry))
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(entries, isLicence); i >= 0 {
			text, err := os.ReadFile(filepath.Join(dir, entries[i].Name()))
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&b, "\n%s\n", bytes.TrimSpace(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))))
		}
	}
	return b.Bytes(), nil
}

func isLicence(e fs.DirEntry) bool {
	name := strings.ToLower(e.Name())
	return e.Type().IsRegular() && (strings.HasPrefix(name, "licen") || strings.HasPrefix(name, "copying"))
}
