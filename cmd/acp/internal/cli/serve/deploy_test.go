package serve

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/telemetry"
	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const root = "../../../../../"

// accepts fails if acp serve does not know the arguments.
func accepts(t *testing.T, args []string) (o *Options) {
	t.Helper()
	if len(args) == 0 || args[0] != "serve" {
		t.Fatalf("%q does not serve", args)
	}
	cmd := NewCommand(new(app.App), func(_ context.Context, got *Options) error { o = got; return nil })
	cmd.SetArgs(args[1:])
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestUnit: the unit for systemd starts acp serve with flags that there are, and leaves agents alone when it ends.
func TestUnit(t *testing.T) {
	file := root + "deploy/acp.service"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	unit := string(data)
	start := regexp.MustCompile(`(?m)^ExecStart=(\S+) (.*)$`).FindStringSubmatch(unit)
	if start == nil {
		t.Fatal("it starts nothing")
	}
	if o := accepts(t, strings.Fields(start[2])); !o.Operation.KeepAgents {
		t.Error("an upgrade ends the agents")
	}
	for _, want := range []string{"KillMode=process", "RuntimeDirectoryPreserve=yes", "User=acp", "StateDirectory=acp", "CapabilityBoundingSet=", "LockPersonality=yes", "ProtectKernelModules=yes"} {
		if !slices.Contains(strings.Split(unit, "\n"), want) {
			t.Errorf("no %s", want)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The program must exist.
	copied := filepath.Join(t.TempDir(), "acp.service")
	if err := os.WriteFile(copied, []byte(strings.ReplaceAll(unit, start[1], self)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", copied).CombinedOutput()
	if strings.Contains(string(out), "acp.service:") { // others are not ours
		t.Errorf("%v: %s", err, out)
	}
}

// TestDockerfile: the container serves as nobody in particular, with flags that there are.
func TestDockerfile(t *testing.T) {
	data, err := os.ReadFile(root + "deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	var args []string
	cmd := regexp.MustCompile(`(?m)^CMD (\[.*\])$`).FindStringSubmatch(text)
	if cmd == nil || json.Unmarshal([]byte(cmd[1]), &args) != nil {
		t.Fatal("there is no CMD")
	}
	// What is published is reached, and the path of the health check is served.
	o := accepts(t, args)
	if !strings.Contains(text, "\nEXPOSE 7842\n") || o.Listen != "0.0.0.0:7842" || !strings.Contains(text, "http://"+o.Operation.Metrics+"/healthz") {
		t.Errorf("listens at %s, metrics at %s", o.Listen, o.Operation.Metrics)
	}
	if _, err := os.Stat(root + ".dockerignore"); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"\nHEALTHCHECK ", " git ", "\nUSER acp\n", "\nVOLUME /state\n", "CGO_ENABLED=0"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
}

// TestOperateDocs: docs/operate.md has every metric, with its labels, and every flag of operation.
func TestOperateDocs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("line ends")
	}
	data, err := os.ReadFile(root + "docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	docs := string(data)
	known := map[string]bool{}
	for _, m := range telemetry.Metrics() {
		known[m.Name] = true
		row := "| `" + m.Name + "` | " + m.Type + " | " + strings.Join(m.Labels, ", ") + " | " + m.Help + " |"
		if !strings.Contains(docs, row+"\n") {
			t.Errorf("missing:\n%s", row)
		}
	}
	for _, name := range regexp.MustCompile("(?m)^\\| `(acp_[a-z_]+)`").FindAllStringSubmatch(docs, -1) {
		if !known[name[1]] {
			t.Errorf("there is no metric %s", name[1])
		}
	}
	for _, flag := range []string{"metrics", "otlp", "log-format", "log-level", "keep-agents", "live-agents", "keep-raw", "keep-sessions"} {
		if !strings.Contains(docs, "--"+flag) {
			t.Errorf("nothing about --%s", flag)
		}
	}
}
