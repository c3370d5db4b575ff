// Package guide finds what people have written for coding agents: guidance for a project
// (AGENTS.md), skills (SKILL.md) and prompts that are used again.
//
// It reads only. Bounds: 32 KiB of each file, 64 KiB of guidance that a conversation begins
// with, 8 KiB of each file of guidance below the directory, 64 skills and 64 prompts; what is
// beyond them is left out, and the caller learns of files that are. A file of the project that is a link out of its repository is left out, too:
// whoever wrote the repository chose the name, and a model is sent what is read.
package guide

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The bounds.
const (
	MaxFile    = 32 << 10 // bytes
	MaxFiles   = 64 << 10 // bytes of all that Files returns
	MaxBelow   = 8 << 10  // bytes of a file that Below returns
	MaxSkills  = 64
	MaxPrompts = 64
	maxAbout   = 300 // characters of a description
)

// A File is a file of guidance.
type File struct{ Path, Text string }

// A Finder finds files for a directory. Its methods are not safe for concurrent use.
type Finder struct {
	Dir  string
	Home Home
	// Refuse returns why a file must not be read, or "". It is called with the name of the
	// file and where links lead. Nil refuses nothing.
	Refuse func(path, real string) string
	// Left is what was left out of what was looked for, each once: a file, and why.
	Left []Left
}

// A Left is a file that is left out.
type Left struct{ Path, Why string }

// Home are the directories of the user.
type Home struct {
	Dir    string // "" if the user has none
	Config string // of this program; "" likewise
}

// names are those of a file of guidance; the first that can be read counts.
var names = []string{"AGENTS.md", "CLAUDE.md"}

// Files returns the guidance for the directory: that of the user, which is AGENTS.md in the
// directory of this program's settings or in ~/.agents, then that of the project, the
// outermost first: AGENTS.md, or CLAUDE.md where there is none that can be read, up to the
// root of the repository. Of more than [MaxFiles] bytes the outermost of the project are left out.
func (f *Finder) Files() []File {
	var user, all []File
	room := MaxFiles
	for _, dir := range []string{f.Home.Config, under(f.Home.Dir, ".agents")} {
		if file := f.first(dir, names[:1], MaxFile); dir != "" && file != nil {
			user, room = append(user, *file), room-len(file.Text)
			break
		}
	}
	for _, d := range up(f.Dir) {
		file := f.first(d, names, MaxFile)
		switch {
		case file == nil || len(user) > 0 && user[0].Path == file.Path:
		case len(file.Text) > room:
			_ = f.leave(file.Path, "there are more than 64 KiB of guidance")
		default:
			all, room = append(all, *file), room-len(file.Text)
		}
	}
	slices.Reverse(all)
	return append(user, all...)
}

// maxDepth bounds the directories that Below looks at; the innermost count.
const maxDepth = 16

// Below returns the guidance for a file below the directory, the outermost first: that of
// the directories in between, which Files does not return, and [MaxBelow] bytes of each.
func (f *Finder) Below(path string) []File {
	dir := filepath.Clean(f.Dir)
	var all []File
	for d := filepath.Dir(path); len(d) > len(dir) && inside(dir, d) && len(all) < maxDepth; d = filepath.Dir(d) {
		if file := f.first(d, names, MaxBelow); file != nil {
			all = append(all, *file)
		}
	}
	slices.Reverse(all)
	return all
}

// first returns the first of some files in a directory that can be read; nil if none can, or it is empty.
func (f *Finder) first(dir string, names []string, most int) *File {
	for _, name := range names {
		path := filepath.Join(dir, name)
		text, err := f.head(path)
		if err != nil {
			continue
		}
		if text = strings.TrimSpace(text); text == "" {
			return nil
		}
		if len(text) > most {
			text = strings.ToValidUTF8(text[:most], "") + more
		}
		return &File{path, text}
	}
	return nil
}

// under returns the path of a name in a directory of the user; "" if there is none.
func under(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// more ends a text that was cut.
const more = "\n(There is more in the file.)"

// up returns a directory and those above it up to the root of the repository, the
// innermost first. Outside of a repository it is the directory alone, since others may
// write above it.
func up(dir string) []string {
	var all []string
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		all = append(all, d)
		if _, err := os.Stat(filepath.Join(d, ".git")); err == nil {
			return all
		}
		if filepath.Dir(d) == d {
			return all[:1]
		}
	}
}

// errLeft is the error of head for a file that is listed in Left.
var errLeft = errors.New("left out")

// head returns the beginning of a regular text file.
func (f *Finder) head(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if f.Refuse != nil {
		if why := f.Refuse(path, real); why != "" {
			return "", f.leave(path, why)
		}
	}
	tree, rel := filepath.Dir(real), filepath.Base(real) // of the user, who may link what they like
	if inside(f.project(), path) {
		if tree, err = filepath.EvalSymlinks(f.project()); err != nil {
			return "", err
		}
		if !inside(tree, real) {
			return "", f.leave(path, "it is a link out of the project")
		}
		if rel, err = filepath.Rel(tree, real); err != nil {
			return "", err
		}
	}
	// A link that is put there now does not lead out, either.
	root, err := os.OpenRoot(tree)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	info, err := root.Stat(rel)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("not a regular file")
	}
	file, err := root.Open(rel)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
	if err != nil {
		return "", err
	}
	text := strings.ToValidUTF8(string(data[:min(len(data), MaxFile)]), "")
	if len(data) > MaxFile {
		text += more
	}
	return strings.ReplaceAll(text, "\r\n", "\n"), nil
}

// inside reports whether a path is below a directory.
func inside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// project returns the outermost directory whose files are the project's.
func (f *Finder) project() string {
	all := up(f.Dir)
	return all[len(all)-1]
}

// maxLeft bounds the files that are listed as left out.
const maxLeft = 64

// leave lists a file as left out.
func (f *Finder) leave(path, why string) error {
	l := Left{path, why}
	if len(f.Left) < maxLeft && !slices.Contains(f.Left, l) {
		f.Left = append(f.Left, l)
	}
	return errLeft
}

// A Skill is a description of how something is done, which a model reads when it needs
// it (agentskills.io).
type Skill struct {
	Name  string
	About string
	Dir   string // with SKILL.md and what belongs to it
}

// Skills returns the skills for the directory: those of the user, then those of the
// project. Of two with one name that of the user counts: nobody has to trust a project for what it has.
func (f *Finder) Skills() []Skill {
	dir, home := f.Dir, f.Home
	var places []string
	if home.Config != "" {
		places = append(places, filepath.Join(home.Config, "skills"))
	}
	if home.Dir != "" {
		places = append(places, filepath.Join(home.Dir, ".agents", "skills"), filepath.Join(home.Dir, ".claude", "skills"))
	}
	for _, d := range up(dir) {
		for _, name := range []string{".acp", ".agents", ".claude"} {
			places = append(places, filepath.Join(d, name, "skills"))
		}
	}
	var all []Skill
	for _, place := range places {
		entries, err := os.ReadDir(place)
		if err != nil {
			continue
		}
		for _, e := range entries {
			own := filepath.Join(place, e.Name())
			text, err := f.head(filepath.Join(own, "SKILL.md"))
			if err != nil {
				continue
			}
			fields, _ := frontMatter(text)
			s := Skill{Name: fields["name"], About: oneLine(fields["description"]), Dir: own}
			if s.Name == "" {
				s.Name = e.Name()
			}
			if s.About == "" || !plain(s.Name) || slices.ContainsFunc(all, func(o Skill) bool { return o.Name == s.Name }) {
				continue
			}
			if all = append(all, s); len(all) == MaxSkills {
				return all
			}
		}
	}
	return all
}

// A Prompt is a text that the user sends by a command.
type Prompt struct {
	Name  string
	About string
	Hint  string // what may follow the name
	text  string
}

// Prompts returns the prompts for the directory: those of the user, then those of the
// project. Of two with one name that of the user counts: nobody has to trust a project for what it has.
func (f *Finder) Prompts() []Prompt {
	dir, home := f.Dir, f.Home
	var places []string
	if home.Config != "" {
		places = append(places, filepath.Join(home.Config, "prompts"))
	}
	if home.Dir != "" {
		places = append(places, filepath.Join(home.Dir, ".claude", "commands"))
	}
	for _, d := range up(dir) {
		places = append(places, filepath.Join(d, ".acp", "prompts"), filepath.Join(d, ".claude", "commands"))
	}
	var all []Prompt
	for _, place := range places {
		entries, err := os.ReadDir(place)
		if err != nil {
			continue
		}
		for _, e := range entries {
			name, ok := strings.CutSuffix(e.Name(), ".md")
			if !ok || !plain(name) || slices.ContainsFunc(all, func(o Prompt) bool { return o.Name == name }) {
				continue
			}
			text, err := f.head(filepath.Join(place, e.Name()))
			if err != nil || strings.TrimSpace(text) == "" {
				continue
			}
			fields, body := frontMatter(text)
			p := Prompt{Name: name, About: oneLine(fields["description"]), Hint: oneLine(fields["argument-hint"]), text: strings.TrimSpace(body)}
			if p.About == "" {
				first, _, _ := strings.Cut(p.text, "\n")
				p.About = oneLine(strings.TrimLeft(first, "# "))
			}
			if p.Hint == "" && strings.Contains(p.text, "$") {
				p.Hint = "ARGUMENTS"
			}
			if all = append(all, p); len(all) == MaxPrompts {
				return all
			}
		}
	}
	return all
}

// Text returns what is sent: $ARGUMENTS stands for all that was typed after the name, and $1
// to $9 for its words. If the prompt has none of these, it is put at the end.
func (p *Prompt) Text(args string) string {
	args = strings.TrimSpace(args)
	words := strings.Fields(args)
	pairs := []string{"$ARGUMENTS", args}
	used := strings.Contains(p.text, "$ARGUMENTS")
	for i := range 9 {
		name, word := "$"+string(rune('1'+i)), ""
		if i < len(words) {
			word = words[i]
		}
		used = used || strings.Contains(p.text, name)
		pairs = append(pairs, name, word)
	}
	text := strings.NewReplacer(pairs...).Replace(p.text)
	if !used && args != "" {
		text += "\n\n" + args
	}
	return text
}

// frontMatter returns the fields between two lines of dashes at the beginning of a text,
// and what follows. Values are those of one line, with or without quotes, or the lines
// that are indented below.
func frontMatter(text string) (fields map[string]string, rest string) {
	fields = map[string]string{}
	rest, ok := strings.CutPrefix(strings.TrimPrefix(text, "\ufeff"), "---\n")
	if !ok {
		return fields, text
	}
	block, after, ok := strings.Cut(rest, "\n---")
	if !ok {
		return fields, text
	}
	_, after, _ = strings.Cut(after, "\n")
	last := ""
	for line := range strings.Lines(block) {
		line = strings.TrimRight(line, " \t\n")
		if line != strings.TrimLeft(line, " \t") {
			if last != "" {
				fields[last] = strings.TrimSpace(fields[last] + " " + strings.TrimSpace(line))
			}
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		last = strings.TrimSpace(name)
		value = strings.TrimSpace(value)
		if value == ">" || value == "|" || value == ">-" || value == "|-" {
			value = ""
		}
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		fields[last] = value
	}
	return fields, after
}

// plain reports whether a name is one that can be typed after a slash.
func plain(name string) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return false
		}
	}
	return true
}

// oneLine returns a description as one line without control characters.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text)
	if all := []rune(text); len(all) > maxAbout {
		return string(all[:maxAbout]) + "…"
	}
	return text
}
