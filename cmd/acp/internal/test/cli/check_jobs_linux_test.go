package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/internal/long"
)

// TestCheckJobs holds that the verdict on an agent does not depend on how many trials run at a time, nor
// on what else the machine does, nor on a PID namespace that shows the check no groups of its own parents.
func TestCheckJobs(t *testing.T) {
	long.Test(t)
	script, err := filepath.Abs("testdata/check.script")
	if err != nil {
		t.Fatal(err)
	}
	agents := map[string][]string{
		"built-in": {"--prompt", "text=a short text", "--prompt", "hang=hang", "--prompt", "cancellable=be cancelled",
			"--prompt", "permission=ask permission", "--prompt", "terminal=/run echo hello", "--prompt", "mcp=/mcp", "--",
			"env", "CLITEST_RUN=acp", "ACP_MODEL_USE=none", os.Args[0], "agent", "--model", "script:" + script},
		"talker":      append([]string{"--prompt", "text=hello"}, fake("talker")...),
		"holds turns": append([]string{"--prompt", "hang=hello"}, fake("slow-turn")...),
		"leaves a process": append([]string{"--prompt", "text=hello"},
			"--", "sh", "-c", `setsid sleep 100 & CLITEST_RUN=fake-agent exec "$0" ok`, os.Args[0]),
	}
	places := []struct {
		name string
		jobs int
		busy bool
		in   []string // the command that the check is run by
	}{
		{"one at a time", 1, false, nil},
		{"eight at a time, busy", 8, true, nil},
		{"eight at a time, in a PID namespace", 8, true, []string{"bwrap", "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc"}},
	}
	for name, args := range agents {
		t.Run(name, func(t *testing.T) {
			var want map[string]string
			for _, place := range places {
				t.Run(place.name, func(t *testing.T) {
					if place.in != nil {
						probe := append(place.in[1:len(place.in):len(place.in)], "true")
						if out, err := exec.Command(place.in[0], probe...).CombinedOutput(); err != nil {
							t.Skipf("there are no PID namespaces here: %v: %s", err, out)
						}
					}
					if place.busy {
						busy(t)
					}
					got := checkedBy(t, place.in, append([]string{"--jobs", fmt.Sprint(place.jobs)}, args...))
					if want == nil {
						want = got
					} else if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("(-one at a time, +here):\n%s", diff)
					}
				})
			}
		})
	}
}

// busy keeps all processors busy until the test ends.
func busy(t *testing.T) {
	t.Helper()
	for range 2 * runtime.NumCPU() {
		cmd := exec.CommandContext(t.Context(), "yes")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Wait() })
	}
}

// checkedBy checks an agent, by a command or by itself, and returns the status of each rule that has a
// scenario. What an observed rule is about may be there or not: see package conformance.
func checkedBy(t *testing.T, by, args []string) map[string]string {
	t.Helper()
	cmd := acpCommand(t, t.TempDir(), append([]string{"check", "agent", "--json", "--only", "agent/dispatch", "--only", "agent/cancel",
		"--only", "agent/lifecycle", "--only", "agent/permission", "--only", "agent/mcp", "--skip", "agent/*/slow-client"}, args...)...)
	if len(by) > 0 {
		path, err := exec.LookPath(by[0])
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path, cmd.Args = path, append(append([]string{}, by...), append([]string{os.Args[0]}, cmd.Args[1:]...)...)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the report says it
	var report struct {
		Results []struct {
			Rule, Status, Why string
			Version           int
		}
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || len(report.Results) < 50 {
		t.Fatalf("%v: %d results, %s: %.2000s", err, len(report.Results), &errs, &out)
	}
	all := map[string]string{}
	for _, r := range report.Results {
		status := r.Status
		if status == "unseen" && r.Why == "nothing that it is about was seen" {
			status = "pass"
		}
		all[fmt.Sprint(r.Rule, "@", r.Version)] = status
	}
	return all
}
