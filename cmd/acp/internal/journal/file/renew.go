package file

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// kept ends the name of what a part was, if a journal does not have all of it.
const kept = ".old"

// oldParts are the files of a conversation of format 1, in the order of their numbers.
type oldParts struct {
	b     *backend
	id    string
	parts []*oldPart
	lossy bool // a journal with their lines lacks something that they have or had
}

// An oldPart is one of them. It is closed while f is nil: if there are more than maxOpen, only the first one stays open.
type oldPart struct {
	n    int
	name string
	size int64
	f    File
}

// root returns the hash before the first record.
func (p *oldPart) root(id string) [16]byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s.%d", id, p.n))
	return [16]byte(sum[:])
}

func (p *oldPart) close() {
	if p.f != nil {
		_ = p.f.Close() // nothing was written
		p.f = nil
	}
}

func (o *oldParts) close() {
	for _, p := range o.parts {
		p.close()
	}
}

// open opens a part.
func (o *oldParts) open(p *oldPart, flag int) (err error) {
	p.f, err = o.b.d.Open(p.name, flag)
	return err
}

// measure notes how large a part is that is open.
func (p *oldPart) measure() error {
	info, err := p.f.Stat()
	if err == nil {
		p.size = info.Size()
	}
	return err
}

// numbers returns those of the parts that there are, without the first one.
func (o *oldParts) numbers() ([]int, error) {
	list, err := o.b.d.ReadDir(o.b.dir)
	return numbersIn(list)[o.id], err
}

// numbersIn returns the numbers of the parts in a directory, without the first ones.
func numbersIn(list []fs.DirEntry) map[string][]int {
	all := map[string][]int{}
	for _, e := range list {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if id, n := partOf(name); ok && n > 1 {
			all[id] = append(all[id], n)
		}
	}
	for _, numbers := range all {
		slices.Sort(numbers)
	}
	return all
}

// expected is numbers for a reader. It remembers what the last list has seen, so that one who reads everything does not read
// the directory for each conversation. An earlier version has begun a new part since then behind the last one only.
func (o *oldParts) expected() ([]int, error) {
	o.b.mu.Lock()
	listed := o.b.listed
	o.b.mu.Unlock()
	if listed == nil {
		return o.numbers()
	}
	return listed[o.id], nil
}

// openOld opens the parts of a conversation of format 1. It returns nil if it is a journal, or has become one meanwhile.
func (b *backend) openOld(id string, flag int) (o *oldParts, err error) {
	all := &oldParts{b: b, id: id}
	defer func() {
		if o == nil {
			all.close()
		}
	}()
	look := all.numbers
	if flag == os.O_RDONLY {
		look = all.expected
	}
	numbers := []int{1}
	for i := 0; i < len(numbers); i++ {
		p := &oldPart{n: numbers[i], name: b.name(id, suffix)}
		if p.n > 1 {
			p.name = b.name(id+"."+strconv.Itoa(p.n), suffix)
		}
		err := all.open(p, flag)
		if errors.Is(err, fs.ErrNotExist) {
			continue // there was none, or the first one has gone, too, and it is a journal
		}
		if err != nil {
			return nil, err
		}
		all.parts = append(all.parts, p)
		if err := p.measure(); err != nil {
			return nil, err
		}
		if p.n == 1 {
			if !isOld(p.f, p.size) {
				return nil, nil
			}
			more, err := look()
			if err != nil {
				return nil, err
			}
			numbers = append(numbers, more...)
		}
		if next := p.n + 1; next <= maxParts && !slices.Contains(numbers[i:], next) {
			numbers = slices.Insert(numbers, i+1, next)
		}
		all.lossy = all.lossy || p.n > len(all.parts)
		if len(all.parts) > maxOpen {
			p.close()
		}
	}
	if len(all.parts) == 0 || all.parts[0].n > 1 {
		return nil, nil
	}
	first := all.parts[0]
	if len(all.parts) > maxOpen {
		for _, p := range all.parts[1:] {
			p.close()
		}
	}
	// An owner gives the name of the first part to the journal before it removes the others.
	if same, err := b.same(first.f, first.name); err != nil || !same {
		return nil, err
	}
	return all, nil
}

// scanOld is Scan of a conversation of format 1. It reports whether it still was one.
func (b *backend) scanOld(ctx context.Context, id string, yield func(line []byte, end int64) bool) (bool, error) {
	o, err := b.openOld(id, os.O_RDONLY)
	if err != nil || o == nil {
		return false, err
	}
	defer o.close()
	return true, o.lines(ctx, yield)
}

// Computed is that of [journal.Container]: a conversation of format 1 is a journal whose hashes are computed.
func (b *backend) Computed(_ context.Context, id string) (bool, error) {
	f, size, err := b.openScan(id)
	if err != nil {
		return false, err
	}
	return isOld(f, size), f.Close()
}

// oldOwner reports whether an earlier version of the program writes a conversation of format 1.
func (b *backend) oldOwner(id string) (bool, error) {
	o, err := b.openOld(id, os.O_RDONLY)
	if err != nil || o == nil {
		return false, err
	}
	defer o.close()
	for _, p := range o.parts {
		if p.f == nil {
			if err := o.open(p, os.O_RDONLY); err != nil {
				return false, err
			}
		}
		free, err := b.d.Lock(p.f, false)
		if p.close(); err != nil || !free {
			return !free && err == nil, err
		}
	}
	return false, nil
}

// renew makes a journal of a conversation of format 1, if it is one, which the caller has locked. It fails with an
// [*journal.OwnedError] while an earlier version of the program writes it.
func (b *backend) renew(ctx context.Context, id string) error {
	o, err := b.openOld(id, os.O_RDWR)
	if err != nil || o == nil {
		return err
	}
	defer o.close()
	if err := o.lock(ctx); err != nil {
		return err
	}
	next := b.name(id, renewed)
	err = o.write(ctx, next)
	if err == nil && o.lossy {
		err = o.keepFirst(ctx)
	}
	if err == nil {
		err = o.replace(next)
	}
	if err != nil {
		if o.lossy {
			_ = b.d.Remove(b.name(id, ".1"+kept))
		}
		_ = b.d.Remove(next) // the next owner writes it anew
		return err
	}
	if err := b.d.SyncDir(b.dir); err != nil {
		return err
	}
	o.close() // where files that are open cannot be renamed or removed
	for _, p := range o.parts[1:] {
		// Nobody reads these any more. One that has to stay is deleted with the journal.
		if o.lossy {
			_ = b.d.Rename(p.name, b.name(id+"."+strconv.Itoa(p.n), kept))
		} else {
			_ = b.d.Remove(p.name)
		}
	}
	return nil
}

func (o *oldParts) owned() error {
	return &journal.OwnedError{ID: o.id, Who: "an earlier version of acp"}
}

// lock locks the parts as an earlier version does, as long as they are open.
func (o *oldParts) lock(ctx context.Context) error {
	for _, p := range o.parts {
		opened := p.f == nil
		if opened {
			if err := o.open(p, os.O_RDWR); err != nil {
				return err
			}
		}
		for n := 0; ; n++ {
			free, err := o.b.d.Lock(p.f, true)
			if err != nil {
				return fmt.Errorf("%w: %w", journal.ErrNoLocks, err)
			}
			if free {
				break
			}
			if n >= lockTries {
				return o.owned()
			}
			select {
			case <-time.After(lockPause): // somebody may ask whether it is owned
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := p.measure(); err != nil {
			return err
		}
		if opened {
			p.close()
		}
	}
	return nil
}

// write writes the lines of the journal, and syncs them.
func (o *oldParts) write(ctx context.Context, name string) (err error) {
	out, err := o.b.d.Open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	var buf []byte
	flush := func() bool {
		_, err = out.Write(buf)
		buf = buf[:0]
		return err == nil
	}
	failed := o.lines(ctx, func(line []byte, _ int64) bool {
		buf = append(append(buf, line...), '\n')
		return len(buf) < readBuffer || flush()
	})
	if failed == nil && err == nil && flush() {
		err = out.Sync()
	}
	return errors.Join(failed, err)
}

// keepFirst copies the first part, whose name the journal gets. It is not renamed, since without that name there would be
// no conversation for a moment.
func (o *oldParts) keepFirst(ctx context.Context) (err error) {
	out, err := o.b.d.Open(o.b.name(o.id, ".1"+kept), os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	in := io.NewSectionReader(o.parts[0].f, 0, o.parts[0].size)
	for err == nil && ctx.Err() == nil {
		_, err = io.CopyN(out, in, readBuffer)
	}
	if err == io.EOF {
		return errors.Join(out.Sync(), o.b.d.SyncDir(o.b.dir))
	}
	return errors.Join(err, ctx.Err())
}

// replace gives the name of the first part to the journal, unless an earlier version has written to a part meanwhile, or to
// a new one.
func (o *oldParts) replace(next string) error {
	if o.b.closeFirst {
		o.close() // and so unlocks them
	}
	numbers, err := o.numbers()
	if err != nil {
		return err
	}
	if len(numbers) != len(o.parts)-1 {
		return o.owned()
	}
	for _, p := range o.parts {
		info, err := o.b.d.Stat(p.name)
		if err != nil {
			return err
		}
		if info.Size() != p.size {
			return o.owned()
		}
	}
	return o.b.d.Rename(next, o.parts[0].name)
}
