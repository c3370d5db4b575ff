package process

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// A LookPathError says that a program was not found, or only where it cannot be
// run. It wraps [exec.ErrNotFound] or [fs.ErrPermission], and in the first case
// errors.Is(err, fs.ErrNotExist) holds too.
type LookPathError struct {
	Name     string
	Searched []string // the directories of PATH, in order, or the file itself
	Skipped  []string // relative directories of PATH, which are never searched
	Err      error
}

// Error names the program and the reason. The directories, which may be many,
// are in the fields only.
func (e *LookPathError) Error() string {
	reason := e.Err.Error()
	switch {
	case e.Err != exec.ErrNotFound:
	case strings.ContainsAny(e.Name, separators):
		reason = "no such file"
	case len(e.Searched) == 0 && len(e.Skipped) == 0:
		reason = "not found, PATH is empty"
	case len(e.Skipped) > 0:
		reason = "not found in PATH, of which relative directories are not searched"
	default:
		reason = "not found in PATH"
	}
	return fmt.Sprintf("program %q: %s", e.Name, reason)
}

// Unwrap returns the reason.
func (e *LookPathError) Unwrap() []error {
	if e.Err == exec.ErrNotFound {
		return []error{e.Err, fs.ErrNotExist}
	}
	return []error{e.Err}
}

// LookPath returns the file that a program's name stands for in the PATH of
// env, or of this process if env is nil. A name with a separator stands for
// itself. On Windows the extensions of PATHEXT are tried, and on no system
// relative directories. The error is a *[LookPathError].
func LookPath(name string, env []string) (string, error) {
	if env == nil {
		env = os.Environ()
	}
	var exts []string
	if runtime.GOOS == "windows" {
		exts = extensions(name, variable(env, "PATHEXT"))
	}
	if strings.ContainsAny(name, separators) {
		file, err := search(name, []string{""}, exts)
		if err != nil {
			return "", &LookPathError{Name: name, Searched: []string{name}, Err: err}
		}
		return file, nil
	}
	e := &LookPathError{Name: name}
	for _, dir := range filepath.SplitList(variable(env, "PATH")) {
		if filepath.IsAbs(dir) {
			e.Searched = append(e.Searched, dir)
		} else if dir != "" {
			e.Skipped = append(e.Skipped, dir)
		}
	}
	var file string
	if file, e.Err = search(name, e.Searched, exts); e.Err != nil {
		return "", e
	}
	return file, nil
}

// search looks for name in dirs, with each of the extensions if there are any.
func search(name string, dirs, exts []string) (string, error) {
	err := error(exec.ErrNotFound)
	if name == "" {
		return "", err
	}
	if exts == nil {
		exts = []string{""}
	}
	for _, dir := range dirs {
		for _, ext := range exts {
			file := filepath.Join(dir, name) + ext
			if dir == "" {
				file = name + ext
			}
			switch fi, serr := os.Stat(file); {
			case serr != nil || fi.IsDir():
			case runtime.GOOS != "windows" && fi.Mode()&0o111 == 0:
				err = fs.ErrPermission
			default:
				return file, nil
			}
		}
	}
	return "", err
}

// extensions returns what to append to name, given the PATHEXT of Windows. A
// name that has one of the extensions is tried as it is first.
func extensions(name, pathext string) []string {
	if pathext == "" {
		pathext = ".com;.exe;.bat;.cmd"
	}
	var exts []string
	for e := range strings.SplitSeq(strings.ToLower(pathext), ";") {
		if e == "" {
			continue
		}
		if e[0] != '.' {
			e = "." + e
		}
		if strings.HasSuffix(strings.ToLower(name), e) {
			exts = append([]string{""}, exts...)
		}
		exts = append(exts, e)
	}
	return exts
}

// variable returns the value of an environment variable; the last one counts.
func variable(env []string, name string) string {
	value := ""
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		if k == name || runtime.GOOS == "windows" && strings.EqualFold(k, name) {
			value = v
		}
	}
	return value
}

// batchLine returns the command line with which cmd.exe runs a batch file. The
// arguments of a batch file are read by cmd.exe first, which knows other quotes
// than programs do and replaces %NAME% even within them: an argument could run
// commands of its own.
func batchLine(file string, args []string) (string, error) {
	if strings.ContainsAny(file, "\"%\r\n\x00") || strings.HasSuffix(file, `\`) {
		return "", fmt.Errorf("batch file name %q cannot be passed safely", file)
	}
	var b strings.Builder
	// /e:on: %cd:~,% below needs extensions. /v:off: ! means nothing.
	// /d: no autorun commands. /s: the outer quotes are taken off.
	b.WriteString(`cmd.exe /e:on /v:off /d /s /c ""` + file + `"`)
	for _, arg := range args {
		if strings.ContainsAny(arg, "\r\n\x00") {
			return "", fmt.Errorf("argument %q cannot be passed to a batch file", arg)
		}
		b.WriteByte(' ')
		batchArg(&b, arg)
	}
	b.WriteByte('"')
	return b.String(), nil
}

func batchArg(b *strings.Builder, arg string) {
	b.WriteByte('"')
	slashes := 0
	for i := range len(arg) {
		switch c := arg[i]; c {
		case '\\':
			slashes++
			b.WriteByte(c)
			continue
		case '"':
			// Doubled, a quote is one for cmd.exe and for programs; the
			// backslashes before it must not take it away again.
			b.WriteString(strings.Repeat(`\`, slashes) + `""`)
		case '%':
			// An empty part of a variable that always exists keeps the
			// sign from beginning a name.
			b.WriteString(`%%cd:~,%`)
		default:
			b.WriteByte(c)
		}
		slashes = 0
	}
	b.WriteString(strings.Repeat(`\`, slashes) + `"`)
}
