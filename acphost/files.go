package acphost

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

// DefaultMaxRead is the limit of [Files.MaxRead] unless it says otherwise.
const DefaultMaxRead = 64 << 20

// Files lends the files below some directories, its roots, to an agent: it is an
// acp.FileSystem, and acp.ReadOnly makes one of it that cannot be written to. It
// is made by [Dir] and needs no closing; the fields may be set before it is used
// for the first time. Its methods may be called from any goroutine.
//
// No path leads out of the roots, whatever symbolic links are or come to be on
// the way. Links within the root of a path are followed. A path is absolute,
// and “..” in it takes away the name before it. Anything else is refused with
// -32602.
type Files struct {
	// MaxRead bounds the text that is returned, in bytes; 0 means
	// DefaultMaxRead. For more the agent is told to ask for fewer lines.
	MaxRead int
	// Sync makes a write wait until the text is on the disk.
	Sync bool
	// Overlay returns the text of a file that has changes which are not
	// saved, if there is one. It is asked for every path that is read below
	// a root, also of files that do not exist.
	//
	// The paths that hooks get are those of the files themselves: the name of
	// the root as it was given to Dir, and what is below it without symbolic
	// links. A hook that opens files should mind that links may have been
	// made since; os.Root does.
	Overlay func(path string) (text string, ok bool)
	// PermitRead, if set, is called before a file is opened or Overlay is
	// called, also for files that do not exist, and may ask the user. If it
	// returns an error, that is the agent's answer, and nothing is read;
	// [fs.ErrPermission] tells it so.
	PermitRead func(ctx context.Context, path string) error
	// PermitWrite, if set, is called before anything is written or Saved is
	// called, and may ask the user. If it returns an error, that is the
	// agent's answer, and nothing is written; [fs.ErrPermission] tells it so.
	PermitWrite func(ctx context.Context, path string) error
	// Saved is offered every text that is to be written, before the disk
	// is. If it has handled the text, nothing is written here.
	Saved func(path, text string) (handled bool, err error)

	roots []string
	err   error // of finding the roots
}

// Dir returns the files below the given directories. A relative one is taken
// from the current directory of this process at once, but none has to exist
// before it is used. Without any there are no files at all.
func Dir(roots ...string) *Files {
	f := new(Files)
	f.roots, f.err = absolute(roots)
	return f
}

// ReadTextFile returns the text of a file or, if the request says so, up to
// limit of its lines, beginning with the given one. The first line is 1; 0
// means the same. A line ends with its line feed, which is returned with it, so
// that what is read piece by piece adds up to the file: carriage returns and a
// byte order mark are returned as they are. Beyond the last line there is "".
// A file that is not UTF-8 is refused, since JSON has no room for its bytes: an
// agent that writes such text back would destroy them. A file that does not exist is answered with -32002 and its path.
func (f *Files) ReadTextFile(ctx context.Context, req *acpv1.ReadTextFileRequest) (*acpv1.ReadTextFileResponse, error) {
	at, err := f.place(ctx, req.Path)
	if err != nil {
		return nil, err
	}
	root, name, err := at.resolve()
	if err != nil {
		return nil, fileError(req.Path, err)
	}
	defer func() { _ = root.Close() }()
	if err := f.permitted(ctx, f.PermitRead, at, root, name); err != nil {
		return nil, fileError(req.Path, err)
	}
	if f.Overlay != nil {
		if text, ok := f.Overlay(filepath.Join(at.root, name)); ok {
			return f.cut(ctx, strings.NewReader(text), req)
		}
	}
	file, err := open(root, name)
	if err != nil {
		return nil, fileError(req.Path, err)
	}
	defer func() { _ = file.Close() }()
	return f.cut(ctx, file, req)
}

// cut returns the lines of r that were asked for.
func (f *Files) cut(ctx context.Context, r io.Reader, req *acpv1.ReadTextFileRequest) (*acpv1.ReadTextFileResponse, error) {
	most := f.MaxRead
	if most <= 0 {
		most = DefaultMaxRead
	}
	skip, lines := uint32(0), ^uint32(0)
	if req.Line != nil && *req.Line > 1 {
		skip = *req.Line - 1
	}
	all := req.Limit == nil
	if !all {
		lines = *req.Limit
	}
	var text strings.Builder
	in := bufio.NewReaderSize(r, 64<<10)
	for n := 0; all || lines > 0; n++ {
		if n%64 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		part, err := in.ReadSlice('\n')
		switch {
		case skip > 0:
			if err == nil {
				skip--
			}
		case text.Len()+len(part) > most:
			return nil, jsonrpc.Errorf(jsonrpc.CodeInternalError, "The text has more than %d bytes; ask for fewer lines", most).
				WithData(map[string]any{"path": req.Path, "limit": most})
		default:
			text.Write(part)
			if err == nil {
				lines--
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil && err != bufio.ErrBufferFull {
			return nil, fileError(req.Path, err)
		}
	}
	if !utf8.ValidString(text.String()) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternalError, "The file is not text in UTF-8").
			WithData(map[string]string{"path": req.Path})
	}
	return &acpv1.ReadTextFileResponse{Content: text.String()}, nil
}

// WriteTextFile replaces the text of a file, or creates it and the directories
// that lead to it. Readers see the old text or the new one, nothing in between:
// the text is written to a new file in the same directory, which then takes the
// place of the old one and its permissions, though not its owner or its other
// names. The directory must therefore be writable. Of a symbolic link, what it
// leads to is replaced. A file that is a directory, a device or the like is
// refused with -32602.
func (f *Files) WriteTextFile(ctx context.Context, req *acpv1.WriteTextFileRequest) (*acpv1.WriteTextFileResponse, error) {
	at, err := f.place(ctx, req.Path)
	if err != nil {
		return nil, err
	}
	if err := f.write(ctx, at, req.Content); err != nil {
		return nil, fileError(req.Path, err)
	}
	return &acpv1.WriteTextFileResponse{}, nil
}

// Resolve returns the file or directory that a path leads to, as hooks get it,
// without touching it. The file need not exist. The errors are those of
// ReadTextFile. By the time the path is used, links may have been made: callers
// that want to use it safely must call ReadTextFile and WriteTextFile.
func (f *Files) Resolve(ctx context.Context, path string) (string, error) {
	at, err := f.place(ctx, path)
	if err != nil {
		return "", err
	}
	root, name, err := at.resolve()
	if err != nil {
		return "", fileError(path, err)
	}
	return filepath.Join(at.root, name), root.Close()
}

func (f *Files) write(ctx context.Context, at place, text string) error {
	root, name, err := at.resolve()
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	path := filepath.Join(at.root, name)
	if err := f.permitted(ctx, f.PermitWrite, at, root, name); err != nil {
		return err
	}
	if f.Saved != nil {
		if handled, err := f.Saved(path, text); handled || err != nil {
			return err
		}
	}
	return replace(root, name, text, f.Sync)
}

// permitted calls a hook that permits what is about to be done with a file; nil
// permits everything.
func (f *Files) permitted(ctx context.Context, permit func(context.Context, string) error, at place, root *os.Root, name string) error {
	if permit == nil {
		return nil
	}
	if err := permit(ctx, filepath.Join(at.root, name)); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// It may have taken its time, and is for this file only.
	switch now, err := at.follow(root); {
	case err != nil:
		return err
	case now != name:
		return invalid("path", "has come to lead somewhere else")
	}
	return nil
}

func (f *Files) place(ctx context.Context, path string) (place, error) {
	if ctx.Err() != nil {
		return place{}, context.Cause(ctx)
	}
	if f.err != nil {
		return place{}, f.err
	}
	return find(f.roots, path)
}

// open opens a regular file for reading.
func open(root *os.Root, name string) (*os.File, error) {
	// Opening a named pipe would otherwise wait for somebody who writes.
	file, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	fi, err := file.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = notRegular(fi)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

func notRegular(fi fs.FileInfo) error {
	if fi.IsDir() {
		return invalid("path", "is a directory")
	}
	return invalid("path", "is not a regular file")
}

// replace puts a file with the text in place.
func replace(root *os.Root, name, text string, sync bool) (err error) {
	mode, keep := fs.FileMode(0o666), false // what the umask leaves of it
	switch fi, err := root.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
		if err := root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return err
		}
	case err != nil:
		return err
	case !fi.Mode().IsRegular():
		return notRegular(fi)
	default:
		mode, keep = fi.Mode().Perm(), true
	}
	temp := filepath.Join(filepath.Dir(name), ".acp-"+rand.Text()+".tmp")
	// At no time can anybody read or write it who may not read or write the file.
	file, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = root.Remove(temp)
		}
	}()
	if keep {
		if err := file.Chmod(mode); err != nil {
			return err
		}
	}
	if _, err := file.WriteString(text); err != nil {
		return err
	}
	if sync {
		if err := file.Sync(); err != nil {
			return err
		}
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := root.Rename(temp, name); err != nil {
		return fmt.Errorf("replacing the file: %w", err)
	}
	return nil
}
