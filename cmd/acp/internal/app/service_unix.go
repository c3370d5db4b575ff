//go:build unix

package app

import (
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// ownerOf returns who owns a file, and whether that is the user of this process.
func ownerOf(info fs.FileInfo) (name string, mine bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", true
	}
	name = strconv.Itoa(int(stat.Uid))
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	return name, int(stat.Uid) == os.Getuid()
}
