package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goacp/acp/internal/overlay"
)

// An exitError is an error with another exit status than 1. Its text may be empty.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// What gen behind finds, and its exit statuses.
const (
	stateEqual  = "equal"  // 0
	stateOlder  = "older"  // 0: the newest is older than ours
	stateBehind = "behind" // 1

	exitBehind     = 1
	exitCannotTell = 2
)

// A comparison is what gen behind prints as JSON.
type comparison struct {
	State     string         `json:"state"`
	Package   string         `json:"package,omitempty"`
	Version   string         `json:"version,omitempty"` // of the package
	Ours      string         `json:"ours,omitempty"`    // the version that our schemas are of
	Documents []documentDiff `json:"documents"`
	// NewlyStable has the definitions and members that only our unstable schema has, but the stable one
	// of the package, by version of the protocol.
	NewlyStable map[string][]string `json:"newlyStable,omitempty"`
	// Obsolete has the entries of our overlays that the package has as they are; Contradicted those that it has
	// otherwise, or that do not fit it.
	Obsolete     []string       `json:"obsolete,omitempty"`
	Contradicted []contradicted `json:"contradicted,omitempty"`
}

// A contradicted entry of an overlay.
type contradicted struct {
	Entry string `json:"entry"`
	Why   string `json:"why"`
}

// behind compares our schemas with those of the newest official package. It writes nothing but the report.
func behind(args []string, schemas string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("gen behind", flag.ContinueOnError)
	fs.SetOutput(stderr)
	from := fs.String("from", "", "compare with the package `FILE.tgz`, or a directory, not with the newest")
	asJSON := fs.Bool("json", false, "print one JSON object")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return &exitError{exitCannotTell, err}
	}
	if fs.NArg() > 0 {
		return &exitError{exitCannotTell, errors.New("usage: gen behind [-from FILE.tgz|DIR] [-json]")}
	}
	c, err := compareWith(*from, schemas)
	if err == nil && *asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = e.Encode(c)
	} else if err == nil {
		err = c.print(stdout)
	}
	switch {
	case err != nil:
		return &exitError{exitCannotTell, fmt.Errorf("cannot tell whether the schemas are the newest: %w", err)}
	case c.State == stateBehind:
		return &exitError{exitBehind, nil}
	}
	return nil
}

// compareWith compares the schemas in a directory with those of a release: the one at from, or the newest.
func compareWith(from, schemas string) (*comparison, error) {
	var r *release
	var err error
	if from != "" {
		r, err = readPath(from)
	} else {
		r, err = fetchNewest(context.Background())
	}
	if err != nil {
		return nil, err
	}
	if len(r.schemas) == 0 {
		return nil, errors.New("the package has no schemas: there is no schema/v?/*.json in it")
	}
	ours, err := sourceVersion(schemas)
	if err != nil {
		return nil, err
	}
	c := &comparison{State: stateEqual, Package: r.name, Version: r.version, Ours: ours, Documents: []documentDiff{}}
	if r.version != "" && ours != "" && compareVersions(r.version, ours) < 0 {
		c.State = stateOlder
		return c, nil
	}
	if err := c.compare(r, schemas); err != nil {
		return nil, err
	}
	if err := c.compareOverlays(r, schemas); err != nil {
		return nil, err
	}
	if len(c.Obsolete)+len(c.Contradicted) > 0 {
		c.State = stateBehind
	}
	if slices.ContainsFunc(c.Documents, func(d documentDiff) bool { return d.differs() }) {
		c.State = stateBehind
	}
	return c, nil
}

// sourceVersion returns the version of the package that our schemas were made from, or "" if SOURCE does not say.
func sourceVersion(schemas string) (string, error) {
	data, err := os.ReadFile(filepath.Join(schemas, "SOURCE"))
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(data), "\n")
	name, ok := strings.CutPrefix(line, "version ")
	if !ok {
		return "", errors.New("SOURCE does not begin with the version of the package")
	}
	if at := strings.LastIndexByte(name, ' '); at >= 0 {
		return name[at+1:], nil
	}
	return "", nil
}

// compare compares each document, those that only one side has included.
func (c *comparison) compare(r *release, schemas string) error {
	ours := map[string]string{} // name of our file by path in the package
	for _, s := range sources {
		ours[s.upstream] = s.ours
	}
	for name := range r.schemas {
		if ours[name] == "" {
			ours[name] = ""
		}
	}
	c.NewlyStable = map[string][]string{}
	for _, upstream := range slices.Sorted(maps.Keys(ours)) {
		var before []byte
		if name := ours[upstream]; name != "" {
			data, err := os.ReadFile(filepath.Join(schemas, name))
			if err != nil {
				return err
			}
			before = data
		}
		after, err := structureOf(r.schemas[upstream])
		if err != nil {
			return fmt.Errorf("%s: %w", upstream, err)
		}
		d, err := diffOf(cmp.Or(ours[upstream], upstream), before, after)
		if err != nil {
			return fmt.Errorf("%s: %w", upstream, err)
		}
		d.Missing = r.schemas[upstream] == nil
		c.Documents = append(c.Documents, d)
		version, file, _ := strings.Cut(upstream, "/")
		if file != "schema.json" || ours[upstream] == "" {
			continue
		}
		unstable, err := os.ReadFile(filepath.Join(schemas, version+".unstable.json"))
		if err != nil {
			return err
		}
		promoted, err := newlyStable(before, unstable, after)
		if err != nil {
			return err
		}
		if len(promoted) > 0 {
			c.NewlyStable[version] = promoted
		}
	}
	return nil
}

// compareOverlays finds the entries of our overlays that the package makes needless or wrong.
func (c *comparison) compareOverlays(r *release, schemas string) error {
	set, err := overlay.Read(schemas)
	if err != nil {
		return err
	}
	for _, version := range []string{"v1", "v2"} {
		var docs [2][]byte
		for i, file := range []string{"schema.json", "schema.unstable.json"} {
			if docs[i], err = structureOf(r.schemas[version+"/"+file]); err != nil {
				return fmt.Errorf("%s/%s: %w", version, file, err)
			}
		}
		if docs[0] == nil || docs[1] == nil {
			continue // which compare says
		}
		entries, err := set.Against(version, docs[0], docs[1])
		if err != nil {
			return fmt.Errorf("%s: %w", version, err)
		}
		for _, e := range entries {
			if e.Obsolete() {
				c.Obsolete = append(c.Obsolete, e.Entry)
			} else {
				c.Contradicted = append(c.Contradicted, contradicted{e.Entry, e.Err.Error()})
			}
		}
	}
	return nil
}

// structureOf returns a schema of the package as gen sync would keep it, or nil if there is none.
func structureOf(raw []byte) ([]byte, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil, nil
	}
	if !json.Valid(raw) {
		return nil, errors.New("it is not JSON")
	}
	return strip(raw)
}

// newlyStable returns which definitions and members are in the stable schema after, and before in the unstable
// one only.
func newlyStable(before, unstable, after []byte) ([]string, error) {
	var names [3]map[string]bool
	for i, data := range [][]byte{before, unstable, after} {
		defs, err := definitions(data)
		if err != nil {
			return nil, err
		}
		names[i] = map[string]bool{}
		for def, text := range defs {
			names[i][def] = true
			var d struct{ Properties map[string]json.RawMessage }
			_ = json.Unmarshal([]byte(text), &d) // a definition may be true
			for p := range d.Properties {
				names[i][def+"."+p] = true
			}
		}
	}
	var out []string
	for name := range names[2] {
		def, _, isMember := strings.Cut(name, ".")
		if names[0][name] || !names[1][name] || isMember && !names[0][def] {
			continue // it was stable, it is new, or its definition says it all
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out, nil
}

// print writes the comparison for people.
func (c *comparison) print(w io.Writer) error {
	var b strings.Builder
	name := strings.TrimSpace(cmp.Or(c.Package, "the directory") + " " + c.Version)
	with := cmp.Or(c.Ours, "an unknown version")
	if c.State == stateOlder {
		fmt.Fprintf(&b, "%s is older than %s, which the schemas are of\n", name, with)
		_, err := io.WriteString(w, b.String())
		return err
	}
	fmt.Fprintf(&b, "%s; the schemas are of %s\n", name, with)
	for _, d := range c.Documents {
		d.print(&b)
	}
	for _, v := range slices.Sorted(maps.Keys(c.NewlyStable)) {
		fmt.Fprintf(&b, "newly stable in %s: %s\n", v, strings.Join(c.NewlyStable[v], " "))
	}
	for _, e := range c.Obsolete {
		fmt.Fprintf(&b, "obsolete: %s\n", e)
	}
	for _, e := range c.Contradicted {
		fmt.Fprintf(&b, "contradicted: %s: %s\n", e.Entry, e.Why)
	}
	if c.State == stateBehind {
		b.WriteString("The schemas are behind: run go run ./internal/gen sync DIR on the directory schema of the package.\n")
	} else {
		b.WriteString("The schemas are the newest.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
