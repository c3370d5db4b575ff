package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goacp/acp/internal/overlay"
)

// sourceFile says what the schemas and the overlays are.
const sourceFile = "SOURCE"

// withOverlays returns SOURCE with the lines of the overlays that there are.
func withOverlays(source []byte, set *overlay.Set) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(source) {
		if !bytes.Contains(line, []byte(" "+overlay.Dir+"/")) {
			out.Write(line)
		}
	}
	out.WriteString(set.Source())
	return out.Bytes()
}

// sources maps the upstream files to ours.
var sources = []struct{ upstream, ours string }{
	{"v1/schema.json", "v1.json"},
	{"v1/schema.unstable.json", "v1.unstable.json"},
	{"v2/schema.json", "v2.json"},
	{"v2/schema.unstable.json", "v2.unstable.json"},
}

// sentences are the keywords that hold prose. They are not copied: our own
// words are in docs.txt.
var sentences = []string{"title", "description", "$comment", "examples", "x-docs-ignore"}

// syncSchemas copies the structure of the upstream schemas in dir to out and
// reports on w which definitions changed.
func syncSchemas(dir, out string, w io.Writer) error {
	var source bytes.Buffer
	fmt.Fprintf(&source, "version %s\n", upstreamVersion(dir))
	for _, s := range sources {
		raw, err := os.ReadFile(filepath.Join(dir, s.upstream))
		if err != nil {
			return err
		}
		fmt.Fprintf(&source, "sha256 %x %s\n", sha256.Sum256(raw), s.upstream)
		if !json.Valid(raw) {
			return fmt.Errorf("%s is not JSON", s.upstream)
		}
		stripped, err := strip(bytes.TrimSpace(raw))
		if err != nil {
			return fmt.Errorf("%s: %w", s.upstream, err)
		}
		if _, err := parseDocument(stripped); err != nil {
			return fmt.Errorf("%s: %w", s.upstream, err)
		}
		var buf bytes.Buffer
		if err := indent(&buf, stripped); err != nil {
			return err
		}
		path := filepath.Join(out, s.ours)
		old, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		diff, err := diffOf(s.ours, old, buf.Bytes())
		if err != nil {
			return err
		}
		diff.print(w)
		if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
			return err
		}
	}
	set, err := overlay.Read(out)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, sourceFile), append(source.Bytes(), set.Source()...), 0o644)
}

// upstreamVersion reads the version of the npm package that dir belongs to.
func upstreamVersion(dir string) string {
	for _, p := range []string{"package.json", "../package.json"} {
		var pkg struct{ Name, Version string }
		raw, err := os.ReadFile(filepath.Join(dir, p))
		if err == nil && json.Unmarshal(raw, &pkg) == nil && pkg.Version != "" {
			return pkg.Name + " " + pkg.Version
		}
	}
	return "unknown"
}

// strip drops the prose of a schema. It follows the structure of the schema,
// because a property may well be called "title".
func strip(raw json.RawMessage) (json.RawMessage, error) {
	switch raw[0] {
	case '[':
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &items); err != nil {
			return nil, err
		}
		for i := range items {
			var err error
			if items[i], err = strip(items[i]); err != nil {
				return nil, err
			}
		}
		return append(append(json.RawMessage("["), bytes.Join(rawBytes(items), []byte(","))...), ']'), nil
	case '{':
	default:
		return raw, nil
	}
	ms, err := overlay.Members(raw)
	if err != nil {
		return nil, err
	}
	ms = slices.DeleteFunc(ms, func(m overlay.Member) bool { return slices.Contains(sentences, m.Name) })
	for i := range ms {
		switch ms[i].Name {
		case "default", "const", "enum", "discriminator":
			continue
		case "properties", "$defs":
			inner, err := overlay.Members(ms[i].Value)
			if err != nil {
				return nil, err
			}
			for j := range inner {
				if inner[j].Value, err = strip(inner[j].Value); err != nil {
					return nil, err
				}
			}
			ms[i].Value = overlay.Object(inner)
			continue
		}
		if ms[i].Value, err = strip(ms[i].Value); err != nil {
			return nil, err
		}
	}
	return overlay.Object(ms), nil
}

func rawBytes(items []json.RawMessage) [][]byte {
	out := make([][]byte, len(items))
	for i := range items {
		out[i] = items[i]
	}
	return out
}

// A documentDiff says how a schema differs from an older one.
type documentDiff struct {
	File        string   `json:"file"` // ours
	Definitions int      `json:"definitions"`
	Added       []string `json:"added,omitempty"`
	Removed     []string `json:"removed,omitempty"`
	Changed     []change `json:"changed,omitempty"`
	Rest        bool     `json:"rest,omitempty"`    // what is not in definitions differs
	Missing     bool     `json:"missing,omitempty"` // there is no newer one
}

// A change is a definition that has changed, and which of its members, if that says all: +new, -gone, ~changed.
type change struct {
	Name    string `json:"name"`
	Members string `json:"members,omitempty"`
}

func (d *documentDiff) differs() bool {
	return len(d.Added)+len(d.Removed)+len(d.Changed) > 0 || d.Rest || d.Missing
}

// print writes a line for the document, and one for each definition that differs.
func (d *documentDiff) print(w io.Writer) {
	var lines []string
	for _, k := range d.Added {
		lines = append(lines, "+ "+k)
	}
	for _, k := range d.Removed {
		lines = append(lines, "- "+k)
	}
	for _, c := range d.Changed {
		line := "~ " + c.Name
		if c.Members != "" {
			line += ": " + c.Members
		}
		lines = append(lines, line)
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[2:]+a[:1], b[2:]+b[:1]) })
	fmt.Fprintf(w, "%s: %d definitions, %d differ\n", d.File, d.Definitions, len(lines))
	for _, l := range lines {
		fmt.Fprintln(w, "  "+l)
	}
	if d.Rest {
		fmt.Fprintln(w, "  ~ what is not in $defs")
	}
}

// diffOf compares two schemas. An empty one has no definitions.
func diffOf(file string, old, new []byte) (documentDiff, error) {
	d := documentDiff{File: file}
	before, err := definitions(old)
	if err != nil {
		return d, err
	}
	after, err := definitions(new)
	if err != nil {
		return d, err
	}
	d.Definitions = len(after)
	for k, v := range after {
		switch o, ok := before[k]; {
		case !ok:
			d.Added = append(d.Added, k)
		case o != v:
			d.Changed = append(d.Changed, change{k, changedMembers(o, v)})
		}
	}
	for k := range before {
		if _, ok := after[k]; !ok {
			d.Removed = append(d.Removed, k)
		}
	}
	slices.Sort(d.Added)
	slices.Sort(d.Removed)
	slices.SortFunc(d.Changed, func(a, b change) int { return strings.Compare(a.Name, b.Name) })
	if len(old) > 0 && len(new) > 0 {
		d.Rest = rest(old) != rest(new)
	}
	return d, nil
}

// rest returns what a schema has beside its definitions, in compact form.
func rest(data []byte) string {
	var doc map[string]json.RawMessage
	if json.Unmarshal(data, &doc) != nil {
		return ""
	}
	delete(doc, "$defs")
	out, err := json.Marshal(doc)
	if err != nil {
		return ""
	}
	return string(out)
}

// definitions returns each definition of a document in compact form.
func definitions(data []byte) (map[string]string, error) {
	out := map[string]string{}
	if len(data) == 0 {
		return out, nil
	}
	var doc struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	for k, v := range doc.Defs {
		var buf bytes.Buffer
		if err := json.Compact(&buf, v); err != nil {
			return nil, err
		}
		out[k] = buf.String()
	}
	return out, nil
}

func changedMembers(before, after string) string {
	var a, b struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	if json.Unmarshal([]byte(before), &a) != nil || json.Unmarshal([]byte(after), &b) != nil {
		return ""
	}
	var out []string
	for k, v := range b.Properties {
		switch o, ok := a.Properties[k]; {
		case !ok:
			out = append(out, "+"+k)
		case string(o) != string(v):
			out = append(out, "~"+k)
		}
	}
	for k := range a.Properties {
		if _, ok := b.Properties[k]; !ok {
			out = append(out, "-"+k)
		}
	}
	if !slices.Equal(a.Required, b.Required) {
		out = append(out, "required")
	}
	if len(out) == 0 {
		return ""
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
