package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A kind is the type of a setting.
type kind int

const (
	kindTable kind = iota // of settings with known names
	kindNames             // a table of tables or strings, by names of the user's
	kindString
	kindBool
	kindInt
	kindDuration
	kindStrings
)

// A node describes a key.
type node struct {
	kind     kind
	children map[string]*node // of a table
	each     *node            // of a table with users' names
	order    []string         // of children
	enum     []string
	def      string // "" is the zero value
	flag     string
	help     string
	secret   bool // values are not shown
	rules    bool // a list of permission rules
	where    string
}

// root describes all settings.
var root = sync.OnceValue(func() *node { return nodeOf(reflect.TypeFor[Settings](), "") })

// nodeOf returns the description of a field, from its type and its tags.
func nodeOf(t reflect.Type, tag reflect.StructTag) *node {
	n := &node{
		def: tag.Get("default"), flag: tag.Get("flag"), help: tag.Get("help"),
		secret: tag.Get("secret") != "", rules: tag.Get("rules") != "", where: tag.Get("path"),
	}
	if e := tag.Get("enum"); e != "" {
		n.enum = strings.Split(e, ",")
	}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		n.kind = kindDuration
	case t.Kind() == reflect.Struct:
		n.kind, n.children = kindTable, map[string]*node{}
		for f := range t.Fields() {
			key := f.Tag.Get("key")
			n.children[key] = nodeOf(f.Type, f.Tag)
			n.order = append(n.order, key)
		}
	case t.Kind() == reflect.Map:
		n.kind, n.each = kindNames, nodeOf(t.Elem(), "")
		n.each.secret = n.secret
	case t.Kind() == reflect.Slice:
		n.kind = kindStrings
	case t.Kind() == reflect.Bool:
		n.kind = kindBool
	case t.Kind() == reflect.Int:
		n.kind = kindInt
	default:
		n.kind = kindString
	}
	return n
}

// find returns the description of a key, or an error that names a similar key.
func find(p path) (*node, error) {
	n := root()
	for i, part := range p {
		switch n.kind {
		case kindNames:
			if part == "" {
				return nil, errors.New("the name is empty")
			}
			if len(p) > i+1 || n.each.kind == kindTable {
				if err := checkName(p[:i+1]); err != nil {
					return nil, err
				}
			}
			n = n.each
		case kindTable:
			next := n.children[part]
			if next == nil {
				return nil, unknown(p[:i], part, slices.Collect(maps.Keys(n.children)))
			}
			n = next
		default:
			return nil, fmt.Errorf("%s has no parts, it is %s", p[:i], n)
		}
	}
	return n, nil
}

// checkName checks a name of an agent, which must not look like a command line.
func checkName(p path) error {
	name := p[len(p)-1]
	switch {
	case len(p) != 2:
	case p[0] == "agents":
		return CheckAgentName(name)
	case p[0] == "proxies":
		return checkProxyName(name)
	}
	return nil
}

// ReadyProxies are the names of the proxies that are part of this program.
var ReadyProxies = []string{"budget", "context", "policy", "record", "redact"}

// checkProxyName returns why a proxy cannot have a name, or nil.
func checkProxyName(name string) error {
	if slices.Contains(ReadyProxies, name) {
		return fmt.Errorf("the name %q is that of a ready-made proxy", name)
	}
	return checkWord(name)
}

// CheckAgentName returns why an agent cannot have a name, or nil: names with white space or
// separators of paths would be command lines.
func CheckAgentName(name string) error {
	if name == "builtin" {
		return errors.New(`the name "builtin" is that of the built-in agent`)
	}
	return checkWord(name)
}

// checkWord returns why a name would not be read as one, or nil.
func checkWord(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty")
	case strings.HasPrefix(name, "-"):
		return fmt.Errorf("the name %q begins like a flag", name)
	case strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c == 0x7f || strings.ContainsRune(`/\"'`, c) }):
		return fmt.Errorf("the name %q has white space, quotes or separators in it", name)
	}
	return nil
}

func unknown(at path, part string, known []string) error {
	slices.Sort(known)
	where := "there is no such setting"
	if near := Near(part, known); near != "" {
		return fmt.Errorf("%s; did you mean %q?", where, append(slices.Clone(at), near).String())
	}
	return fmt.Errorf("%s; there are %s", where, strings.Join(known, ", "))
}

// String names the type of values, for messages.
func (n *node) String() string {
	switch n.kind {
	case kindTable, kindNames:
		return "a table"
	case kindBool:
		return "true or false"
	case kindInt:
		if n.enum != nil {
			return "one of " + strings.Join(n.enum, ", ")
		}
		return "a whole number"
	case kindDuration:
		return `a duration such as "30s"`
	case kindStrings:
		return "a list of strings"
	}
	if n.enum != nil {
		return "one of " + strings.Join(n.enum, ", ")
	}
	return "a string"
}

// maxDuration bounds time limits: longer ones are mistakes.
const maxDuration = 30 * 24 * time.Hour

// convert converts a value of a file to the type of the setting: string, bool, int, time.Duration
// or []string. at is the index of a list's wrong entry, or -1.
func (n *node) convert(v any) (out any, at int, err error) {
	wrong := func() (any, int, error) { return nil, -1, fmt.Errorf("%sis not %s", n.shown(v), n) }
	switch n.kind {
	case kindString:
		s, ok := v.(string)
		if !ok || n.enum != nil && s != "" && !slices.Contains(n.enum, s) {
			if near := Near(s, n.enum); ok && near != "" {
				return nil, -1, fmt.Errorf("%q is not %s; did you mean %q?", s, n, near)
			}
			return wrong()
		}
		if strings.ContainsRune(s, 0) {
			return nil, -1, errors.New("has a zero byte in it")
		}
		return s, -1, nil
	case kindBool:
		if b, ok := v.(bool); ok {
			return b, -1, nil
		}
	case kindInt:
		var i int64
		switch v := v.(type) {
		case int:
			i = int64(v)
		case int64:
			i = v
		default:
			return wrong()
		}
		if n.enum != nil && !slices.Contains(n.enum, strconv.FormatInt(i, 10)) {
			return wrong()
		}
		return int(i), -1, nil
	case kindDuration:
		d, ok := v.(time.Duration)
		if s, isText := v.(string); isText {
			var perr error
			d, perr = time.ParseDuration(s)
			ok = perr == nil
		}
		if !ok {
			return wrong()
		}
		if d < 0 || d > maxDuration {
			return nil, -1, fmt.Errorf("is not between 0 and %s", duration(maxDuration))
		}
		return d, -1, nil
	case kindStrings:
		return n.convertList(v)
	}
	return wrong()
}

// shown returns a wrong value and a space, for a message. It is "" for texts of any kind, which may be secret, and for
// lists and tables.
func (n *node) shown(v any) string {
	if n.kind == kindString && n.enum == nil {
		return ""
	}
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("%q ", clip(v))
	case int, int64:
		return fmt.Sprintf("%d ", v)
	}
	return ""
}

// convertList converts the entries of a list.
func (n *node) convertList(v any) (any, int, error) {
	list, ok := v.([]string)
	if anys, isAny := v.([]any); isAny {
		ok = true
		for i, e := range anys {
			s, isText := e.(string)
			if !isText {
				return nil, i, fmt.Errorf("is not %s", n)
			}
			list = append(list, s)
		}
	}
	if !ok {
		return nil, -1, fmt.Errorf("is not %s", n)
	}
	for i, s := range list {
		if strings.ContainsRune(s, 0) {
			return nil, i, errors.New("has a zero byte in it")
		}
		if n.rules {
			if _, err := ParseRule(s); err != nil {
				return nil, i, err
			}
		}
	}
	return slices.Clone(list), -1, nil
}

// parse reads a value from text, as environment variables and commands have it.
func (n *node) parse(s string) (any, error) {
	var v any = s
	switch n.kind {
	case kindBool:
		b, err := strconv.ParseBool(s)
		if err != nil {
			return nil, fmt.Errorf("%q is not %s", s, n)
		}
		v = b
	case kindInt:
		i, err := strconv.Atoi(s)
		if err != nil {
			return nil, fmt.Errorf("%q is not %s", s, n)
		}
		v = i
	case kindStrings:
		list, err := parseList(s)
		if err != nil {
			return nil, err
		}
		v = list
	case kindTable, kindNames:
		return nil, errors.New("is a table; set what is in it")
	}
	out, _, err := n.convert(v)
	return out, err
}

// A Setting describes one key, for documentation.
type Setting struct {
	Key     string   // with NAME where the user gives a name
	Type    string   // for people
	Values  []string // that are allowed, if these are few
	Default string   // as in files; "" if there is no default
	Help    string
	Flag    string // that sets the same, with dashes, or ""
	Env     string // variable that sets the same, or ""
}

// Known returns the descriptions of all settings, in the order of [Settings].
func Known() []Setting {
	var out []Setting
	root().walk(nil, func(p path, n *node) {
		s := Setting{Key: p.String(), Type: n.String(), Values: n.enum, Default: n.def, Help: n.help}
		if n.flag != "" {
			s.Flag = "--" + n.flag
		}
		if !slices.Contains(p, "NAME") {
			s.Env = variableOf(p)
		}
		out = append(out, s)
	})
	return out
}

// walk visits all settings that have a value.
func (n *node) walk(p path, visit func(path, *node)) {
	switch n.kind {
	case kindTable:
		for _, key := range n.order {
			n.children[key].walk(append(slices.Clone(p), key), visit)
		}
	case kindNames:
		n.each.walk(append(slices.Clone(p), "NAME"), visit)
	default:
		visit(p, n)
	}
}
