package config

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// Masked replaces values that are not shown.
const Masked = "********"

// A Value is a setting in force.
type Value struct {
	Key string `json:"key"` // as in files
	// Value is a string, bool, int or []string. Durations are strings; secrets are
	// [Masked].
	Value  any    `json:"value"`
	Origin string `json:"origin"` // "default", file:line, a variable or a flag; several with commas
}

// Text returns the value as it is written in files.
func (v Value) Text() string { return format(v.Value) }

// format writes a value as TOML.
func format(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case time.Duration:
		return quote(duration(v))
	case []string:
		parts := make([]string, len(v))
		for i, s := range v {
			parts[i] = quote(s)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]string:
		parts := make([]string, 0, len(v))
		for k, s := range v {
			parts = append(parts, path{k}.String()+" = "+quote(s))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprint(v)
}

// duration writes a duration without the zeros at its end: 1m, not 1m0s.
func duration(d time.Duration) string {
	s := d.String()
	if rest, ok := strings.CutSuffix(s, "m0s"); ok {
		s = rest + "m"
	}
	if rest, ok := strings.CutSuffix(s, "h0m"); ok {
		s = rest + "h"
	}
	return s
}

// quote writes a string as TOML, on one line and in visible characters.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case !strconv.IsPrint(c) && c > 0xffff:
			fmt.Fprintf(&b, `\U%08X`, c)
		case !strconv.IsPrint(c):
			fmt.Fprintf(&b, `\u%04X`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Values returns every setting in force with its origin, in the order of [Settings].
func (c *Config) Values() []Value {
	out := make([]Value, len(c.items))
	for i, it := range c.items {
		out[i] = it.shown()
	}
	return out
}

// Get returns the settings at a key or below it. If there is no such key, the error names a similar
// one and has the exit status of wrong usage.
func (c *Config) Get(key string) ([]Value, error) {
	p, err := parseKey(key)
	if err == nil {
		_, err = find(p)
	}
	if err != nil {
		return nil, exitcode.Errorf(exitcode.Usage, "key %q: %w", key, err)
	}
	var out []Value
	for _, it := range c.items {
		if it.path.hasPrefix(p) {
			out = append(out, it.shown())
		}
	}
	return out, nil
}

// FromProject reports whether anything at or below a key is from the project's file.
func (c *Config) FromProject(key ...string) bool {
	return c.ProjectFile != "" && slices.ContainsFunc(c.items, func(it item) bool {
		return it.path.hasPrefix(key) && it.origin.name == c.ProjectFile
	})
}

// Written returns the settings in force that a file sets, as they are written there: also what is not shown
// of others, because it may be a secret of the user. A project's file has none of those, and is to be read
// before it is trusted.
func (c *Config) Written(file string) []Value {
	var out []Value
	for _, it := range c.items {
		if v := it.shown(); strings.Contains(v.Origin, file+":") {
			if text, ok := it.value.(string); ok {
				v.Value = text
			}
			out = append(out, v)
		}
	}
	return out
}

// shown returns a value in the form in which people see it: without secrets.
func (i item) shown() Value {
	v := Value{Key: i.path.String(), Value: i.value}
	var origins []string
	for _, o := range append(slices.Clone(i.more), i.origin) {
		if o.name != "default" || len(i.more) == 0 {
			origins = append(origins, o.String())
		}
	}
	v.Origin = strings.Join(origins, ", ")
	n, err := find(i.path)
	switch x := i.value.(type) {
	case string:
		if err == nil && n.secret && x != "" {
			v.Value = Masked
		} else if i.path[len(i.path)-1] == "url" {
			v.Value = MaskURL(x)
		}
	case time.Duration:
		v.Value = duration(x)
	case []string:
		if x == nil {
			v.Value = []string{}
		}
	}
	return v
}

// KeyOf returns a key as it is written in files, of its parts.
func KeyOf(parts ...string) string { return path(parts).String() }

// MaskURL removes user names, passwords and the values of parameters from a URL.
func MaskURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return Masked
	}
	if u.User != nil {
		u.User = url.User(Masked)
	}
	if u.RawQuery != "" {
		q := u.Query()
		for k := range q {
			q[k] = []string{Masked}
		}
		u.RawQuery = q.Encode()
	}
	return strings.ReplaceAll(u.String(), url.QueryEscape(Masked), Masked)
}
