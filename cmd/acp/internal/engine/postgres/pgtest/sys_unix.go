//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const (
	quit = syscall.SIGQUIT // "immediate shutdown" for PostgreSQL
	kill = syscall.SIGKILL
)

// serverUser is whom the server runs as: not root, which it refuses.
func serverUser() (uid, gid int, err error) {
	if os.Getuid() != 0 {
		return os.Getuid(), os.Getgid(), nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return 0, 0, err
		}
	}
	uid, e1 := strconv.Atoi(u.Uid)
	gid, e2 := strconv.Atoi(u.Gid)
	if e1 != nil {
		return 0, 0, e1
	}
	return uid, gid, e2
}

// ownedByServer gives a file to the user of the server.
func ownedByServer(path string) error {
	uid, gid, err := serverUser()
	if err != nil {
		return err
	}
	return os.Chown(path, uid, gid)
}

// asServer has a command run as that user.
func asServer(cmd *exec.Cmd) {
	if uid, gid, err := serverUser(); err == nil && os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		cmd.Dir = "/"
	}
}

// signalAll sends a signal to a process and to its children. Each child of PostgreSQL has a process group of its own.
func signalAll(pid int, signal syscall.Signal) {
	all := []int{pid}
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // nothing outside of Linux
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			if child, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
				all = append(all, child)
			}
		}
	}
	for _, pid := range all {
		_ = syscall.Kill(pid, signal)
	}
}

// Pause stops all processes of the server, which notices nothing of it.
func (s *Server) Pause() { signalAll(s.cmd.Process.Pid, syscall.SIGSTOP) }

// Continue has them continue.
func (s *Server) Continue() { signalAll(s.cmd.Process.Pid, syscall.SIGCONT) }

// Limit gives the data of a server a file system of its own, of some MiB, before it has any. It reports an error where
// that cannot be done.
func (s *Server) Limit(size int) error {
	if err := os.Mkdir(s.Data(), 0o700); err != nil {
		return err
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm,mode=700", size), "tmpfs", s.Data()).CombinedOutput(); err != nil {
		return fmt.Errorf("mount: %w: %s", err, out)
	}
	s.unmount = func() { _ = exec.Command("umount", "-l", s.Data()).Run() }
	return ownedByServer(s.Data())
}

// Fill leaves no room in the file system of a server that is limited, until the function it returns is called.
func (s *Server) Fill(t testing.TB) (free func()) {
	t.Helper()
	if s.unmount == nil {
		t.Fatal("the server has no file system of its own")
	}
	path := filepath.Join(s.Data(), "ballast")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	return func() { _ = os.Remove(path) }
}
