package ramtemp

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

const (
	shm        = "/dev/shm"
	tmpfsMagic = 0x01021994
	noExec     = 0x8 // tests start programs that they have built

	least = 36 * 36 * 36 // the least number of four digits to the base of 36
)

// mkdir makes a directory of its own in memory, and removes those of tests that were
// killed. Its name is short, since sockets below it have paths of at most 107 bytes.
func mkdir() (dir string, remove func() error, err error) {
	if err := suits(shm); err != nil {
		return "", nil, err
	}
	return mkdirIn(shm)
}

// suits returns why a file system cannot be used, or nil.
func suits(base string) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(base, &st); err != nil {
		return err
	}
	if int64(st.Type) != tmpfsMagic || st.Flags&noExec != 0 || int64(st.Bavail)*int64(st.Bsize) < minFree {
		return errNoRoom
	}
	return nil
}

// mkdirIn is mkdir for a directory that suits.
func mkdirIn(base string) (dir string, remove func() error, err error) {
	left, _ := filepath.Glob(base + "/acp????")
	for _, dir := range left {
		if f, err := lock(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = f.Close()
		}
	}
	for tries := 0; dir == "" || errors.Is(err, fs.ErrExist) && tries < 100; tries++ {
		dir = base + "/acp" + strconv.FormatUint(least+rand.Uint64N(36*least-least), 36)
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		return "", nil, err
	}
	f, err := lock(dir)
	if err != nil { // other tests have just taken it for one that was left
		return "", nil, err
	}
	remove = func() error { return errors.Join(os.RemoveAll(dir), f.Close()) }
	if err := os.Chmod(dir, 0o755); err != nil { // servers of databases run as another user
		return "", nil, errors.Join(err, remove())
	}
	return dir, remove, nil
}

// lock locks a directory until the file is closed.
func lock(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
