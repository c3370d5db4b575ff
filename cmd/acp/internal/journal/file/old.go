package file

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
)

// Conversations of format 1, as chat and exec wrote them until there was this package, are read as if they were journals,
// and become journals when somebody owns them. Each of their lines has half of a SHA-256 of itself and of the one before. A
// process that found a conversation locked wrote a part of its own, <id>.2.jsonl and so on; parts are merged by time.

// maxParts bounds the parts of a conversation.
const maxParts = 10_000

// partOf returns the conversation that a name belongs to, and whether it is the name of the first part or no part at all.
func partOf(name string) (id string, first bool) {
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		if n, err := strconv.Atoi(name[i+1:]); err == nil && n > 1 {
			return name[:i], false
		}
	}
	return name, true
}

// oldHead returns what follows the first members of a line of format 1: its numbers, and the hash before it.
func oldHead(line []byte) (seq, epoch uint64, prev [16]byte, rest []byte, ok bool) {
	if seq = journal.SeqOf(line); seq == 0 {
		return 0, 0, prev, nil, false
	}
	_, rest, _ = bytes.Cut(line, []byte(`,"epoch":`))
	number, rest, ok := bytes.Cut(rest, []byte(`,"prev":"`))
	epoch, err := strconv.ParseUint(string(number[:min(len(number), 20)]), 10, 64)
	if !ok || err != nil || len(rest) < 2*len(prev) {
		return 0, 0, prev, nil, false
	}
	if _, err := hex.Decode(prev[:], rest[:2*len(prev)]); err != nil {
		return 0, 0, prev, nil, false
	}
	rest, ok = bytes.CutPrefix(rest[2*len(prev):], []byte(`","hash":"`))
	return seq, epoch, prev, rest, ok
}

// isOld reports whether a file has format 1: one of its first lines has.
func isOld(f io.ReaderAt, size int64) bool {
	head := make([]byte, min(size, 96))
	n, _ := f.ReadAt(head, 0)
	if journal.SeqOf(head[:n]) > 0 && !bytes.Contains(head[:n], []byte(`"prev":`)) {
		return false
	}
	head = make([]byte, min(size, searchStep))
	n, _ = f.ReadAt(head, 0)
	for line := range bytes.Lines(head[:n]) {
		if _, _, _, _, ok := oldHead(line); ok {
			return true
		}
	}
	return false
}

// openOld opens the parts of a conversation of format 1. There are none if it is a journal.
func (b *backend) openOld(id string, flag int) (parts []File, err error) {
	defer func() {
		if err != nil {
			closeAll(parts)
			parts = nil
		}
	}()
	for n := 1; n <= maxParts; n++ {
		name := id
		if n > 1 {
			name += "." + strconv.Itoa(n)
		}
		f, err := b.d.Open(b.name(name, suffix), flag)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return parts, err
		}
		parts = append(parts, f)
		info, err := f.Stat()
		if err != nil {
			return parts, err
		}
		if n == 1 && !isOld(f, info.Size()) {
			closeAll(parts)
			return nil, nil
		}
	}
	return parts, nil
}

func closeAll(parts []File) {
	for _, f := range parts {
		_ = f.Close() // nothing was written
	}
}

// oldOwner reports whether an earlier version of the program writes a conversation of format 1.
func (b *backend) oldOwner(id string) (bool, error) {
	parts, err := b.openOld(id, os.O_RDONLY)
	defer closeAll(parts)
	for _, f := range parts {
		if err != nil {
			break
		}
		var free bool
		if free, err = b.d.Lock(f, false); err == nil && !free {
			return true, nil
		}
	}
	return false, err
}

// renew makes a journal of a conversation of format 1, if it is one, which the caller has locked. It fails with an
// [*journal.OwnedError] while an earlier version of the program writes it.
func (b *backend) renew(ctx context.Context, id string) error {
	parts, err := b.openOld(id, os.O_RDWR)
	if err != nil || len(parts) == 0 {
		return err
	}
	defer func() { closeAll(parts) }()
	for _, f := range parts {
		switch free, err := b.d.Lock(f, true); {
		case err != nil:
			return fmt.Errorf("%w: %w", journal.ErrNoLocks, err)
		case !free:
			return &journal.OwnedError{ID: id, Who: "an earlier version of acp"}
		}
	}
	next := b.name(id, renewed)
	if err := b.writeNew(ctx, id, parts, next); err != nil {
		return errors.Join(err, b.d.Remove(next))
	}
	n := len(parts)
	closeAll(parts) // where files that are open cannot be renamed
	parts = nil
	err = b.d.Rename(next, b.name(id, suffix))
	if err == nil {
		err = b.d.SyncDir(b.dir)
	}
	for ; err == nil && n > 1; n-- { // nobody reads these any more
		err = b.d.Remove(b.name(id+"."+strconv.Itoa(n), suffix))
	}
	return err
}

// writeNew writes the lines of a conversation of format 1 as a journal, and syncs them.
func (b *backend) writeNew(ctx context.Context, id string, parts []File, name string) (err error) {
	out, err := b.d.Open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
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
	failed := oldLines(ctx, id, parts, func(line []byte, _ int64) bool {
		buf = append(append(buf, line...), '\n')
		return len(buf) < readBuffer || flush()
	})
	if failed == nil && err == nil && flush() {
		err = out.Sync()
	}
	return errors.Join(failed, err)
}

// scanOld is Scan of a conversation of format 1.
func (b *backend) scanOld(ctx context.Context, id string, yield func(line []byte, end int64) bool) error {
	parts, err := b.openOld(id, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer closeAll(parts)
	return oldLines(ctx, id, parts, yield)
}

// oldLines calls yield with the lines that the journal of a conversation of format 1 has.
func oldLines(ctx context.Context, id string, parts []File, yield func(line []byte, end int64) bool) error {
	var sources []*oldSource
	defer func() {
		for _, s := range sources {
			s.stop()
		}
	}()
	for n, f := range parts {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		s := &oldSource{}
		s.pull, s.stop = iter.Pull2(oldRecords(f, info.Size(), fmt.Sprintf("%s.%d", id, n+1)))
		sources = append(sources, s)
		s.advance()
	}
	var at journal.Head
	end := int64(0)
	for n := 1; ; n++ {
		var next *oldSource
		for _, s := range sources {
			if s.err != nil {
				return s.err
			}
			if s.more && (next == nil || s.at.Before(next.at)) {
				next = s
			}
		}
		if next == nil {
			return nil
		}
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		r, err := next.rec.renewed(id, at)
		if err != nil {
			return err
		}
		at = journal.Head{Seq: r.Seq, Hash: r.Hash}
		line := bytes.TrimSuffix(journal.AppendLine(nil, &r), []byte("\n"))
		end += int64(len(line)) + 1
		if !yield(line, end) {
			return nil
		}
		next.advance()
	}
}

// An oldSource is a part with its next record.
type oldSource struct {
	pull func() (oldRecord, error, bool)
	stop func()
	rec  oldRecord
	at   time.Time // of rec, and never before the preceding ones
	more bool
	err  error
}

func (s *oldSource) advance() {
	if s.rec, s.err, s.more = s.pull(); s.more && s.rec.At.After(s.at) {
		s.at = s.rec.At
	}
}

// An oldRecord is a record of format 1. One without a kind stands for one that is damaged.
type oldRecord struct {
	At   time.Time       `json:"at"`
	Kind string          `json:"kind"`
	Ref  string          `json:"ref"`
	Data json.RawMessage `json:"data"`
}

// oldRecords returns the records of a part, which are hashed from its name on.
func oldRecords(f io.ReaderAt, size int64, name string) iter.Seq2[oldRecord, error] {
	return func(yield func(oldRecord, error) bool) {
		root := sha256.Sum256([]byte(name))
		last, seq, bad := [16]byte(root[:]), uint64(0), uint64(0)
		damaged := func(n uint64) bool {
			for range min(n, maxParts) {
				if !yield(oldRecord{}, nil) {
					return false
				}
			}
			return true
		}
		more, err := lines(f, 0, size, func(line []byte, _ int64) bool {
			for _, piece := range oldPieces(line) {
				r, n, prev, hash, ok := parseOld(piece)
				if !ok {
					bad++
					continue
				}
				if n <= seq {
					continue // twice, or out of order
				}
				missing := n - seq - 1
				if missing == 0 && bad == 0 && prev != last {
					missing = 1 // another one was here
				}
				last, seq, bad = hash, n, 0
				if !damaged(missing) || !yield(r, nil) {
					return false
				}
			}
			return true
		})
		if err != nil {
			yield(oldRecord{}, err)
		} else if more {
			damaged(bad)
		}
	}
}

// oldPieces returns the lines in a line: several if the end of one was damaged.
func oldPieces(line []byte) (all [][]byte) {
	if _, _, _, _, ok := parseOld(line); ok {
		return [][]byte{line}
	}
	for {
		i := bytes.Index(line[min(1, len(line)):], []byte(`{"seq":`))
		if i < 0 {
			return append(all, line)
		}
		all = append(all, line[:i]) // without what was the end of the line
		line = line[i+1:]
	}
}

// parseOld parses a line of format 1 and checks its hash.
func parseOld(line []byte) (r oldRecord, seq uint64, prev, hash [16]byte, ok bool) {
	seq, epoch, prev, rest, ok := oldHead(line)
	sum, record, is := bytes.Cut(rest, []byte(`","record":`))
	record, ends := bytes.CutSuffix(record, []byte("}"))
	if !ok || !is || !ends || len(sum) != 2*len(hash) {
		return r, 0, prev, hash, false
	}
	_, err := hex.Decode(hash[:], sum)
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(prev[:len(prev):len(prev)], seq), epoch))
	h.Write(record)
	if err != nil || !bytes.Equal(h.Sum(nil)[:len(hash)], hash[:]) || json.Unmarshal(record, &r) != nil {
		return oldRecord{}, 0, prev, hash, false
	}
	return r, seq, prev, hash, r.Kind != ""
}

// renewed returns the record of a journal that a record becomes, behind another one.
func (r *oldRecord) renewed(id string, at journal.Head) (journal.Record, error) {
	d := journal.Draft{At: r.At, Data: r.Data}
	if y := r.At.Year(); r.At.IsZero() || y < 0 || y > 9999 {
		d.At = time.Unix(0, 0) // the same each time, since hashes depend on it
	}
	switch r.Kind {
	case "session":
		about := map[string]json.RawMessage{}
		if json.Unmarshal(r.Data, &about) == nil {
			delete(about, "conversation")
			if delete(about, "format"); at.Seq == 0 {
				about["format"] = strconv.AppendInt(nil, journal.Format, 10)
			}
			d.Data, _ = json.Marshal(about) // it was JSON
		}
		d.Kind = journal.KindSession
	case "update":
		d.Kind = journal.KindUpdate
		if bytes.HasPrefix(r.Data, []byte(`{"sessionUpdate":"user_message",`)) && !bytes.Contains(r.Data, []byte(`"`+ownmeta.Key+`"`)) {
			d.Kind = journal.KindPrompt // and no history that an agent has replayed
		}
	case "asked":
		d.Kind = journal.KindAsked
		d.Data, _ = json.Marshal(struct { // it was JSON
			ID      string          `json:"id"`
			Request json.RawMessage `json:"request"`
		}{r.Ref, r.Data})
	case "answered":
		d.Kind = journal.KindDecided
		if rest, ok := bytes.CutPrefix(r.Data, []byte(`{"asked":`)); ok {
			d.Data = append([]byte(`{"id":`), rest...)
		}
	case "turn":
		d.Kind = journal.KindEnd
	case "output", "reset", "lost":
		d.Kind = journal.Kind(r.Kind)
	default:
		d.Kind = journal.KindLost
		d.Data, _ = json.Marshal(journal.Lost{Kind: journal.Kind(r.Kind), Bytes: len(r.Data)})
	}
	made, err := journal.Next(id, at, 1, d)
	if err == nil && r.Kind == "" {
		made.Hash[0]++ // so that it is damaged here, too
	}
	return made, err
}
