package acp

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// errNew says to create a file and to leave one alone that exists.
var errNew = errors.New("it has to be new")

// writeFile writes a file on disk, as [Output.WriteFile] says. check is called when all is
// ready to be written; if it returns an error, nothing is, unless that is errNew.
func writeFile(path, text string, check func() error) error {
	// What a link leads to is replaced, not the link.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mode, exists := fs.FileMode(0o666), false // what the umask leaves of it
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(path); err == nil { // a link to nothing
			if err := check(); err != nil && !errors.Is(err, errNew) {
				return err
			}
			return os.WriteFile(path, []byte(text), mode)
		}
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return &fs.PathError{Op: "write", Path: path, Err: errors.New("not a regular file")}
	default:
		mode, exists = info.Mode().Perm(), true
		// Who may not write the file may not replace it either.
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		if names(info) > 1 { // the others would keep the old text
			return overwrite(f, text, check)
		}
		_ = f.Close() // nothing was written
	}
	refused, err := replaceFile(path, text, mode, exists, check)
	if refused && exists {
		if err := check(); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(text), mode)
	}
	return err
}

// overwrite writes a file in place, and closes it. The text comes before what is left of the
// old one is cut off, so that a crash leaves too much rather than too little.
func overwrite(f *os.File, text string, check func() error) error {
	err := check()
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil {
		err = f.Truncate(int64(len(text)))
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// replaceFile puts a new file in the place of one. It leaves nothing behind if it fails.
// refused says that the directory does not allow it; other failures, such as a full disk,
// would hit a file that is written in place as well, and leave nothing of it.
func replaceFile(path, text string, mode fs.FileMode, exists bool, check func() error) (refused bool, err error) {
	temp := filepath.Join(filepath.Dir(path), ".acp-"+rand.Text()+".tmp")
	// At no time can anybody read or write it who may not read or write the file.
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return errors.Is(err, fs.ErrPermission), err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(temp)
		}
	}()
	if exists {
		if err := f.Chmod(mode); err != nil {
			return false, err
		}
	}
	if _, err := f.WriteString(text); err != nil {
		return false, err
	}
	if err := f.Sync(); err != nil { // or else a loss of power could leave an empty file
		return false, err
	}
	if err := f.Close(); err != nil {
		return false, err
	}
	switch err := check(); {
	case errors.Is(err, errNew):
		return false, place(temp, path)
	case err != nil:
		return false, err
	}
	err = os.Rename(temp, path)
	return err != nil, err // a file that is mounted, for example
}

// place gives a file another name, which no file has.
func place(temp, path string) error {
	switch err := os.Link(temp, path); {
	case err == nil:
		_ = os.Remove(temp)
		return nil
	case errors.Is(err, fs.ErrExist):
		return ErrFileChanged
	}
	// There are no further names in this file system.
	if _, err := os.Lstat(path); err == nil {
		return ErrFileChanged
	}
	return os.Rename(temp, path)
}

// has returns [ErrFileChanged] unless what was read of a file is the text that it must have. If that is nil there must
// be no file, and the error is errNew if there is none.
func has(now string, err error, text *string) error {
	switch {
	case text == nil && errors.Is(err, fs.ErrNotExist):
		return errNew
	case text == nil && err == nil, errors.Is(err, fs.ErrNotExist), err == nil && now != *text:
		return ErrFileChanged
	}
	return err
}
