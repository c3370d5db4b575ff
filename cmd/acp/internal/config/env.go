package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// variableOf returns the environment variable that sets the same as a key.
func variableOf(p path) string {
	return "ACP_" + strings.ToUpper(strings.Join(p, "_"))
}

// environItems reads settings from the environment. An empty variable counts as missing. A variable
// that begins like those of a table and is not known is a mistake; other variables with ACP_ belong
// to other programs.
func environItems(environ []string) (items []item, problems []*Problem) {
	known := map[string]path{}
	var tables []string
	root().walk(nil, func(p path, _ *node) {
		switch {
		case slices.Contains(p, "NAME"):
		case len(p) > 1:
			tables = append(tables, variableOf(p[:1])+"_")
			fallthrough
		default:
			known[variableOf(p)] = p
		}
	})
	values := map[string]string{}
	for _, kv := range environ {
		if name, value, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "ACP_") {
			values[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		p, ok := known[name]
		switch {
		case values[name] == "":
			continue
		case !ok && slices.ContainsFunc(tables, func(t string) bool { return strings.HasPrefix(name, t) }):
			err := fmt.Errorf("there is no such setting")
			if near := Near(name, slices.Collect(maps.Keys(known))); near != "" {
				err = fmt.Errorf("there is no such setting; did you mean %s?", near)
			}
			problems = append(problems, &Problem{Source: name, Err: err})
			continue
		case !ok:
			continue
		}
		n, err := find(p)
		var v any
		if err == nil {
			v, err = n.parse(values[name])
		}
		if err != nil {
			problems = append(problems, &Problem{Source: name, Key: p.String(), Err: err})
			continue
		}
		items = append(items, item{path: p, value: v, origin: origin{name: name}})
	}
	return items, problems
}

// parseList reads a list from text: an array as in files, or one entry per line.
func parseList(s string) ([]string, error) {
	if strings.HasPrefix(strings.TrimSpace(s), "[") {
		var v struct{ List []string }
		if err := toml.Unmarshal([]byte("List = "+s+"\n"), &v); err != nil {
			return nil, fmt.Errorf("is not a list as in files: %s", oneLine(strings.TrimPrefix(err.Error(), "toml: ")))
		}
		return v.List, nil
	}
	list := []string{}
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list, nil
}

// flagItems checks settings that were given as flags.
func flagItems(flags map[string]any) (items []item, problems []*Problem) {
	for _, key := range slices.Sorted(maps.Keys(flags)) {
		p, err := parseKey(key)
		name := "--" + key
		var v any
		if err == nil {
			var n *node
			if n, err = find(p); err == nil {
				if n.flag != "" {
					name = "--" + n.flag
				}
				if s, ok := flags[key].(string); ok && n.kind != kindString {
					v, err = n.parse(s)
				} else {
					v, _, err = n.convert(flags[key])
				}
			}
		}
		if err != nil {
			problems = append(problems, &Problem{Source: name, Err: err})
			continue
		}
		items = append(items, item{path: p, value: v, origin: origin{name: name}})
	}
	return items, problems
}
