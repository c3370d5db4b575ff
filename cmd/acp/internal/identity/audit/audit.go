// Package audit keeps the log of who did what at a gateway. It is a file of JSON lines in which each
// entry has the hash of the one before, so that nobody can change, remove or insert an entry unnoticed
// without writing all later ones anew. Against those who can do that, note the newest hash elsewhere: see
// [Report.Contains].
//
// Several processes may write to a log at the same time.
package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/goacp/acp/cmd/acp/internal/filelock"
	"github.com/goacp/acp/trace"
)

// Bounds of a log.
const (
	// MaxFile is the size in bytes after which a file is rotated. If that fails nothing is written.
	MaxFile = 16 << 20
	// Files is how many files there are, the current one included. The oldest one is removed.
	Files = 8

	maxField = 256      // of the text in a field, in bytes; the rest is cut off
	maxText  = 1 << 10  // of Detail
	mostRead = 8 << 10  // of any text: what is behind is not even searched for secrets
	maxLine  = 32 << 10 // in JSON, where a byte may become six
)

// File is the name of the current file of a log in its directory. Older ones are audit.1.jsonl, the
// newest of them, to audit.7.jsonl.
const File = "audit.jsonl"

// An Entry says who did what. Texts are cut off at 256 bytes, Detail at 1,024. Secrets do not belong in
// an entry; what looks like one is replaced nevertheless: credentials and tickets of package identity, and
// what a [trace.Redactor] recognizes.
type Entry struct {
	// Seq numbers entries from 1, and Time is when an entry was written. [Log.Append] sets both.
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`

	User    string `json:"user,omitempty"`
	Device  string `json:"device,omitempty"`  // its name
	Address string `json:"address,omitempty"` // where it is
	Action  string `json:"action"`            // such as permission.answer
	Session string `json:"session,omitempty"`
	Outcome string `json:"outcome,omitempty"` // such as allowed
	// Shown is the SHA-256 of what the user had on the screen when deciding, in hexadecimal digits.
	Shown  string `json:"shown,omitempty"`
	Detail string `json:"detail,omitempty"`

	// Prev is the hash of the entry before, in hexadecimal digits; "" in the first one. [Log.Append]
	// sets it.
	Prev string `json:"prev"`
}

// secrets finds credentials and tickets (package identity). Other secrets are what a [trace.Redactor] finds.
var secrets = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`acpt?_[a-z2-7]{16}_[a-z2-7]+`) })

// clean returns a text without secrets, of at most max bytes.
func clean(r *trace.Redactor, text string, max int) string {
	text = text[:min(len(text), mostRead)]
	text = r.Text(secrets().ReplaceAllString(strings.ToValidUTF8(text, "\uFFFD"), "«redacted»"))
	if len(text) <= max {
		return text
	}
	text = text[:max]
	for !utf8.ValidString(text) { // the last character was cut
		text = text[:len(text)-1]
	}
	return text
}

// A Log is open for appending. It is safe for concurrent use. It holds no file open between appends, so
// there is nothing to close.
type Log struct {
	dir string
	max int64 // of a file

	mu   sync.Mutex
	is   os.FileInfo // the current file after the last append of this process; nil if that is not known
	tail tail        // its last entry
}

// A tail is the end of a chain.
type tail struct {
	seq  int64
	hash string
}

// Open returns the log in a directory, which is created with mode 0700 by the first append.
func Open(dir string) *Log { return &Log{dir: dir, max: MaxFile} }

// Append writes an entry at the end of the log. It returns when the entry is on the disk (fsync): what
// was acknowledged survives a loss of power. That takes milliseconds, so it is not for what happens
// often. An incomplete line, as a loss of power leaves it while an entry is written, is removed first,
// and an entry says so. A damaged last entry is an error that wraps [ErrDamaged]: the log is then left as
// it is. If entries are missing at the end, which [HeadFile] knows, another entry says so and has the next
// number, so that [Verify] notices that from then on, too.
func (l *Log) Append(e Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return fmt.Errorf("the audit log: %w", err)
	}
	err := filelock.Do(context.Background(), filepath.Join(l.dir, "audit.lock"), func() error { return l.append(e) })
	if err != nil {
		l.is = nil
		return fmt.Errorf("the audit log: %w", err)
	}
	return nil
}

// Note writes an entry about what is done and stays done: that it cannot be written is only logged. Both
// may be nil: without a log nothing is written, and without a logger nobody hears of a failure.
func (l *Log) Note(logger *slog.Logger, e Entry) {
	if l == nil {
		return
	}
	if err := l.Append(e); err != nil && logger != nil {
		logger.Error("the audit log cannot be written", "error", err)
	}
}

// append writes an entry. The caller holds the lock of the log.
func (l *Log) append(e Entry) (err error) {
	f, size, torn, lost, err := l.current()
	if err == nil && size >= l.max { // before it is written to, so that it never grows if it cannot be renamed
		if err = errors.Join(f.Close(), l.rotate()); err == nil {
			f, err = l.open()
		}
		size = 0
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var out []byte
	if torn > 0 {
		out = l.add(out, Entry{Action: "audit.repair", Outcome: "done", Detail: fmt.Sprintf("an incomplete entry of %d bytes was removed", torn)})
	}
	if lost != "" {
		out = l.add(out, Entry{Action: actionLoss, Outcome: "found", Detail: lost})
	}
	out = l.add(out, e)
	if _, err := f.Write(out); err != nil {
		return errors.Join(err, f.Truncate(size)) // so that others find whole lines
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if size == 0 { // its name must survive, too
		syncDir(l.dir)
	}
	if err := keepHead(l.dir, l.tail); err != nil {
		return err
	}
	l.is, err = f.Stat()
	return err
}

func (l *Log) open() (*os.File, error) {
	return os.OpenFile(filepath.Join(l.dir, File), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
}

// current opens the current file, with its size, finds the end of the chain, and removes an incomplete
// entry, of which it returns the size. lost says which entries are missing; the chain then continues behind them.
func (l *Log) current() (_ *os.File, size, torn int64, lost string, err error) {
	f, err := l.open()
	if err != nil {
		return nil, 0, 0, "", err
	}
	is, err := f.Stat()
	if err != nil {
		return nil, 0, 0, "", errors.Join(err, f.Close())
	}
	size = is.Size()
	if l.is == nil || l.is.Size() != size || !os.SameFile(l.is, is) { // another process has written
		l.tail, torn, err = l.end(f, size)
		if err == nil && torn > 0 {
			err = f.Truncate(size - torn)
			size -= torn
		}
		if err == nil {
			lost, err = l.lost()
		}
	}
	if err != nil {
		return nil, 0, 0, "", errors.Join(err, f.Close())
	}
	return f, size, torn, lost, nil
}

// lost says which entries are missing at the end of the log, which continues behind them then.
func (l *Log) lost() (string, error) {
	h, err := readHead(l.dir)
	if err != nil || h.Seq <= l.tail.seq {
		return "", err
	}
	text := fmt.Sprintf("entries %d to %d are missing", l.tail.seq+1, h.Seq)
	l.tail = tail{h.Seq, h.Hash}
	return text, nil
}

// add appends the line of an entry, which becomes the end of the chain.
func (l *Log) add(dst []byte, e Entry) []byte {
	r := new(trace.Redactor)
	for _, field := range []*string{&e.User, &e.Device, &e.Address, &e.Action, &e.Session, &e.Outcome, &e.Shown} {
		*field = clean(r, *field, maxField)
	}
	e.Detail = clean(r, e.Detail, maxText)
	e.Seq, e.Prev, e.Time = l.tail.seq+1, l.tail.hash, time.Now().UTC()
	line, err := json.Marshal(e)
	if err != nil { // a year of five digits
		e.Time = time.Time{}
		line, _ = json.Marshal(e)
	}
	line = line[:len(line)-1] // the hash is of everything before it
	l.tail = tail{e.Seq, hashOf(line)}
	return append(append(dst, line...), hashMember+l.tail.hash+lineEnd...)
}

// A line ends with the hash of what is before hashMember.
const (
	hashMember = `,"hash":"`
	lineEnd    = "\"}\n"
	hashLen    = 2 * sha256.Size
)

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// end returns the last entry of the log, and how many bytes of an incomplete one follow it.
func (l *Log) end(f *os.File, size int64) (last tail, torn int64, err error) {
	if size == 0 {
		older, err := os.Open(filepath.Join(l.dir, name(1)))
		if errors.Is(err, fs.ErrNotExist) {
			return tail{}, 0, nil
		}
		if err != nil {
			return tail{}, 0, err
		}
		defer older.Close()
		if size, err = older.Seek(0, io.SeekEnd); err != nil {
			return tail{}, 0, err
		}
		last, torn, err = endOf(older, size)
		if err == nil && torn > 0 { // only whole files are rotated
			err = fmt.Errorf("%w: %s ends within an entry", ErrDamaged, name(1))
		}
		return last, 0, err
	}
	return endOf(f, size)
}

func endOf(f *os.File, size int64) (last tail, torn int64, err error) {
	buf := make([]byte, min(size, 2*maxLine))
	if _, err := f.ReadAt(buf, size-int64(len(buf))); err != nil {
		return tail{}, 0, err
	}
	whole := buf[:bytes.LastIndexByte(buf, '\n')+1]
	torn = int64(len(buf) - len(whole))
	if len(whole) == 0 {
		if torn < size {
			return tail{}, 0, fmt.Errorf("%w: %s ends with more than %d bytes that are not an entry", ErrDamaged, f.Name(), torn)
		}
		return tail{}, torn, nil // the first entry of a log
	}
	line := whole[bytes.LastIndexByte(whole[:len(whole)-1], '\n')+1:]
	e, hash, err := Decode(line)
	if err != nil {
		return tail{}, 0, fmt.Errorf("the last entry of %s: %w", f.Name(), err)
	}
	return tail{e.Seq, hash}, torn, nil
}

// rotate renames the files, so that the next entry begins a new one. The chain continues in it.
func (l *Log) rotate() error {
	for n := Files - 2; n >= 0; n-- {
		err := os.Rename(filepath.Join(l.dir, name(n)), filepath.Join(l.dir, name(n+1)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the file is full and cannot be rotated: %w", err)
		}
	}
	syncDir(l.dir)
	return nil
}

// actionLoss is the action of an entry that says that others are missing before it.
const actionLoss = "audit.loss"

// oldest is the name of the file before which there were others, which have been removed.
var oldest = name(Files - 1)

// name returns the name of the nth older file.
func name(n int) string {
	if n == 0 {
		return File
	}
	return fmt.Sprintf("audit.%d.jsonl", n)
}

// syncDir has names survive a loss of power, where directories can be synced.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
