package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrDamaged says that a log was changed, or is not a log.
var ErrDamaged = errors.New("the audit log was changed or is damaged")

// Decode returns the entry in a line, which ends with a line feed, and its hash. It checks that hash, and
// that the line is as [Log.Append] writes it. Errors wrap [ErrDamaged].
func Decode(line []byte) (e Entry, hash string, err error) {
	at := len(line) - len(hashMember) - hashLen - len(lineEnd)
	if len(line) > maxLine || at < 1 || !bytes.HasSuffix(line, []byte(lineEnd)) || !bytes.HasPrefix(line[at:], []byte(hashMember)) {
		return Entry{}, "", fmt.Errorf("%w: this is not an entry", ErrDamaged)
	}
	said := string(line[at+len(hashMember) : len(line)-len(lineEnd)])
	if hash = hashOf(line[:at]); said != hash {
		return Entry{}, "", fmt.Errorf("%w: the hash does not match the entry", ErrDamaged)
	}
	d := json.NewDecoder(bytes.NewReader(append(bytes.Clone(line[:at]), '}')))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return Entry{}, "", fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) || e.Seq < 1 {
		return Entry{}, "", fmt.Errorf("%w: this is not an entry", ErrDamaged)
	}
	return e, hash, nil
}

// A Report is what [Verify] has found: entries First to Last are whole and in order. It is the zero value
// for an empty log.
type Report struct {
	Entries     int64
	First, Last int64  // numbers; First is more than 1 if older files were removed
	Hash        string // of the last entry
	// Contains is whether an entry has the hash that was given to Verify: the log has not been written
	// anew since that was noted.
	Contains bool
	// Torn is how many bytes of an incomplete entry are at the end, as a loss of power leaves them. It
	// was never acknowledged; the next append removes it.
	Torn int64
}

// Verify reads the log in a directory, with its older files, and checks that each entry is as it was
// written and follows the one before, and that those are there that [HeadFile] and the number of files say
// were written. anchor is the hash of an entry that is to be among them; "" means any. The error wraps
// [ErrDamaged] and says where the first damage is; the report has what is before it. That there is no log is
// an error that wraps [fs.ErrNotExist].
func Verify(dir, anchor string) (Report, error) {
	v := &verifier{anchor: anchor}
	last, err := readHead(dir) // before the log, to which others may append
	if err != nil {
		return Report{}, err
	}
	v.head = last
	err = files(dir, func(r io.Reader, name string, current bool) error {
		return v.read(r, name, current, func(Entry) error { return nil })
	})
	v.report.Hash = v.hash
	if errors.Is(err, fs.ErrNotExist) && last.Seq > 0 {
		err = fmt.Errorf("%w: its files are missing, and it had %d entries", ErrDamaged, last.Seq)
	}
	if err == nil {
		err = v.check(last)
	}
	if err == nil && anchor != "" && !v.report.Contains {
		err = fmt.Errorf("%w: no entry has the hash %s", ErrDamaged, anchor)
	}
	return v.report, err
}

// Read calls f with the entries of the log in a directory, oldest first, and verifies them as it goes. It
// stops at the first error, of f or of the log, apart from a loss that [Log.Append] has noted. A file that is rotated meanwhile may be read twice or not
// at all, which is an error that wraps [ErrDamaged]. That there is no log is an error that wraps
// [fs.ErrNotExist].
func Read(dir string, f func(Entry) error) error {
	v := &verifier{gaps: true}
	return files(dir, func(r io.Reader, name string, current bool) error { return v.read(r, name, current, f) })
}

// files calls f with each file of a log, oldest first.
func files(dir string, f func(r io.Reader, name string, current bool) error) error {
	found := false
	for n := Files - 1; n >= 0; n-- {
		file, err := os.Open(filepath.Join(dir, name(n)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("the audit log: %w", err)
		}
		found = true
		err = f(file, name(n), n == 0)
		if e := file.Close(); err == nil {
			err = e
		}
		if err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("there is no audit log in %s: %w", dir, fs.ErrNotExist)
	}
	return nil
}

// A verifier follows a chain through files.
type verifier struct {
	report Report
	hash   string
	anchor string
	gaps   bool // entries that were lost are no damage, if an entry says so
	head   head
	knows  bool // the entry of head is there
}

// read checks the entries of a file.
func (v *verifier) read(r io.Reader, name string, current bool, f func(Entry) error) error {
	in := bufio.NewReaderSize(r, maxLine)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		case errors.Is(err, io.EOF) && current:
			v.report.Torn = int64(len(line))
			return nil
		case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("the audit log: %s: %w", name, err)
		}
		e, hash, err := Decode(line)
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", name, n, err)
		}
		switch {
		case v.report.Entries == 0 && (e.Seq == 1) != (e.Prev == ""):
			return fmt.Errorf("%s, line %d: %w: entry %d cannot be the first one", name, n, ErrDamaged, e.Seq)
		case v.report.Entries == 0 && e.Seq > 1 && name != oldest && !v.gaps:
			return fmt.Errorf("%s, line %d: %w: the entries before entry %d are missing", name, n, ErrDamaged, e.Seq)
		case v.gaps && e.Action == actionLoss && e.Seq > v.report.Last+1:
		case v.report.Entries > 0 && (e.Seq != v.report.Last+1 || e.Prev != v.hash):
			return fmt.Errorf("%s, line %d: %w: entry %d does not follow entry %d", name, n, ErrDamaged, e.Seq, v.report.Last)
		}
		if v.report.Entries++; v.report.Entries == 1 {
			v.report.First = e.Seq
		}
		v.report.Last, v.hash = e.Seq, hash
		v.knows = v.knows || v.head == head{e.Seq, hash}
		v.report.Contains = v.report.Contains || hash == v.anchor
		if err := f(e); err != nil {
			return err
		}
	}
}
