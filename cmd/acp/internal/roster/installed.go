package roster

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"unicode"
)

// Installed returns the executable file of an agent's command: a command with a separator is a file
// itself, others are looked up in the PATH of the agent's environment. Relative directories of PATH
// are ignored. The built-in agent and agents that have a URL need not be installed.
func (r *Roster) Installed(a Agent) (path string, ok bool) { return Installed(a) }

// Installed is [Roster.Installed].
func Installed(a Agent) (path string, ok bool) {
	if a.Builtin || a.URL != "" {
		return "", true
	}
	path, err := LookPath(a.Command, a.Dir, a.Environ())
	return path, err == nil
}

// Apart returns the words of a command that is a whole command line by mistake: no such program
// exists, but one with the name of its first word. It returns nil for other commands.
func Apart(a Agent) []string {
	if _, ok := Installed(a); ok || len(a.Args) > 0 || !strings.ContainsFunc(a.Command, unicode.IsSpace) {
		return nil
	}
	words, err := Split(a.Command)
	if err != nil || len(words) < 2 {
		return nil
	}
	if _, err := LookPath(words[0], a.Dir, a.Environ()); err != nil {
		return nil
	}
	return words
}

// LookPath finds the file of a command in the PATH of an environment; a name with a separator is
// relative to dir unless it is absolute. The error wraps [exec.ErrNotFound], or [os.ErrPermission]
// if the file exists but cannot be run; path is that file then.
func LookPath(command, dir string, environ []string) (path string, err error) {
	if command == "" {
		return "", exec.ErrNotFound
	}
	dirs := filepath.SplitList(variable(environ, "PATH"))
	if strings.ContainsAny(command, "/"+string(filepath.Separator)) {
		if dirs = []string{""}; !filepath.IsAbs(command) && dir != "" {
			command = filepath.Join(dir, command)
		}
	}
	exts := []string{""}
	if runtime.GOOS == "windows" {
		exts = extensions(command, variable(environ, "PATHEXT"))
	}
	denied := ""
	for _, d := range dirs {
		if d != "" && !filepath.IsAbs(d) || d == "" && len(dirs) > 1 {
			continue
		}
		for _, ext := range exts {
			file := filepath.Join(d, command) + ext
			info, err := os.Stat(file)
			switch {
			case errors.Is(err, os.ErrPermission):
				denied = file
			case err != nil || info.IsDir():
			case runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
				denied = file
			default:
				return file, nil
			}
		}
	}
	if denied != "" {
		return denied, os.ErrPermission
	}
	return "", exec.ErrNotFound
}

// extensions returns what Windows appends to the name of a program. A name that has one already is
// tried as it is first.
func extensions(name, pathext string) []string {
	if pathext == "" {
		pathext = ".com;.exe;.bat;.cmd"
	}
	var exts []string
	for e := range strings.SplitSeq(strings.ToLower(pathext), ";") {
		if e == "" {
			continue
		}
		if strings.HasSuffix(strings.ToLower(name), e) {
			exts = append([]string{""}, exts...)
		}
		exts = append(exts, e)
	}
	return exts
}
