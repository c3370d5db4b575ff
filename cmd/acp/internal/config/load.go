package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"
)

// ProjectFile is the name of the file with the settings of a project.
const ProjectFile = ".acp.toml"

// Options say where settings are read from.
type Options struct {
	// Cwd is where the search for the project's file begins; "" means the working directory of the
	// process.
	Cwd string
	// Home is the home directory, if the environment names none.
	Home string
	// Environ is the environment, in the form of [os.Environ]; nil means that of the process.
	Environ []string
	// Flags are settings that were given as flags, by their keys in files. Values have the type of
	// the setting, or are text for it.
	Flags map[string]any
	// File replaces the user's file, and must exist; "" means the file that the variable ACP_CONFIG
	// names, or else the one in the XDG directory, which need not exist.
	File string
}

// Load reads all settings. In rising order they come from built-in defaults, the user's file, the
// project's file, environment variables and flags. If several define a setting the last one counts;
// lists of permission rules are combined. An agent or MCP server that gets another command or URL
// is a new one: nothing of its earlier definition is used.
//
// What a project's file says about programs and permissions has no effect until the user trusts it:
// see [Config.Untrusted].
//
// Mistakes are an [*Error] with the exit status of wrong usage.
func Load(o Options) (*Config, error) {
	c, err := locate(&o)
	if err != nil {
		return nil, err
	}
	l := &loader{config: c, home: homeOf(o.Environ)}
	if l.home == "" {
		l.home = o.Home
	}
	l.defaults()
	required := o.File != ""
	if err := l.file(c.UserFile, required, false); err != nil {
		return nil, err
	}
	if err := l.file(c.ProjectFile, false, true); err != nil {
		return nil, err
	}
	items, problems := environItems(o.Environ)
	if len(problems) > 0 {
		return nil, fail(problems...)
	}
	l.layer(items, o.Cwd)
	if items, problems = flagItems(o.Flags); len(problems) > 0 {
		return nil, fail(problems...)
	}
	l.layer(items, o.Cwd)
	return l.finish()
}

// Locate finds the files of settings without reading them. It returns what [Load] returns, without
// settings, for commands that change files, which may be broken.
func Locate(o Options) (*Config, error) { return locate(&o) }

// locate completes o and finds the files.
func locate(o *Options) (*Config, error) {
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	var err error
	if o.Cwd == "" {
		o.Cwd, err = os.Getwd()
	} else {
		o.Cwd, err = filepath.Abs(o.Cwd)
	}
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	if o.File == "" {
		o.File = lookup(o.Environ, "ACP_CONFIG")
	}
	c := &Config{Dirs: DirsOf(o.Environ, o.Home), Environ: o.Environ}
	switch {
	case o.File != "":
		if c.UserFile = o.File; !filepath.IsAbs(o.File) {
			c.UserFile = filepath.Join(o.Cwd, o.File)
		}
	case c.Dirs.Config != "":
		c.UserFile = filepath.Join(c.Dirs.Config, "config.toml")
	}
	home := homeOf(o.Environ)
	if home == "" {
		home = o.Home
	}
	if c.ProjectFile = FindUp(o.Cwd, home, ProjectFile); c.ProjectFile == c.UserFile {
		c.ProjectFile = ""
	}
	return c, nil
}

// FindUp returns the file with a name that belongs to the project of dir: the nearest one in dir or
// above, but not above the root of the repository or the home directory. For a directory that is in
// neither it looks in dir only, since others may write above it. It returns "" if there is none.
func FindUp(dir, home, name string) string {
	dir = filepath.Clean(dir)
	bounded := false
	for d := dir; ; d = filepath.Dir(d) {
		if isRoot(d, home) {
			bounded = true
			break
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	for d := dir; ; d = filepath.Dir(d) {
		file := filepath.Join(d, name)
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			return file
		}
		if !bounded || isRoot(d, home) || d == filepath.Dir(d) {
			return ""
		}
	}
}

// isRoot reports whether nothing above a directory belongs to its project.
func isRoot(dir, home string) bool {
	if home != "" && dir == filepath.Clean(home) {
		return true
	}
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil
}

// A loader puts layers of settings on top of each other.
type loader struct {
	config *Config
	home   string
	items  []item
}

// defaults is the lowest layer.
func (l *loader) defaults() {
	var items []item
	root().walk(nil, func(p path, n *node) {
		if slices.Contains(p, "NAME") {
			return
		}
		v := zero(n)
		if n.def != "" {
			var err error
			if v, err = n.parse(n.def); err != nil {
				panic("config: default of " + p.String() + ": " + err.Error()) // a mistake in Settings, which tests find
			}
		}
		items = append(items, item{path: p, value: v, origin: origin{name: "default"}})
	})
	l.layer(items, "")
}

// zero returns the zero value of a setting's type.
func zero(n *node) any {
	switch n.kind {
	case kindBool:
		return false
	case kindInt:
		return 0
	case kindStrings:
		return []string(nil)
	}
	v, _, _ := n.convert("") // of a string; there is no duration without a default
	return v
}

// file adds a file. One of a project has effect as far as the user trusts it.
func (l *loader) file(name string, required, project bool) error {
	if name == "" {
		return nil
	}
	data, err := readFile(name)
	if errors.Is(err, fs.ErrNotExist) && !required {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fail(&Problem{Source: name, Err: errors.New("there is no such file")})
	}
	if err != nil {
		return err
	}
	doc, problem := parseDocument(name, data)
	if problem != nil {
		return fail(problem)
	}
	items, problems := doc.items(name)
	if len(problems) > 0 {
		return fail(problems...)
	}
	if project {
		if items, err = l.trusted(name, data, items); err != nil {
			return err
		}
	}
	l.layer(items, filepath.Dir(name))
	return nil
}

// trusted leaves out what has no effect.
func (l *loader) trusted(name string, data []byte, items []item) ([]item, error) {
	ok, err := l.config.Trusts(name, data)
	if err != nil {
		return nil, err
	}
	var kept []item
	var left []string
	for _, i := range items {
		needs := needsTrust(i)
		if i.path.equal(path{"permissions", "policy"}) && ok {
			// The policy came with the project, too, and may change without its file.
			policy := absolute(i.value.(string), filepath.Dir(name), l.home)
			if needs, err = l.policyNeedsTrust(policy); err != nil {
				return nil, err
			}
		} else if ok {
			needs = false
		}
		if !needs {
			kept = append(kept, i)
			continue
		}
		key := i.path[:min(2, len(i.path))].String()
		if !slices.Contains(left, key) {
			left = append(left, key)
		}
	}
	if len(left) > 0 {
		l.config.untrusted = append(l.config.untrusted, untrustedText(name, !ok && l.config.Changed(name), left))
	}
	return kept, nil
}

func (l *loader) policyNeedsTrust(file string) (bool, error) {
	data, err := readFile(file)
	if err != nil {
		return false, nil //nolint:nilerr // reading the policy reports it
	}
	ok, err := l.config.Trusts(file, data)
	return !ok, err
}

// untrustedText returns what users see about a file that they have not trusted, or that has changed
// since.
func untrustedText(file string, changed bool, keys []string) string {
	was := ""
	if changed {
		was = "it has changed since you trusted it; "
	}
	have := "have"
	if len(keys) == 1 {
		have = "has"
	}
	dir := filepath.Dir(file)
	if strings.ContainsAny(dir, " \t\"'$&|;<>()*?[]`\\") && filepath.Separator == '/' {
		dir = "'" + strings.ReplaceAll(dir, "'", `'"'"'`) + "'" // for a shell
	}
	return fmt.Sprintf("%s: %s%s %s no force until you read the file and run: acp config trust %s",
		file, was, strings.Join(keys, ", "), have, dir)
}

// needsTrust reports whether a setting could start programs, send what the user types elsewhere,
// spend money, loosen permissions or keep conversations elsewhere.
func needsTrust(i item) bool {
	switch i.path[0] {
	case "agents", "proxies", "mcp", "model", "providers", "store", "serve":
		return true
	case "agent":
		return i.value != "builtin" // any other name is a program that happens to be installed
	case "permissions":
		return !i.path.equal(path{"permissions", "deny"}) && !(i.path.equal(path{"permissions", "default"}) && i.value == "deny")
	}
	return false
}

// layer puts items on top of those of lower layers. Names of files are relative to dir.
func (l *loader) layer(items []item, dir string) {
	for _, i := range items {
		if len(i.path) == 3 && (i.path[2] == "command" || i.path[2] == "url") {
			l.items = slices.DeleteFunc(l.items, func(old item) bool { return old.path.hasPrefix(i.path[:2]) })
		}
	}
	for _, i := range items {
		n, err := find(i.path)
		if err != nil {
			continue // items were checked
		}
		if s, ok := i.value.(string); ok && s != "" && dir != "" {
			if n.where == "file" || n.where == "program" && strings.ContainsAny(s, separators) {
				i.value = absolute(s, dir, l.home)
			}
		}
		at := slices.IndexFunc(l.items, func(old item) bool { return old.path.equal(i.path) })
		if at < 0 {
			l.items = append(l.items, i)
			continue
		}
		if old := l.items[at]; n.rules && len(old.value.([]string)) > 0 {
			i.value = append(slices.Clone(old.value.([]string)), i.value.([]string)...)
			i.more = append(slices.Clone(old.more), old.origin)
		}
		l.items[at] = i
	}
}

// separators are the characters between the parts of a file's name.
const separators = "/" + string(filepath.Separator)

// absolute returns the file that a name in dir means; ~/ is the home directory.
func absolute(name, dir, home string) string {
	if rest, ok := strings.CutPrefix(filepath.ToSlash(name), "~/"); ok && home != "" {
		return filepath.Join(home, filepath.FromSlash(rest))
	}
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// finish makes the settings from the layers.
func (l *loader) finish() (*Config, error) {
	c := l.config
	c.items = l.items
	sort.SliceStable(c.items, func(i, j int) bool { return slices.Compare(rank(c.items[i].path), rank(c.items[j].path)) < 0 })
	if err := l.check(); err != nil {
		return nil, err
	}
	for _, i := range l.items {
		if err := set(reflect.ValueOf(&c.Settings).Elem(), root(), i.path, i.value); err != nil {
			return nil, fmt.Errorf("settings: %s: %w", i.path, err)
		}
	}
	return c, nil
}

// set sets the part of v at p; n describes v.
func set(v reflect.Value, n *node, p path, value any) error {
	if len(p) == 0 {
		if list, ok := value.([]string); ok {
			value = slices.Clone(list)
		}
		of := reflect.ValueOf(value)
		if !of.IsValid() || of.Type() != v.Type() {
			return fmt.Errorf("%T is not %s", value, n)
		}
		v.Set(of)
		return nil
	}
	switch n.kind {
	case kindTable:
		if i := slices.Index(n.order, p[0]); i >= 0 { // the order of fields
			return set(v.Field(i), n.children[p[0]], p[1:], value)
		}
	case kindNames:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		name, each := reflect.ValueOf(p[0]), reflect.New(v.Type().Elem()).Elem()
		if old := v.MapIndex(name); old.IsValid() {
			each.Set(old)
		}
		if err := set(each, n.each, p[1:], value); err != nil {
			return err
		}
		v.SetMapIndex(name, each)
		return nil
	}
	return fmt.Errorf("%s has no %s", n, p)
}

// rank sorts settings in the order of their declaration, and users' names alphabetically.
func rank(p path) []string {
	out := make([]string, len(p))
	n := root()
	for i, part := range p {
		out[i] = part
		switch {
		case n != nil && n.kind == kindTable:
			out[i] = fmt.Sprintf("%02d", slices.Index(n.order, part))
			n = n.children[part]
		case n != nil:
			n = n.each
		}
	}
	return out
}

// check finds mistakes that concern several settings.
func (l *loader) check() error {
	servers := map[string]map[string]item{}
	for _, i := range l.items {
		if i.path[0] == "mcp" && len(i.path) > 2 {
			if servers[i.path[1]] == nil {
				servers[i.path[1]] = map[string]item{}
			}
			servers[i.path[1]][i.path[2]] = i
		}
	}
	var problems []*Problem
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		has := servers[name]
		text := func(key string) string { s, _ := has[key].value.(string); return s }
		command, url, transport := text("command"), text("url"), text("type")
		var err error
		at := "command"
		switch {
		case command != "" && url != "":
			err = errors.New("a server has a command or a url, not both")
		case command == "" && url == "":
			err, at = errors.New("the server has neither a command nor a url"), ""
		case transport == "stdio" && command == "":
			err, at = errors.New("a server of type stdio has a command"), "type"
		case (transport == "http" || transport == "sse") && url == "":
			err, at = fmt.Errorf("a server of type %s has a url", transport), "type"
		}
		if err == nil {
			continue
		}
		i, ok := has[at]
		if !ok {
			i = has[slices.Min(slices.Collect(maps.Keys(has)))]
		}
		problems = append(problems, &Problem{
			Source: i.origin.name, Line: i.origin.line, Column: i.origin.column, Key: path{"mcp", name}.String(), Err: err,
		})
	}
	return fail(problems...)
}

// Untrusted returns what was left out because the user has not trusted it, one line for each file.
// It is nil if nothing was.
func (c *Config) Untrusted() []string { return slices.Clone(c.untrusted) }
