package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// HeadFile is the name of the file, beside those of the log, that has the number and the hash of the last entry. It is how
// [Verify] and [Log.Append] notice that the log was deleted, emptied or cut off. Logs of earlier versions have none until
// something is appended.
const HeadFile = "audit.head"

// A head is what HeadFile has.
type head struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// readHead returns the last entry that was written to the log in a directory, as far as that is known: a power loss may leave
// the head of the entry before. It is the zero value if there is no HeadFile.
func readHead(dir string) (h head, err error) {
	data, err := os.ReadFile(filepath.Join(dir, HeadFile))
	if errors.Is(err, fs.ErrNotExist) {
		return head{}, nil
	}
	if err != nil {
		return head{}, err
	}
	if err := json.Unmarshal(data, &h); err != nil || h.Seq < 1 || len(h.Hash) != hashLen {
		return head{}, fmt.Errorf("%w: %s does not say what the last entry is", ErrDamaged, HeadFile)
	}
	return h, nil
}

// keepHead writes what readHead returns. The caller holds the lock of the log.
func keepHead(dir string, last tail) error {
	data, err := json.Marshal(head{last.seq, last.hash})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, HeadFile+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, HeadFile))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// check returns what is wrong with a log whose last entry is another one than the head says, and that is not newer.
func (v *verifier) check(h head) error {
	switch {
	case h.Seq == 0:
		return nil
	case v.report.Entries == 0:
		return fmt.Errorf("%w: it is empty, and had %d entries", ErrDamaged, h.Seq)
	case v.report.Last < h.Seq:
		return fmt.Errorf("%w: it ends with entry %d, and entry %d was written", ErrDamaged, v.report.Last, h.Seq)
	case !v.knows:
		return fmt.Errorf("%w: entry %d is another one than was written", ErrDamaged, h.Seq)
	}
	return nil
}
