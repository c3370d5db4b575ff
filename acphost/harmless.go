package acphost

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/goacp/acp/acpv2"
)

// A Harmless says what a command line needs that does nothing but read.
type Harmless struct {
	// Why says why the line is not harmless, in a few words; "" if it is.
	Why string
	// Programs names the programs that the line runs. A program of the system does what
	// is known of it; a file of the session may do anything.
	Programs []string
	// Git are the directories in which it runs git. Settings of a repository name
	// programs that git runs: the line is harmless only where the caller keeps git
	// from running them.
	Git []string
	// Go says that it runs the go command, which may fetch, and run, another version
	// of itself, and which runs git.
	Go bool
}

// Bounds of what is looked at to see what a line reads.
const (
	maxHarmlessEntries = 50_000 // of directories
	maxHarmlessFiles   = 2000   // that globs stand for
)

// Harmless returns whether a request is to run a command line that does nothing but
// read and print files in some directories, which are absolute: nothing is written,
// sent, started in the background or run that is not itself known to only read, and
// no file that holds keys is read. Links are followed, and globs expanded, on this
// machine: where a directory does not exist here, or [Policy.Resolve] looks elsewhere,
// no line that reads files is harmless. With more than 2,000 files and 50,000 entries of directories a line
// is not harmless. Of the rules only those count that deny or ask about reading a file that the line
// reads: [Policy.Judge] has the others. Without
// [Policy.Commands], and on Windows, nothing is harmless.
func (p *Policy) Harmless(req Request, dirs ...string) Harmless {
	r := &harmlessReader{req: &req, places: &places{policy: p}, entries: maxHarmlessEntries}
	var out Harmless
	l := p.read(&req)
	switch {
	case runtime.GOOS == "windows":
		out.Why = "it may be for another shell"
	case l == nil || l.parsed == nil || !req.runs() || req.commandUnknown() || !filepath.IsAbs(req.Cwd):
		out.Why = "it is not known what would be run"
	case l.parsed.Unsure != "":
		out.Why = l.parsed.Unsure
	case l.parsed.Acts != "":
		out.Why = l.parsed.Acts
	case len(l.parsed.Parts) == 0:
		out.Why = "nothing is run"
	}
	if out.Why != "" {
		return out
	}
	r.line = l.parsed
	r.within(dirs)
	r.obey(p.grown())
	for i := range l.parsed.Parts {
		part := &l.parsed.Parts[i]
		if why := r.part(part, &out); why != "" {
			return Harmless{Why: why}
		}
	}
	return out
}

// A harmlessReader looks at what the parts of a line read.
type harmlessReader struct {
	req     *Request
	line    *CommandLine
	places  *places
	roots   []string // without links
	entries int      // that may still be looked at
	rules   *Policy  // that may deny reading, or ask; nil if none does
}

// within sets the directories in which files may be read.
func (r *harmlessReader) within(dirs []string) {
	for _, d := range dirs {
		real := r.places.follow(cleanPath(d, ""))
		if info, err := os.Stat(filepath.FromSlash(real)); real != "" && err == nil && info.IsDir() {
			r.roots = append(r.roots, real)
		}
	}
}

// obey has rules of a policy count that deny reading, or ask.
func (r *harmlessReader) obey(p *Policy) {
	if p.RestrictsKind(acpv2.ToolKindRead) || p.RestrictsKind(acpv2.ToolKindSearch) {
		r.rules = p
	}
}

// isInside reports whether a path without links is in one of the directories.
func (r *harmlessReader) isInside(real string) bool {
	return slices.ContainsFunc(r.roots, func(root string) bool {
		_, ok := within(filepath.FromSlash(root), filepath.FromSlash(real))
		return ok
	})
}

// part returns why a part is not harmless, or "".
func (r *harmlessReader) part(part *CommandPart, out *Harmless) string {
	for _, set := range part.Sets {
		name, value, _ := strings.Cut(set, "=")
		if !harmlessVariable(name, value) && (len(part.Words) > 0 || !isLocal(name)) {
			return "it sets " + name
		}
	}
	switch {
	case len(part.Writes) > 0:
		return "it writes to a file"
	case len(part.Runs) > 0:
		return "it may run something else"
	}
	for _, w := range part.Reads {
		if why := r.file(part, &CommandFile{CommandWord: w}); why != "" {
			return why
		}
	}
	if len(part.Words) == 0 {
		return ""
	}
	reads := part.Harmless
	if reads == nil {
		return "it is not known that " + part.Words[0].Text + " only reads"
	}
	for i := range reads.Files {
		if why := r.file(part, &reads.Files[i]); why != "" {
			return why
		}
	}
	if program := part.Words[0].Text; !slices.Contains(out.Programs, program) {
		out.Programs = append(out.Programs, program)
	}
	if reads.Settings == "" {
		return ""
	}
	in := reads.In
	if in == "" {
		in = "."
	}
	dirs, why := r.paths(part, in)
	if reads.Settings == "go" {
		out.Go = true
	}
	for _, d := range dirs {
		if !slices.Contains(out.Git, d) {
			out.Git = append(out.Git, d)
		}
	}
	return why
}

// paths returns the absolute paths that a text may be for a part, whose directory may not be the one that it has
// tried to change to.
func (r *harmlessReader) paths(part *CommandPart, text string) (all []string, why string) {
	const elsewhere = "it may read files outside of the session's directories"
	home := homePath(text)
	switch {
	case part.Dir.Open || strings.HasPrefix(home, "~") || strings.Contains(text, "=~") || strings.Contains(text, ":~"):
		return nil, elsewhere
	}
	name := false
	for _, n := range strings.Split(filepath.ToSlash(home), "/") {
		switch {
		case n == ".." && name: // of a link it is another directory
			return nil, elsewhere
		case n != "" && n != "." && n != "..":
			name = true
		}
	}
	if filepath.IsAbs(home) {
		return []string{cleanPath(home, "")}, ""
	}
	all = append(all, cleanPath(home, r.req.Cwd))
	if part.Dir.Text != "" {
		to := *part
		to.Dir = CommandWord{}
		dirs, why := r.paths(&to, part.Dir.Text)
		if why != "" {
			return nil, why
		}
		for _, d := range dirs {
			if d = r.places.follow(d); d == "" {
				return nil, elsewhere
			}
			all = append(all, cleanPath(home, d))
		}
	}
	return all, ""
}

// file returns why a part must not read a file without a question, or "".
func (r *harmlessReader) file(part *CommandPart, f *CommandFile) string {
	if len(r.roots) == 0 || r.places.policy.Resolve != nil {
		return "its files may be on another machine"
	}
	for _, s := range shapesOf(f.CommandWord, r.line.Values, 0) {
		text, known := s.text()
		if f.Plain && !isPlainName(cmp.Or(text, ".")) {
			return "a name of a file may be taken for something else"
		}
		if !known {
			found, why := r.expand(part, f, s)
			if why != "" {
				return why
			}
			for _, path := range found {
				if why := r.path(path, f); why != "" {
					return why
				}
			}
			continue
		}
		if f.Open && f.Options && strings.HasPrefix(text, "-") {
			return "it may give a program an option"
		}
		paths, why := r.paths(part, text)
		if why != "" {
			return why
		}
		for _, path := range paths {
			if why := r.path(path, f); why != "" {
				return why
			}
		}
	}
	return ""
}

// path returns why a file must not be read without a question, or "".
func (r *harmlessReader) path(path string, f *CommandFile) string {
	real := r.places.follow(path)
	if real == "" || !r.isInside(real) {
		return "it reads " + filepath.Base(path) + ", which is outside of the session's directories"
	}
	if !f.Entry && (r.isSecret(path) || r.isSecret(real)) {
		return "it reads " + filepath.Base(path) + ", which may hold keys"
	}
	if !f.Entry && r.forbidden(path) {
		return "it reads " + filepath.Base(path) + ", which a rule is about"
	}
	if !f.Deep || f.Entry && !f.Plain {
		return ""
	}
	return r.walk(real, f)
}

// isSecret reports whether a path has a name, below the directories of the session, that files with keys have.
func (r *harmlessReader) isSecret(p string) bool {
	names := strings.Split(p, "/")
	for _, root := range r.roots {
		if rel, ok := within(filepath.FromSlash(root), filepath.FromSlash(p)); ok {
			names = strings.Split(filepath.ToSlash(rel), "/")
		}
	}
	for i, name := range names {
		last := i == len(names)-1
		end := strings.ToLower(names[len(names)-1]) // also of a submodule, or of a further work tree
		isSettings := strings.EqualFold(name, ".git") && !last && (end == "config" || end == "config.worktree")
		if isSettings || isSecretName(name) && (last || name[0] == '.') {
			return true
		}
	}
	return false
}

// walk looks at all that is below a directory.
func (r *harmlessReader) walk(top string, f *CommandFile) (why string) {
	_ = filepath.WalkDir(filepath.FromSlash(top), func(p string, e fs.DirEntry, err error) error {
		if r.entries--; r.entries < 0 {
			why = "it reads more files than can be looked at"
			return fs.SkipAll
		}
		if err != nil || p == filepath.FromSlash(top) {
			return nil // what cannot be read here, the program cannot read either
		}
		name := e.Name()
		skip := func() error {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		counts := f.Only == nil || slices.ContainsFunc(f.Only, func(pattern string) bool {
			ok, err := path.Match(pattern, name)
			return ok || err != nil
		})
		switch {
		case f.Plain && !isPlainName(name):
			why = "a name of a file may be taken for something else"
		case f.Entry:
			return nil
		case strings.EqualFold(name, ".git"):
			if holdsPassword(filepath.Join(p, "config")) {
				why = "it reads the settings of git, which hold a password"
				break
			}
			return skip()
		case !e.IsDir() && counts && r.forbidden(filepath.ToSlash(p)):
			why = "it reads " + name + ", which a rule is about"
		case (counts && !e.IsDir() || e.IsDir() && name[0] == '.') && isSecretName(name):
			why = "it reads " + name + ", which may hold keys"
		case e.Type()&fs.ModeSymlink != 0 && f.Follow && counts:
			real, err := ResolvePath(p)
			if err != nil {
				return nil // it leads nowhere
			}
			info, err := os.Stat(real)
			real = filepath.ToSlash(real)
			if err == nil && info.IsDir() || !r.isInside(real) || r.isSecret(real) {
				why = "it follows the link " + name
			}
		}
		if why != "" {
			return fs.SkipAll
		}
		return nil
	})
	return why
}

// judgedEntries are the entries that a file counts for which rules are asked about.
const judgedEntries = 10

// forbidden reports whether a rule denies reading or searching a file, or asks.
func (r *harmlessReader) forbidden(path string) bool {
	if r.rules == nil {
		return false
	}
	r.entries -= judgedEntries
	at := &places{policy: r.rules}
	return slices.ContainsFunc([]acpv2.ToolKind{acpv2.ToolKindRead, acpv2.ToolKindSearch}, func(k acpv2.ToolKind) bool {
		v := r.rules.first(&deed{req: &Request{Session: r.req.Session, Kind: string(k), Paths: []string{path}, Cwd: r.req.Cwd}, part: -1, places: at})
		return v.effect == EffectDeny || v.effect == EffectAsk
	})
}

// isPlainName reports whether a name is one word in the input of xargs, and no option.
func isPlainName(name string) bool {
	return name[0] != '-' && !strings.ContainsFunc(name, func(c rune) bool {
		return c <= ' ' || strings.ContainsRune("'\"\\\x7f", c)
	})
}

// maxGitSettings bounds the settings of git that are looked at for passwords.
const maxGitSettings = 64 << 10

// holdsPassword reports whether a file with settings of git may have a password in it.
func holdsPassword(file string) bool {
	info, err := os.Stat(file)
	if err != nil {
		return false
	}
	if info.Size() > maxGitSettings || !info.Mode().IsRegular() {
		return true
	}
	data, err := os.ReadFile(file)
	text := strings.ToLower(string(data))
	for line := range strings.Lines(text) {
		_, rest, is := strings.Cut(line, "://")
		host, _, _ := strings.Cut(rest, "/")
		named := slices.ContainsFunc([]string{"extraheader", "password", "token"}, func(n string) bool { return strings.Contains(line, n) })
		if named || is && strings.Contains(host, "@") && strings.Contains(host, ":") {
			return true
		}
	}
	return err != nil
}

// expand returns the paths that a shape of a word stands for.
func (r *harmlessReader) expand(part *CommandPart, f *CommandFile, s pathShape) (found []string, why string) {
	const unknown = "what it reads is not written out"
	var names []string
	for name := range strings.SplitSeq(s.pattern(), "/") {
		if name == ".." && len(names) > 0 || strings.HasPrefix(name, "~") {
			return nil, unknown
		}
		names = append(names, name)
	}
	if slices.ContainsFunc(s, func(c rune) bool { return c == anyText || c == anyWord || c == anyFound }) {
		return nil, unknown
	}
	literal := slices.IndexFunc(names, func(n string) bool { return strings.ContainsAny(n, `*?[\`) })
	start := strings.Join(names[:literal], "/")
	if literal == 1 && names[0] == "" {
		start = "/"
	}
	dirs, why := r.paths(part, start)
	if f.Plain && start != "" && !isPlainName(start) {
		why = "a name of a file may be taken for something else"
	}
	if why != "" {
		return nil, why
	}
	for _, dir := range dirs {
		list := []string{dir}
		for k, pattern := range names[literal:] {
			var next []string
			for _, d := range list {
				if real := r.places.follow(d); real == "" || !r.isInside(real) {
					return nil, "it reads files outside of the session's directories"
				}
				for _, name := range r.matching(d, pattern) {
					if k == 0 && literal == 0 && f.Options && strings.HasPrefix(name, "-") {
						return nil, "the name of the file " + name + " may be taken for an option"
					}
					if f.Plain && !isPlainName(name) {
						return nil, "a name of a file may be taken for something else"
					}
					next = append(next, d+"/"+name)
				}
			}
			if list = next; r.entries < 0 || len(list) > maxHarmlessFiles {
				return nil, "it reads more files than can be looked at"
			}
		}
		found = append(found, list...)
	}
	return found, ""
}

// matching returns the names in a directory that are like a pattern, or the name that the pattern is.
func (r *harmlessReader) matching(dir, pattern string) (names []string) {
	if pattern == "" || pattern == "." {
		return []string{"."}
	}
	entries, _ := os.ReadDir(filepath.FromSlash(dir))
	r.entries -= len(entries) + 1
	if ok, err := path.Match(pattern, ".."); pattern[0] != '*' && pattern[0] != '?' && (ok || err != nil) {
		names = append(names, "..") // of .* in most shells
	}
	for _, e := range entries {
		if e.Name()[0] == '.' && pattern[0] != '.' && pattern[0] != '\\' {
			continue
		}
		if ok, err := path.Match(pattern, e.Name()); ok || err != nil {
			names = append(names, e.Name())
		}
	}
	return names
}

// pattern returns a shape as a pattern of package path. Text that is not known is any name.
func (s pathShape) pattern() string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case c == oneOfName || c == oneHidden:
			b.WriteByte('?')
		case c < 0:
			b.WriteByte('*')
		case strings.ContainsRune(`*?[\`, c):
			b.WriteByte('\\')
			fallthrough
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}
