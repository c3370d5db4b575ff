package file

import (
	"bufio"
	"errors"
	"io/fs"
	"os"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// Put makes a journal of records that have their numbers and hashes already, as [journal.Next] makes them: write adds
// them. There is no journal until all are on the disk: they are written under another name. So a call that was cut off
// can be repeated. The directory, which must exist, is not synced. Put fails with [journal.ErrExists]; an error of write
// ends it and is returned as it is. Nobody else may make that journal meanwhile.
func Put(dir, id string, write func(add func(*journal.Record) error) error) (err error) {
	if err := journal.CheckID(id); err != nil {
		return err
	}
	d := System{}
	b := newBackend(d, dir, "")
	name, next := b.name(id, suffix), b.name(id, renewed)
	if _, err := d.Stat(name); err == nil {
		return journal.ErrExists
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := d.Open(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, readBuffer)
	var line []byte
	err = write(func(r *journal.Record) error {
		line = journal.AppendLine(line[:0], r)
		_, err := out.Write(line)
		return err
	})
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, d.Remove(next))
	}
	return d.Rename(next, name)
}
