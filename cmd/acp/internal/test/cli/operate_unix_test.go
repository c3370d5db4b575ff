//go:build unix

package cli

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// A machine is a root directory in which the commands of docs/operate.md run. Users and services are the test's.
type machine struct {
	t       *testing.T
	root    string
	service *exec.Cmd // nil if it does not run
}

// inRoot moves the paths of a command below the root.
func (m *machine) inRoot(text string) string {
	return regexp.MustCompile(`(^|[ =:])/(usr/local|etc|var/lib|run|backups)\b`).ReplaceAllString(text, "${1}"+m.root+"/${2}")
}

// service starts the service as the unit says, or ends it.
func (m *machine) systemctl(verb string) {
	m.t.Helper()
	if m.service != nil && verb != "start" {
		_ = m.service.Process.Signal(syscall.SIGTERM)
		_ = m.service.Wait()
		m.service = nil
	}
	if verb == "stop" {
		return
	}
	data, err := os.ReadFile(filepath.Join(m.root, "etc/systemd/system/acp.service"))
	if err != nil {
		m.t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(m.root, "etc/acp/environment")); err != nil {
		m.t.Error(err)
	}
	var argv, env []string
	for line := range strings.Lines(m.inRoot(string(data))) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "ExecStart="); ok {
			argv = strings.Fields(rest)
		} else if rest, ok := strings.CutPrefix(line, "Environment="); ok {
			env = append(env, strings.Fields(rest)...)
		} else if rest, ok := strings.CutSuffix(line, "Directory=acp"); ok {
			base := map[string]string{"State": "var/lib", "Runtime": "run"}[rest]
			if err := os.MkdirAll(filepath.Join(m.root, base, "acp"), 0o700); err != nil {
				m.t.Fatal(err)
			}
		}
	}
	for i, arg := range argv {
		if strings.HasPrefix(arg, "127.0.0.1:") {
			argv[i] = "127.0.0.1:0"
		}
	}
	m.service = exec.Command(argv[0], argv[1:]...)
	m.service.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + m.root}, env...)
	m.service.Dir = m.root
	out, err := m.service.StdoutPipe()
	if err == nil {
		err = m.service.Start()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		m.t.Fatal("the service does not start: ", err)
	}
}

// run runs a command of the operator, who has a home without anything of acp.
func (m *machine) run(command string) (out string, ok bool) {
	m.t.Helper()
	command, _, _ = strings.Cut(command, "  #")
	if rest, ok := strings.CutPrefix(command, "systemctl "); ok {
		words := strings.Fields(rest)
		if words[0] == "enable" {
			words[0] = "start"
		}
		m.systemctl(words[0])
		return "", true
	}
	if strings.HasPrefix(command, "useradd ") {
		return "", true
	}
	command = strings.ReplaceAll(strings.Replace(command, "sudo -u acp ", "", 1), "-o acp ", "")
	cmd := exec.Command("/bin/sh", "-c", m.inRoot(command))
	cmd.Dir = m.root
	cmd.Env = []string{"PATH=" + filepath.Join(m.root, "usr/local/bin") + ":" + os.Getenv("PATH"), "HOME=" + filepath.Join(m.root, "root")}
	data, err := cmd.CombinedOutput()
	return string(data), err == nil
}

// TestOperate runs the commands of docs/operate.md, in order.
func TestOperate(t *testing.T) {
	docs, err := os.ReadFile("../../../../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, root: t.TempDir()}
	t.Cleanup(func() { m.systemctl("stop") })
	for _, dir := range []string{"etc/systemd/system", "usr/local/bin", "root", "deploy"} {
		if err := os.MkdirAll(filepath.Join(m.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"../../../../../deploy/acp.service": "deploy/acp.service", os.Args[0]: "acp"} {
		if from, err = filepath.Abs(from); err == nil {
			err = os.Symlink(from, filepath.Join(m.root, to))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("acp", filepath.Join(m.root, "acp-new")); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(docs), -1) {
		for _, line := range regexp.MustCompile(`(?m)^[#$] (.*)$`).FindAllStringSubmatch(block[1], -1) {
			// There is one node here.
			if out, ok := m.run(line[1]); !ok && !(strings.Contains(line[1], "drain") && strings.Contains(out, "with no other one")) {
				t.Errorf("%s\n%s", line[1], out)
			}
			ran++
		}
	}
	if ran < 18 {
		t.Errorf("%d commands", ran)
	}
	// Without --state they are about a server of the operator, and say so.
	for _, command := range []string{
		"acp serve status", "acp serve verify", "acp serve backup b", "acp serve restore /backups/acp-$(date +%F).tar",
		"acp devices list", "acp devices revoke --all", "acp devices pair", "acp audit show", "acp audit verify", "acp node status",
	} {
		out, ok := m.run(command)
		if said := strings.Contains(out, "--state") || command == "acp serve status"; ok || !said {
			t.Errorf("%s, without --state: well: %v\n%s", command, ok, out)
		}
	}
	if _, err := os.Stat(filepath.Join(m.root, "root/.local/state/acp/gateway/sessions")); err == nil {
		t.Error("sessions of the service were restored for the operator")
	}
	if out, ok := m.run("acp serve restore --force /backups/acp-$(date +%F).tar"); !ok {
		t.Error(out)
	}
}
