package isolate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Exec replaces this process by bubblewrap. args are its program and the arguments of [Config.Wrap]: before the first
// "--", a directory after --bind-fd is replaced by the number of a descriptor of it. A directory that is a link, or that
// links lead to, is refused, so that nobody can replace one between the decision about it and the mount. Bubblewrap
// closes the descriptors: the agent could leave its root through them. Exec returns only if it fails.
func Exec(args []string) (err error) {
	if len(args) == 0 || !filepath.IsAbs(args[0]) {
		return errors.New("isolate: the program of bubblewrap is missing")
	}
	args = slices.Clone(args)
	var fds []int
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}()
	for i := 1; i+1 < len(args) && args[i] != "--"; i++ {
		if args[i] != bindFD {
			continue
		}
		i++
		fd, err := openDirectory(args[i])
		if err != nil {
			return fmt.Errorf("the directory %s of the session, without links: %w", args[i], err)
		}
		fds = append(fds, fd)
		args[i] = strconv.Itoa(fd)
	}
	for _, fd := range fds {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return err
		}
	}
	return &os.PathError{Op: "exec", Path: args[0], Err: unix.Exec(args[0], args, os.Environ())}
}

// openDirectory opens a directory, to name it only. It follows no link: the path is taken part by part.
func openDirectory(path string) (int, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return -1, unix.EINVAL
	}
	fd, err := unix.Open("/", flags, 0)
	if err != nil {
		return -1, err
	}
	for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		next, err := unix.Openat(fd, part, flags, 0)
		_ = unix.Close(fd)
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}
