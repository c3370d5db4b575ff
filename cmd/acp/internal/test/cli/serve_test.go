package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// served are the processes that a script has started, by the name of their variable.
type served struct {
	cmd  *exec.Cmd
	errs *bytes.Buffer
}

type servedKey struct{}

// serve is a command of the scripts: serve NAME ARGS starts acp with the arguments, or fake-gateway if that
// is the first of them, and puts the first line of its output into the variable NAME and, where that is an
// http URL, the one for WebSocket into NAME_WS and its address into NAME_ADDR. end NAME [STATUS] ends it by an interrupt, after which it
// must have ended well, or with STATUS, and writes what it wrote to standard error to the file NAME.err.
// end -9 NAME kills it, and end -TERM NAME ends it as the service manager does. Do not call it stop: testscript has a command of that name, which ends the script there.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: serve NAME ARGS")
	}
	program, rest := "acp", args[1:]
	if rest[0] == "fake-gateway" {
		program, rest = rest[0], rest[1:]
	}
	cmd := exec.Command(programIn(ts, program), rest...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "TERM", "SHELL", "TMPDIR", "ACP_MODEL_USE", "ACP_TOKEN"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	s := &served{cmd, new(bytes.Buffer)}
	cmd.Stderr = s.errs
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		ts.Fatalf("%v: %s", err, s.errs)
	}
	line = strings.TrimSuffix(line, "\n")
	setAddress(ts, args[0], line)
	running, ok := ts.Value(servedKey{}).(map[string]*served)
	if !ok {
		ts.Fatalf("the script has no place for servers")
	}
	running[args[0]] = s
}

// setAddress sets NAME to the first line of a server, and if that is a URL, NAME_WS to that of its WebSockets and NAME_ADDR
// to its address.
func setAddress(ts *testscript.TestScript, name, line string) {
	ts.Setenv(name, line)
	if rest, ok := strings.CutPrefix(line, "http"); ok {
		ts.Setenv(name+"_WS", "ws"+rest)
		if u, err := url.Parse(line); err == nil {
			ts.Setenv(name+"_ADDR", u.Host)
		}
	}
}

// stop ends what serve has started.
func stop(ts *testscript.TestScript, neg bool, args []string) {
	running, _ := ts.Value(servedKey{}).(map[string]*served)
	if len(args) == 2 && args[0] == "-9" && running[args[1]] != nil {
		s := running[args[1]]
		delete(running, args[1])
		ts.Check(s.cmd.Process.Kill())
		_ = s.cmd.Wait()
		return
	}
	want, by := "", os.Signal(os.Interrupt)
	if len(args) == 2 && args[0] == "-TERM" {
		args, by = args[1:], syscall.SIGTERM
	}
	if len(args) == 2 {
		want, args = args[1], args[:1]
	}
	if neg || len(args) != 1 || running[args[0]] == nil {
		ts.Fatalf("usage: end NAME [STATUS]")
	}
	ts.Check(running[args[0]].cmd.Process.Signal(by))
	waitFor(ts, running, args[0], want)
}

// waitEnd waits until what serve has started ends by itself. A signal could be faster than its end, and then it counts.
func waitEnd(ts *testscript.TestScript, neg bool, args []string) {
	running, _ := ts.Value(servedKey{}).(map[string]*served)
	if neg || len(args) != 1 || running[args[0]] == nil {
		ts.Fatalf("usage: await NAME")
	}
	waitFor(ts, running, args[0], "")
}

// waitFor waits until a program has ended with a status; "" is 0.
func waitFor(ts *testscript.TestScript, running map[string]*served, name, want string) {
	s := running[name]
	delete(running, name)
	err := s.cmd.Wait()
	ts.Check(os.WriteFile(ts.MkAbs(name+".err"), s.errs.Bytes(), 0o600))
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if fmt.Sprint(exit.ExitCode()) == want {
			return
		}
		ts.Fatalf("%v: %s", exit, s.errs)
	}
	ts.Check(err)
	if want != "" && want != "0" {
		ts.Fatalf("it has ended well, not with status %s", want)
	}
}

// programIn returns a program of the scripts.
func programIn(ts *testscript.TestScript, name string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if file := filepath.Join(dir, name); dir != "" {
			if _, err := os.Stat(file); err == nil {
				return file
			}
		}
	}
	ts.Fatalf("there is no %s", name)
	return ""
}
