package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// docs are our own doc comments, by section ("common", "v1", "v2") and key.
type docs struct {
	text map[string]string
	used map[string]bool

	inferred []string // sorted keys of which nobody has seen the schema
}

// inferredNote is the last sentence of what is said of those.
const inferredNote = "Its shape is inferred from descriptions of the protocol and may be wrong."

func loadDocs(path string) (*docs, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	d, err := parseDocs(string(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

func parseDocs(text string) (*docs, error) {
	d := &docs{text: map[string]string{}, used: map[string]bool{}}
	section, key := "", ""
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.TrimSpace(line) == "" || line[0] == '#':
			continue
		case strings.HasPrefix(line, "== "):
			section, key = strings.TrimSpace(line[3:]), ""
		case line[0] == ' ':
			if key == "" {
				return nil, fmt.Errorf("line %d continues nothing", i+1)
			}
			d.text[key] += " " + strings.TrimSpace(line)
		default:
			k, v, ok := strings.Cut(line, ": ")
			if !ok || section == "" {
				return nil, fmt.Errorf("line %d is no entry", i+1)
			}
			key = section + " " + k
			if _, dup := d.text[key]; dup {
				return nil, fmt.Errorf("line %d: second entry for %s", i+1, key)
			}
			d.text[key] = strings.TrimSpace(v)
		}
	}
	return d, nil
}

// get returns the text for key in version, or else the common one.
func (d *docs) get(version, key string) string {
	for _, k := range []string{version + " " + key, "common " + key} {
		if t, ok := d.text[k]; ok {
			d.used[k] = true
			if _, ok := slices.BinarySearch(d.inferred, key); ok {
				t += " " + inferredNote
			}
			return t
		}
	}
	return ""
}

// unused returns the entries nothing asked for.
func (d *docs) unused() []string {
	var out []string
	for k := range d.text {
		if !d.used[k] {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// anyOf links to a type with the article that its name is spoken with.
func anyOf(name string) string {
	if strings.ContainsRune("AEIO", rune(name[0])) || strings.HasPrefix(name, "MCP") {
		return "an [" + name + "]"
	}
	return "a [" + name + "]"
}

// comment wraps text as a Go comment.
func comment(indent, text string) string {
	const width = 80
	var b strings.Builder
	line := indent + "//"
	for _, w := range strings.Fields(text) {
		if len(line)+1+len(w) > width && line != indent+"//" {
			b.WriteString(line + "\n")
			line = indent + "//"
		}
		line += " " + w
	}
	b.WriteString(line + "\n")
	return b.String()
}
