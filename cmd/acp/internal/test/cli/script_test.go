package cli

import (
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/goacp/acp/cmd/acp/internal/cli"
	"github.com/goacp/acp/cmd/acp/internal/test/relay"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/internal/ramtemp"
	"github.com/goacp/acp/jsonrpc"
)

var errAuth = jsonrpc.ErrAuthRequired

func TestMain(m *testing.M) {
	switch os.Getenv("CLITEST_RUN") {
	case "acp":
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	case "fake-agent":
		fakeAgent()
	}
	// Scripts wait for processes most of the time. The flag, if it is given, is read later.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	testscript.Main(inMemory{m}, map[string]func(){
		"acp":          func() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		"fake-agent":   fakeAgent,
		"fake-mcp":     fakeMCP,
		"fake-gateway": fakeGateway,
		"fetch":        fetch,
	})
}

// inMemory runs the scripts in memory: see package ramtemp.
type inMemory struct{ m *testing.M }

func (in inMemory) Run() int { return ramtemp.Run(in.m) }

// pixel is a picture, pixel.png of the scripts.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// TestEveryStatus: each exit status there is, and no other, is one that a script wants. Above 125 they
// are those of shells for signals, which acp tap passes on.
func TestEveryStatus(t *testing.T) {
	source, err := os.ReadFile("../../exitcode/exitcode.go")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"0": true} // every exec in the scripts
	for _, m := range regexp.MustCompile(`(?m)^\t\w+ +Code = (\d+)`).FindAllStringSubmatch(string(source), -1) {
		want[m[1]] = true
	}
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 || len(want) < 12 {
		t.Fatalf("%d scripts, %d statuses, %v", len(files), len(want), err)
	}
	got := map[string]bool{"0": true}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^(?:\[.*\] )?status (\d+) acp `).FindAllStringSubmatch(string(data), -1) {
			if n, err := strconv.Atoi(m[1]); err != nil || n <= 125 {
				got[m[1]] = true
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("scripts want %v, there are %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// TestScript runs the scripts in testdata/script. Their command "status N COMMAND ARGS" runs a
// command that has to end with a status.
func TestScript(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the scripts are written for Unix")
	}
	servers := serveMCP()
	t.Cleanup(servers.Close) // when the scripts, which are parallel, have ended
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scripts", err)
	}
	if testing.Short() { // one of three: with the race detector each program takes long to start
		some := scripts
		scripts = nil
		for i := 0; i < len(some); i += 3 {
			scripts = append(scripts, some[i])
		}
	}
	testscript.Run(t, testscript.Params{
		Files: scripts,
		Condition: func(cond string) (bool, error) {
			if cond == "all" {
				return long.All(), nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("MCP_URL", servers.URL)
			e.Values[servedKey{}] = map[string]*served{}
			e.Values[wireKey{}] = map[string]*relay.Relay{}
			home := e.WorkDir + "/home"
			if err := os.MkdirAll(home, 0o700); err != nil {
				return err
			}
			pixel, err := base64.StdEncoding.DecodeString(pixel)
			if err != nil {
				return err
			}
			if err := os.WriteFile(e.WorkDir+"/pixel.png", pixel, 0o600); err != nil {
				return err
			}
			for _, v := range [][2]string{
				{"ACP_MODEL_USE", "none"}, {"HOME", home}, {"XDG_CONFIG_HOME", home + "/config"}, {"XDG_DATA_HOME", home + "/data"},
				{"XDG_STATE_HOME", home + "/state"}, {"XDG_CACHE_HOME", home + "/cache"}, {"TERM", "dumb"}, {"SHELL", "/bin/sh"},
			} {
				e.Setenv(v[0], v[1])
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"listen": listen,
			"serve":  serve,
			"stop":   stop,
			"end":    stop,
			"await":  waitEnd,
			"wire":   wired,
			"status": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: status N command [args]")
				}
				want, err := strconv.Atoi(args[0])
				ts.Check(err)
				got := 0
				if err := ts.Exec(args[1], args[2:]...); err != nil {
					exit, ok := errors.AsType[*exec.ExitError](err)
					if !ok {
						ts.Fatalf("%v", err)
					}
					got = exit.ExitCode()
				}
				if got != want {
					ts.Fatalf("exit status %d, want %d", got, want)
				}
			},
		},
	})
}
