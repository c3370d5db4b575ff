//go:build unix

package acphost

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/goacp/acp/jsonrpc"
)

// TestSpecialFiles holds that nothing waits for a pipe.
func TestSpecialFiles(t *testing.T) {
	dir := realDir(t)
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Skip(err)
	}
	_, err := read(Dir(dir), pipe)
	if code, data := answer(t, err); code != jsonrpc.CodeInvalidParams || data["reason"] != "is not a regular file" {
		t.Error(code, data)
	}
	err = write(Dir(dir), pipe, "x")
	if code, data := answer(t, err); code != jsonrpc.CodeInvalidParams || data["reason"] != "is not a regular file" {
		t.Error(code, data)
	}
}

// TestDiskFull holds that a write that fails leaves nothing behind and the old
// text as it was.
func TestDiskFull(t *testing.T) {
	// The limit is the whole process's, and would also meet the log that go
	// test keeps.
	const child = "ACPHOST_SMALL_FILES"
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestDiskFull$")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	dir := realDir(t)
	path := filepath.Join(dir, "f")
	put(t, path, "old")
	signal.Ignore(syscall.SIGXFSZ) // which would end this process
	defer signal.Reset(syscall.SIGXFSZ)
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Skip(err)
	}
	small := was
	small.Cur = 1 << 10
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		t.Skip(err)
	}
	err := write(Dir(dir), path, strings.Repeat("new", 1<<10))
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, syscall.EFBIG) {
		t.Error(err)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 || get(t, path) != "old" {
		t.Errorf("%v is there, with %q", entries, get(t, path))
	}
}

func TestNotPermitted(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("root may read anything; only the translation is tested")
	}
	err := fileError("/f", &os.PathError{Op: "open", Path: "/f", Err: syscall.EACCES})
	if code, data := answer(t, err); code != jsonrpc.CodeInternalError || data["path"] != "/f" {
		t.Error(code, data)
	}
	if err := fileError("/f", syscall.EIO); err != syscall.EIO {
		t.Error(err)
	}
}
