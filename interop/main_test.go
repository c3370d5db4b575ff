package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// roleVar makes the test binary play a part instead of running tests.
const roleVar = "ACP_INTEROP_ROLE"

var roles = map[string]func() error{}

func TestMain(m *testing.M) {
	if play := roles[os.Getenv(roleVar)]; play != nil {
		if err := play(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "acp-interop-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programs.dir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// programs are what was built for the tests, each once.
var programs struct {
	dir string
	mu  sync.Mutex
	bin map[string]func() (string, error)
}

// build builds the main package pkg, as seen from a directory, and returns the
// program.
func build(t *testing.T, dir, pkg string) string {
	t.Helper()
	programs.mu.Lock()
	make, ok := programs.bin[pkg]
	if !ok {
		bin := filepath.Join(programs.dir, fmt.Sprintf("%d-%s", len(programs.bin), filepath.Base(pkg)))
		make = sync.OnceValues(func() (string, error) {
			cmd := exec.Command("go", "build", "-o", bin, pkg)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GOWORK=off")
			if dir != "." { // Other modules are in the workspace of the repository.
				cmd.Env = append(cmd.Env, "GOWORK=")
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
			}
			return bin, nil
		})
		if programs.bin == nil {
			programs.bin = map[string]func() (string, error){}
		}
		programs.bin[pkg] = make
	}
	programs.mu.Unlock()
	bin, err := make()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// example builds one of the examples.
func example(t *testing.T, name string) string {
	t.Helper()
	return build(t, "..", "./examples/"+name)
}
