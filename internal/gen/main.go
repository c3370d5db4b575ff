// Command gen writes packages acpv1 and acpv2, and what other packages list of them,
// from the protocol's schemas and the overlays beside them.
//
// Usage, in the module root:
//
//	go run ./internal/gen            generate from schema/ (offline)
//	go run ./internal/gen -check     fail if the generated files are stale
//	go run ./internal/gen sync DIR   bring the structure of the upstream schemas in DIR to schema/
//	go run ./internal/gen behind     compare schema/ with the newest official package, and write nothing
//
// behind asks the npm registry, or the one that npm_config_registry names; with -from it reads a package
// FILE.tgz or a directory instead. Its exit status is 0 if the schemas are equal, or the package is older, 1 if they
// are behind, and 2 if it cannot tell. go run makes 1 of both, so -json has the member state.
//
// What the schema does not say (Go names, files, which members are patches) is
// decided in tables.go; the generator never guesses: what it does not know is
// an error.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goacp/acp/internal/overlay"
)

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	code := 1
	if e := (*exitError)(nil); errors.As(err, &e) {
		code = e.code
	}
	if err != nil {
		if text := err.Error(); text != "" {
			fmt.Fprintln(os.Stderr, "gen:", text)
		}
		os.Exit(code)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("gen", flag.ContinueOnError)
	fs.SetOutput(stderr)
	root := fs.String("root", ".", "module root")
	check := fs.Bool("check", false, "compare instead of writing")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if fs.Arg(0) == "sync" {
		if fs.NArg() != 2 {
			return errors.New("usage: gen sync DIR")
		}
		return syncSchemas(fs.Arg(1), filepath.Join(*root, "schema"), stdout)
	}
	if fs.Arg(0) == "behind" {
		return behind(fs.Args()[1:], filepath.Join(*root, "schema"), stdout, stderr)
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", fs.Arg(0))
	}
	schemas := filepath.Join(*root, "schema")
	files, err := generate(schemas)
	if err != nil {
		return err
	}
	if files[path.Join("schema", sourceFile)], err = currentSource(schemas); err != nil {
		return err
	}
	if *check {
		return compare(*root, files)
	}
	return write(*root, files)
}

// generate returns the content of every generated file by its path in the
// module.
func generate(schemas string) (map[string][]byte, error) {
	dd, err := loadDocs(filepath.Join(schemas, "docs.txt"))
	if err != nil {
		return nil, err
	}
	set, err := overlay.Read(schemas)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	var models []*model
	var errs []error
	for _, v := range []struct {
		name string
		tab  *table
	}{{"v1", tableV1()}, {"v2", tableV2()}} {
		doc, stable, err := documents(set, schemas, v.name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		dd.inferred = set.Inferred(v.name)
		m, err := buildModel(v.name, doc, stable, v.tab, dd)
		if err != nil {
			return nil, err
		}
		models = append(models, m)
		if err := m.emit(files); err != nil {
			return nil, err
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if u := dd.unused(); len(u) > 0 {
		return nil, fmt.Errorf("docs.txt entries never used: %s", strings.Join(u, ", "))
	}
	if err := models[len(models)-1].emitVocabulary(files); err != nil {
		return nil, err
	}
	return files, errors.Join(emitRegistry(models, files), emitMonitored(models, files))
}

// currentSource returns SOURCE as it should be.
func currentSource(schemas string) ([]byte, error) {
	source, err := os.ReadFile(filepath.Join(schemas, sourceFile))
	if err != nil {
		return nil, err
	}
	set, err := overlay.Read(schemas)
	if err != nil {
		return nil, err
	}
	return withOverlays(source, set), nil
}

// documents returns the unstable and the stable schema of a version, overlays applied.
func documents(set *overlay.Set, schemas, version string) (unstable, stable *document, err error) {
	s, u, err := set.Schemas(version)
	if err != nil {
		return nil, nil, err
	}
	if stable, err = parseDocument(s); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", filepath.Join(schemas, version+".json"), err)
	}
	if unstable, err = parseDocument(u); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", filepath.Join(schemas, version+".unstable.json"), err)
	}
	return unstable, stable, nil
}

// generated reports whether the file at path is one of ours.
func generated(path string) bool {
	data, err := os.ReadFile(path)
	return err == nil && bytes.HasPrefix(data, []byte(header))
}

// existing lists the generated files below root.
func existing(root string) ([]string, error) {
	var out []string
	for _, dir := range []string{".", "acpv1", "acpv2", "internal/registry", "conformance"} {
		paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			if generated(p) {
				out = append(out, path.Join(dir, filepath.Base(p)))
			}
		}
	}
	return out, nil
}

func compare(root string, files map[string][]byte) error {
	old, err := existing(root)
	if err != nil {
		return err
	}
	var stale []string
	for _, p := range old {
		if files[p] == nil {
			stale = append(stale, p)
		}
	}
	for p, want := range files {
		got, err := os.ReadFile(filepath.Join(root, p))
		if err != nil || !bytes.Equal(got, want) {
			stale = append(stale, p)
		}
	}
	if len(stale) > 0 {
		slices.Sort(stale)
		return fmt.Errorf("stale, run go generate ./...: %s", strings.Join(stale, " "))
	}
	return nil
}

func write(root string, files map[string][]byte) error {
	old, err := existing(root)
	if err != nil {
		return err
	}
	for _, p := range old {
		if files[p] == nil {
			if err := os.Remove(filepath.Join(root, p)); err != nil {
				return err
			}
		}
	}
	for p, data := range files {
		path := filepath.Join(root, p)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
