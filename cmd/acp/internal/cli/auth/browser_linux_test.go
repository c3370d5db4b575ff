package auth

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/goacp/acp"
)

// browserFile names the file that gets the numbers of the "browsers" which a login opens.
const browserFile = "ACP_AUTH_TEST_BROWSERS"

func init() { openBrowser = openBrowsers }

// openBrowsers starts processes as logins start browsers: one that is cut loose from the agent, and one
// that is its child, each in a session of its own.
func openBrowsers(context.Context, *acp.AgentConn, acp.AuthMethodID) error {
	file := os.Getenv(browserFile)
	loose := exec.Command("/bin/sh", "-c", `(setsid /bin/sh -c 'echo $$ >"$0"; exec sleep 1000' "$0" &); while [ ! -s "$0" ]; do sleep 0.01; done`, file)
	if err := loose.Run(); err != nil {
		return err
	}
	child := exec.Command("sleep", "1000")
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(strconv.Itoa(child.Process.Pid) + "\n")
	return err
}

// TestLoginLeavesBrowsers: what the agent opens for a login, such as a browser, is the user's and outlives
// the agent.
func TestLoginLeavesBrowsers(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	file := filepath.Join(t.TempDir(), "browsers")
	t.Setenv(browserFile, file)
	if out, err := run(t, "shut browser", "login"); err != nil {
		t.Fatalf("%s%v", out, err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pids := strings.Fields(string(data))
	if len(pids) != 2 {
		t.Fatalf("browsers %q", data)
	}
	for _, text := range pids {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		// A zombie, which nobody may reap here, takes signals as well.
		if state, err := os.ReadFile("/proc/" + text + "/stat"); err != nil || strings.Contains(string(state), ") Z ") {
			t.Errorf("browser %s has ended: %v", text, err)
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
