package shellline

import (
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/goacp/acp/acphost"
)

// maxThrough bounds the runners that run each other.
const maxThrough = 4

// optionsOf returns the words of a command that a wildcard does not mean: those of the program itself and, of one
// that runs another program with its words, those of that.
func optionsOf(words []word, depth int) (found []acphost.CommandOption) {
	name := tableName(base(words[0].Text))
	t := toolOf()[name]
	if t != nil {
		found = t.find(words)
	}
	for _, more := range moreOf()[name] {
		found = append(found, more.find(words)...)
	}
	if t == nil && wrapperOf()[name] == nil && builtins()[name] == nil && !bourne()[name] && foreignOf()[name] == nil {
		found = append(found, suspect(name, words)...)
	}
	if strings.HasPrefix(name, "python") || strings.HasPrefix(name, "pypy") {
		found = append(found, pythonOptions(words)...)
	}
	if responds()[name] {
		for i, w := range words[1:] {
			if strings.HasPrefix(w.Text, "@") || strings.HasPrefix(w.Text, "-@") {
				found = append(found, acphost.CommandOption{Word: i + 1, Name: "@", Does: doesFile})
			}
		}
	}
	if depth < maxThrough {
		at, inner := through(name, words)
		if len(inner) > 0 {
			for _, o := range optionsOf(inner, depth+1) {
				o.Word += at
				found = append(found, o)
			}
		}
	}
	return found
}

// doesFile is what a file of options does, for messages.
const doesFile = "reads options from a file"

// respondNames are programs that read options from a file that is named with @.
const respondNames = `gcc g++ cc c++ clang clang++ ld ar nm ranlib objdump objcopy strip readelf size strings addr2line as javac java jar javadoc jlink jpackage jdeps jmod jdb
	kotlinc scalac rustc rustdoc tsc pytest mypy pylint flake8 black isort coverage cl link csc fsc msbuild dotnet clang-tidy clang-format protoc swiftc
	gfortran dmd ldc2 ghc ocamlc ocamlopt gpg-wks-client exiftool rubocop rspec lld ld.lld wasm-ld emcc nvcc`

var responds = setOf(respondNames)

// suspects are how parts of the names of options begin that run or load something in most programs.
var suspects = sync.OnceValue(func() []string {
	return strings.Fields(`config plugin program command cmd exec script require import bootstrap load preload hook
		eval shell pager editor wrapper launcher interpreter`)
})

// outlets are parts of the names of options whose value is a file to write in most programs, if it is a path.
var outlets = setOf(`o out output outfile outdir outputfile outputdir dest destdir destination log logfile logdir save
	dump export record`)

// suspect returns the options of a program that no table has which a wildcard does not mean: those whose names
// say that they run, load or write something, and those with the path of a file that is elsewhere.
func suspect(program string, words []word) (found []acphost.CommandOption) {
	for i, w := range words[1:] {
		text := w.Text
		if text == "--" {
			break
		}
		if len(text) < 2 || text[0] != '-' {
			continue
		}
		name, value, joined := strings.Cut(strings.TrimLeft(text, "-"), "=")
		dashes := len(text) - len(strings.TrimLeft(text, "-"))
		if strings.HasPrefix(name, "no-") {
			continue
		}
		if !joined && i+2 < len(words) && !words[i+2].Open {
			value = words[i+2].Text
		}
		letters := dashes == 1 && len(name) < 4 && name != "out" && (name != "o" || known()[program])
		parts, does := segments(name), ""
		switch {
		case !letters && slices.ContainsFunc(parts, func(s string) bool {
			return slices.ContainsFunc(suspects(), func(p string) bool { return strings.HasPrefix(s, p) })
		}):
			does = doesRun
		case !letters && isFile(value) && slices.ContainsFunc(parts, func(s string) bool { return outlets()[s] }):
			does = doesWrite
		case !letters && joined && isElsewhere(value):
			does = doesMove
		}
		if does != "" {
			found = append(found, acphost.CommandOption{Word: i + 1, Name: text[:dashes+len(name)], Does: does})
		}
	}
	return found
}

// isFile reports whether a value is written as files are: with a directory, or with the end of a name.
func isFile(value string) bool {
	end := path.Ext(value)
	return value != "/dev/null" && value != "" && value[0] != '-' && !strings.Contains(value, "://") &&
		(strings.Contains(value, "/") || len(end) > 1 && len(end) < 7 && len(end) < len(value))
}

// segments returns the parts of a name such as --set-upFiles: set, up, files.
func segments(name string) (parts []string) {
	var part strings.Builder
	for _, c := range name {
		letter := unicode.IsLetter(c) || unicode.IsDigit(c)
		if !letter || unicode.IsUpper(c) {
			parts, part = append(parts, part.String()), strings.Builder{}
		}
		if letter {
			part.WriteRune(unicode.ToLower(c))
		}
	}
	return append(parts, part.String())
}

// isElsewhere reports whether a value is a path outside of the directory.
func isElsewhere(value string) bool {
	return value != "/dev/null" && (strings.HasPrefix(value, "/") || strings.HasPrefix(value, "~") || value == ".." || strings.HasPrefix(value, "../") || strings.Contains(value, "/../"))
}

// A passage is a program that runs another one with its words.
type passage struct {
	names  string
	source string
	words  string // first operands after which the program follows; "" if it is the first operand itself
	direct bool   // the first operand may be the program as well, if a table has it
	values string // options before it with a value
	after  string // the program that gets what follows --
	as     string // the program that words stands for
}

var passages = []passage{
	{names: "docker podman nerdctl", source: "https://docs.docker.com/reference/cli/docker/compose/", words: "compose", values: "--config -H --host --context -c -l --log-level", as: "docker-compose"},
	{names: "npx bunx pnpx uvx", source: "https://docs.npmjs.com/cli/commands/npx, https://docs.astral.sh/uv/reference/cli/#uv-tool-run", values: "-p --package -c --call --from --with -w --workspace --python --cache --registry --index-url -i"},
	{names: "pipx", source: "https://pipx.pypa.io/stable/reference/cli/", words: "run", values: "--spec --python --index-url"},
	{names: "npm", source: "https://docs.npmjs.com/cli/commands/npm-exec, npm-run", words: "exec x", values: "-p --package -w --workspace --prefix -C", after: "jest"},
	{names: "pnpm", source: "https://pnpm.io/cli/exec, https://pnpm.io/cli/run", words: "exec x dlx run", direct: true, values: "--filter -F -C --dir --prefix -w --package", after: "jest"},
	{names: "yarn", source: "https://yarnpkg.com/cli/run", words: "exec dlx run x", direct: true, values: "--cwd -p --package", after: "jest"},
	{names: "bun", source: "https://bun.com/docs/cli/run", words: "x run", direct: true, values: "--cwd --filter"},
	{names: "uv rye pdm", source: "https://docs.astral.sh/uv/reference/cli/#uv-run", words: "run x exec", values: "--with --with-editable --with-requirements --python -p --extra --group --package --env-file --directory --project -C --index-url --index"},
	{names: "poetry", source: "https://python-poetry.org/docs/cli/#run", words: "run", values: "-C --directory -P --project"},
	{names: "pipenv hatch", source: "https://hatch.pypa.io/latest/cli/reference/", words: "run test", values: "-e --env -p --project"},
	{names: "conda mamba micromamba", source: "https://docs.conda.io/projects/conda/en/latest/commands/run.html", words: "run", values: "-n --name -p --prefix --cwd"},
	{names: "bundle", source: "https://bundler.io/man/bundle-exec.1.html", words: "exec", values: "--gemfile"},
	{names: "tox nox", source: "https://tox.wiki/en/latest/config.html#substitutions-for-positional-arguments-in-commands", words: "exec", values: "-e -c -x --workdir", after: "pytest"},
	{names: "cmake", source: "https://cmake.org/cmake/help/latest/manual/cmake.1.html#build-a-project", words: "-", after: "make"},
	{names: "turbo lerna nx", source: "https://turbo.build/repo/docs/reference/run", words: "-", after: "jest"},
	{names: "composer", source: "https://getcomposer.org/doc/03-cli.md#exec", words: "exec", values: "-d --working-dir", after: "phpunit"},
	{names: "mise asdf", source: "https://mise.jdx.dev/cli/exec.html", words: "exec x", values: "-C --cd -j"},
	{names: "corepack", source: "https://github.com/nodejs/corepack", values: ""},
	{names: "dotnet", source: "https://learn.microsoft.com/dotnet/core/tools/dotnet-exec", words: "-", after: "jest"},
	{names: "gradle gradlew mvn", source: "https://docs.gradle.org", words: "-"},
}

var passageOf = byName(passages, func(p *passage) string { return p.names })

// pythonOptions returns the options of Python that import a module, or write elsewhere: the category of a warning is
// imported, and -X says where what is compiled is kept.
func pythonOptions(words []word) (found []acphost.CommandOption) {
	for i := 1; i < len(words) && len(words[i].Text) > 1 && words[i].Text[0] == '-'; i++ {
		o, at := words[i].Text, i
		if o == "-m" || o == "-c" || strings.HasPrefix(o, "--") {
			break
		}
		j := strings.IndexAny(o, "WX")
		if j < 0 {
			continue
		}
		value := o[j+1:]
		if value == "" && i+1 < len(words) {
			i++
			value = words[i].Text
		}
		fields := strings.Split(value, ":")
		switch {
		case o[j] == 'W' && len(fields) > 2 && strings.Contains(fields[2], "."):
			found = append(found, acphost.CommandOption{Word: at, Name: o[:j+1], Does: doesRun})
		case o[j] == 'X' && (strings.HasPrefix(value, "pycache_prefix=") || strings.HasPrefix(value, "presite=")):
			found = append(found, acphost.CommandOption{Word: at, Name: o[:j+1], Does: doesWrite})
		}
	}
	return found
}

// through returns the command that a program runs with its words, and at which word it begins.
func through(name string, words []word) (at int, inner []word) {
	if strings.HasPrefix(name, "python") || strings.HasPrefix(name, "pypy") {
		if i := slices.IndexFunc(words, func(w word) bool { return w.Text == "-m" }); i > 0 && i+1 < len(words) {
			return i + 1, words[i+1:]
		}
	}
	p := passageOf()[name]
	if p == nil {
		return 0, nil
	}
	if p.as != "" {
		if i := p.operand(words, 1); i > 0 && words[i].Text == p.words {
			return i, append([]word{{acphost.CommandWord{Text: p.as, Source: p.as}, false, false}}, words[i+1:]...)
		}
		return 0, nil
	}
	if i := slices.IndexFunc(words, func(w word) bool { return w.Text == "--" }); i > 0 && p.after != "" {
		if first := p.operand(words, 1); p.words == "-" || first < 0 || first > i || !has(p.words, words[first].Text) || hasWhole("run test", words[first].Text) {
			program := word{acphost.CommandWord{Text: p.after, Source: p.after}, false, false}
			return i, append([]word{program}, words[i+1:]...)
		}
	}
	i := p.operand(words, 1)
	if i > 0 && p.words != "" {
		switch {
		case hasWhole(p.words, words[i].Text):
			i = p.operand(words, i+1)
		case !p.direct || !isTool(words[i].Text):
			return 0, nil
		}
	}
	if i < 0 {
		return 0, nil
	}
	inner = slices.Clone(words[i:])
	if program, _, ok := strings.Cut(inner[0].Text, "@"); ok && program != "" { // a version
		inner[0].Text = program
	}
	return i, inner
}

// isTool reports whether the first operand of a package manager is a program, and none of its own commands.
func isTool(program string) bool {
	name := tableName(base(program))
	return toolOf()[name] != nil || len(moreOf()[name]) > 0 && !hasWhole("install patch file", name)
}

// operand returns the next word that is not an option, from one on, or -1.
func (p *passage) operand(words []word, from int) int {
	for i := from; i < len(words); i++ {
		t := words[i].Text
		switch {
		case t == "--" && i+1 < len(words):
			return i + 1
		case len(t) < 2 || t[0] != '-':
			return i
		case hasWhole(p.values, t):
			i++
		}
	}
	return -1
}
