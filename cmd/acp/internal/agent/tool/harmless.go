package tool

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/gitread"
)

// A calm is what a harmless line runs with; nil means that a line is not harmless, and runs as it is.
type calm struct {
	without []string // names of variables, or how they begin with a star at the end
	env     []acp.EnvVariable
}

// calmVariables name programs that readers run, or files that they load.
var calmVariables = []string{"CDPATH", "BASH_ENV", "ENV", "RIPGREP_CONFIG_PATH", "GREP_OPTIONS", "LESSOPEN", "LESSCLOSE", "TAR_OPTIONS", "UNZIP", "ZIPOPT", "GCONV_PATH"}

// calmOf returns what a line runs with if it does nothing but read in the session's directories. In a terminal that the
// client lends nothing is known to be so: its programs, and the variables that they read, are the client's.
func calmOf(ctx context.Context, env Env, line, dir string) *calm {
	if c := env.Session().Conn().CapabilitiesV1(); c != nil && c.Terminal {
		return nil
	}
	req := acphost.Request{Kind: string(acp.ToolKindExecute), Command: line, Cwd: dir}
	h := env.Harmless(req)
	if h.Why != "" {
		return nil
	}
	var roots []string
	for _, d := range env.Roots() {
		if real, err := filepath.EvalSymlinks(d); err == nil {
			roots = append(roots, real)
		}
	}
	base := environ(env.Keys())
	if !slices.ContainsFunc(base, func(e string) bool { return strings.HasPrefix(e, "PATH=") }) {
		return nil
	}
	for _, name := range append(h.Programs, "sh", "bash", "cat") {
		if !isSystems(name, valueIn(base, "PATH"), roots) {
			return nil
		}
	}
	c := &calm{without: append([]string{"GIT_*", "BASH_FUNC_*"}, calmVariables...)}
	c.set("PAGER=cat", "GIT_PAGER=cat")
	for _, name := range calmVariables {
		c.set(name + "=")
	}
	for _, d := range h.Git {
		vars, err := gitread.Quiet(ctx, d, roots)
		if err != nil {
			return nil
		}
		c.set(vars...)
	}
	if h.Go {
		if hasGoFlags(base) {
			return nil
		}
		c.set("GOTOOLCHAIN=local", "GOPROXY=off", "GOSUMDB=off", "GOVCS=*:off")
	}
	return c
}

// set adds variables, as NAME=value.
func (c *calm) set(vars ...string) {
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		c.env = slices.DeleteFunc(c.env, func(e acp.EnvVariable) bool { return e.Name == name })
		c.env = append(c.env, acp.EnvVariable{Name: name, Value: value})
	}
}

// apply returns a command, which has an environment of its own, that runs with what keeps it harmless.
func (c *calm) apply(e acp.Exec) acp.Exec {
	if c == nil {
		return e
	}
	e.Environ = slices.DeleteFunc(slices.Clone(e.Environ), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.ContainsFunc(c.without, func(w string) bool {
			begin, star := strings.CutSuffix(w, "*")
			return name == w || star && strings.HasPrefix(name, begin)
		})
	})
	e.Env = append(slices.Clip(e.Env), c.env...)
	return e
}

// valueIn returns the value of a variable in an environment.
func valueIn(environ []string, name string) (value string) {
	for _, e := range environ {
		if n, v, ok := strings.Cut(e, "="); ok && n == name {
			value = v
		}
	}
	return value
}

// isSystems reports whether a program is looked up in a way that does not lead into the session's directories. One
// that is not found is a command of the shell, or fails.
func isSystems(name, path string, roots []string) bool {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			return false
		}
		file := filepath.Join(dir, name)
		if filepath.IsAbs(name) {
			file = name
		}
		info, err := os.Stat(file)
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			continue
		}
		real, err := filepath.EvalSymlinks(file)
		return err == nil && !slices.ContainsFunc(roots, func(root string) bool {
			return below(root, real) || below(root, file)
		})
	}
	return true
}

// below reports whether a path is a directory or in it.
func below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// maxGoEnv bounds the settings of go that are looked at.
const maxGoEnv = 64 << 10

// hasGoFlags reports whether the user has set options for all commands of go, which may run programs or write files.
func hasGoFlags(environ []string) bool {
	for f := range strings.FieldsSeq(valueIn(environ, "GOFLAGS")) {
		if f != "-trimpath" && !strings.HasPrefix(f, "-tags=") {
			return true
		}
	}
	file := valueIn(environ, "GOENV")
	if file == "off" {
		return false
	}
	if file == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return true
		}
		file = filepath.Join(dir, "go", "env")
	}
	info, err := os.Stat(file)
	if err != nil {
		return false // there are none
	}
	if info.Size() > maxGoEnv || !info.Mode().IsRegular() {
		return true
	}
	data, err := os.ReadFile(file)
	return err != nil || strings.Contains(string(data), "GOFLAGS=")
}
