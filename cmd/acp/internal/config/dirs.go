package config

import (
	"path/filepath"
	"runtime"
	"strings"
)

// Dirs are the directories of the program, absolute. They need not exist. They are "" if neither
// the XDG variables nor a home directory say where they are.
type Dirs struct {
	Config, State, Data, Cache string
}

// DirsOf returns the directories that an environment, in the form of [os.Environ], defines: those
// of the XDG specification on all systems, and on Windows those below the user's application data.
// home is used if the environment names no home directory.
func DirsOf(environ []string, home string) Dirs {
	if h := homeOf(environ); h != "" {
		home = h
	}
	dir := func(variable, windows string, rest ...string) string {
		if d := lookup(environ, variable); filepath.IsAbs(d) { // others must be ignored
			return filepath.Join(d, "acp")
		}
		if d := lookup(environ, windows); windows != "" && runtime.GOOS == "windows" && filepath.IsAbs(d) {
			return filepath.Join(d, "acp")
		}
		if home == "" {
			return ""
		}
		return filepath.Join(append(append([]string{home}, rest...), "acp")...)
	}
	return Dirs{
		Config: dir("XDG_CONFIG_HOME", "APPDATA", ".config"),
		State:  dir("XDG_STATE_HOME", "LOCALAPPDATA", ".local", "state"),
		Data:   dir("XDG_DATA_HOME", "LOCALAPPDATA", ".local", "share"),
		Cache:  dir("XDG_CACHE_HOME", "LOCALAPPDATA", ".cache"),
	}
}

// homeOf returns the home directory in an environment, or "".
func homeOf(environ []string) string {
	home := lookup(environ, "HOME")
	if runtime.GOOS == "windows" {
		home = lookup(environ, "USERPROFILE")
	}
	if !filepath.IsAbs(home) {
		return ""
	}
	return home
}

// lookup returns the value of an environment variable; the last one counts.
func lookup(environ []string, name string) string {
	value := ""
	for _, kv := range environ {
		k, v, _ := strings.Cut(kv, "=")
		if k == name || runtime.GOOS == "windows" && strings.EqualFold(k, name) {
			value = v
		}
	}
	return value
}
