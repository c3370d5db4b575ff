package process

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestLoginEnv(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no login shell")
	}
	dir := t.TempDir()
	t.Setenv("PWD", "/where/i/am")
	t.Setenv("STARTED", "here")
	const run = `
for last; do :; done
export PATH="/login/bin:$PATH" SHLVL=7 MULTI="a
b=c"
`
	for _, tt := range []struct {
		name, body string
		want       error
		text       string
	}{
		{"zsh", `echo welcome; echo noise >&2; [ "$1$2$3" = "-l-i-c" ] || exit 9` + run + `eval "$last"; echo bye`, nil, ""},
		{"tcsh", `[ "$1$2" = "-i-c" ] || exit 9` + run + `eval "$last"`, nil, ""},
		{"old", run + `env() { [ "$1" = -0 ] && return 1; command env; }; eval "$last"`, nil, ""},
		{"background", run + `sleep 1000 & eval "$last"; sleep 1000`, nil, ""},
		{"quits", "echo sorry >&2; exit 4", &ExitError{}, "exit status 4: sorry"},
		{"silent", "exit 0", io.ErrUnexpectedEOF, ""},
		{"empty", `for last; do :; done; unset PATH; eval "$(echo "$last" | /bin/sed 's/env -0 || env/echo X=1/')"`, nil, "no PATH"},
		{"chatty", "while :; do echo 01234567890123456789012345678901234567890123456789; done", nil, "more than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			shell := script(t, dir, tt.name, tt.body)
			t.Setenv("SHELL", shell)
			env, err := LoginEnv(t.Context())
			if tt.want != nil || tt.text != "" {
				var exit *ExitError
				if _, is := tt.want.(*ExitError); is && !errors.As(err, &exit) || !is && tt.want != nil && !errors.Is(err, tt.want) ||
					err == nil || !strings.Contains(err.Error(), tt.text) || !strings.Contains(err.Error(), shell) {
					t.Fatalf("%v, want %v %s", err, tt.want, tt.text)
				}
				if !slices.Equal(env, os.Environ()) {
					t.Error("not the environment of this process")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]string{
				"PATH": "/login/bin:" + os.Getenv("PATH"), "MULTI": "a\nb=c", "STARTED": "here",
				"PWD": "/where/i/am", "SHLVL": os.Getenv("SHLVL"),
			} {
				if name == "MULTI" && tt.name == "old" {
					want = "a" // lines cannot tell what follows from a variable
				}
				if got := variable(env, name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestLoginEnvGivesUp(t *testing.T) {
	needProc(t)
	shell := script(t, t.TempDir(), "hangs", `echo $$ > "$0.pid"; sleep 1000`)
	t.Setenv("SHELL", shell)
	_, mark := sh(t, "")
	t.Setenv(markVar, mark)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		for len(alive(mark)) == 0 {
			runtime.Gosched()
		}
		cancel(errors.New("enough"))
	}()
	if _, err := LoginEnv(ctx); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Error(err)
	}
	goneSoon(t, mark, 0)
}

// TestLoginEnvRealShell tries the shells that are there.
func TestLoginEnvRealShell(t *testing.T) {
	for _, name := range []string{"sh", "bash", "zsh", "fish", "tcsh"} {
		shell, err := LookPath(name, nil)
		if err != nil {
			continue
		}
		t.Setenv("SHELL", shell)
		env, err := LoginEnv(t.Context())
		if err != nil || variable(env, "PATH") == "" || variable(env, "HOME") != os.Getenv("HOME") {
			t.Errorf("%s: %v, %q", shell, err, env)
		}
	}
	t.Setenv("SHELL", "")
	if _, err := LoginEnv(t.Context()); err != nil {
		t.Error(err)
	}
}

func FuzzBetween(f *testing.F) {
	f.Add("noise MARK\nA=1\x00B=2\nMARK\n tail")
	f.Add("MARK\nA=1\nB=2\n\nC\nMARK\n")
	f.Fuzz(func(t *testing.T, text string) {
		env, err := between(iotest.OneByteReader(strings.NewReader(text)), "MARK")
		if (err == nil) != (strings.Count(text, "MARK\n") >= 2) {
			t.Fatalf("%q: %q, %v", text, env, err)
		}
		vars, err := parseEnv(env)
		if err != nil {
			return
		}
		for _, kv := range vars {
			if name, _, ok := strings.Cut(kv, "="); !ok || name == "" {
				t.Fatalf("%q in %q", kv, vars)
			}
		}
	})
}
