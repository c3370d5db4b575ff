package store

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

const (
	// scanBuffer is how much is read at once.
	scanBuffer = 256 << 10
	// scanStep is the same for one of many logs that are read together.
	scanStep = 16 << 10
	// maxLine bounds a line. A longer line cannot be a record.
	maxLine = MaxEvent + 64<<10
)

// A place says how far a log was read.
type place struct {
	Offset int64 // of the next line
	Seq    int64 // of the last record
	Hash   hash  // and its hash
}

// A Loss is a range of records of a log that cannot be read.
type Loss struct {
	Part        int   // 1 is the first file of the conversation
	First, Last int64 // numbers of the records
}

// Damage says what of a conversation cannot be read. The rest can.
type Damage struct {
	Lost []Loss
	// CutOff reports that the last record was cut off, for example because the process was killed
	// while it wrote.
	CutOff bool
	// Missing counts records at the end of a file that the index has seen and that no longer exist.
	Missing int64
	// Altered reports that consecutive records were not written one after the other.
	Altered bool
}

// maxLosses bounds the losses that a Damage names.
const maxLosses = 1000

// Records returns how many records are lost.
func (d *Damage) Records() (n int64) {
	for _, l := range d.Lost {
		n += l.Last - l.First + 1
	}
	return n
}

// String returns the damage in one line.
func (d *Damage) String() string {
	var says []string
	if n := d.Records(); n > 0 {
		var which []string
		for i, l := range d.Lost {
			if i == 5 {
				which = append(which, "…")
				break
			}
			name := fmt.Sprint(l.First)
			if l.Last > l.First {
				name = fmt.Sprintf("%d-%d", l.First, l.Last)
			}
			if l.Part > 1 {
				name = fmt.Sprintf("%d:%s", l.Part, name)
			}
			which = append(which, name)
		}
		what := "record is"
		if n > 1 {
			what = "records are"
		}
		says = append(says, fmt.Sprintf("%d %s damaged and left out (%s)", n, what, strings.Join(which, ", ")))
	}
	switch {
	case d.Missing == 1:
		says = append(says, "the last record is missing")
	case d.Missing > 1:
		says = append(says, fmt.Sprintf("the last %d records are missing", d.Missing))
	}
	if d.CutOff {
		says = append(says, "the last record was cut off")
	}
	if d.Altered {
		says = append(says, "records were removed or exchanged")
	}
	return strings.Join(says, "; ")
}

// lost records lost records.
func (d *Damage) lost(part int, first, last int64) {
	if n := len(d.Lost) - 1; n >= 0 && d.Lost[n].Part == part && (d.Lost[n].Last == first-1 || n+1 >= maxLosses) {
		d.Lost[n].Last = last
		return
	}
	d.Lost = append(d.Lost, Loss{part, first, last})
}

// A scanner reads the records of one log. It leaves out lines that are not whole records, and
// counts them.
type scanner struct {
	r      io.Reader
	part   int
	at     place
	damage *Damage
	step   int // what is read at once

	buf        []byte
	begin, end int // of what was read and not yet used
	err        error
	bad        int64    // lines that are not records, since the last record
	last       int64    // number of the last record, damaged ones included; set at the end
	cut        bool     // the last line had no end, and was not a record
	found      []record // in a damaged line
}

// newScanner returns a scanner of r, which begins at a place.
func newScanner(r io.Reader, part int, at place, damage *Damage) *scanner {
	return &scanner{r: r, part: part, at: at, damage: damage, step: scanBuffer}
}

// next returns the next record, or false at the end. Its data is valid until the next call.
func (s *scanner) next() (record, bool) {
	for {
		if len(s.found) > 0 {
			r := s.found[0]
			s.found = s.found[1:]
			if s.take(&r) {
				return r, true
			}
			continue
		}
		line, ended, ok := s.line()
		if !ok {
			s.finish()
			return record{}, false
		}
		if len(bytes.TrimRight(line, "\r")) == 0 {
			continue
		}
		r, err := parseLine(line)
		if err == nil {
			if s.take(&r) {
				return r, true
			}
			continue
		}
		if !ended {
			s.cut = true
			continue
		}
		s.bad++
		s.found = within(line)
	}
}

// take checks a record against the preceding one.
func (s *scanner) take(r *record) bool {
	if r.Seq <= s.at.Seq {
		s.damage.Altered = true // twice, or out of order
		return false
	}
	if r.Seq > s.at.Seq+1 {
		s.damage.lost(s.part, s.at.Seq+1, r.Seq-1)
	} else if s.at.Seq > 0 && r.Prev != s.at.Hash {
		s.damage.Altered = true
	}
	s.bad = 0
	s.at.Seq, s.at.Hash = r.Seq, r.Hash
	return true
}

// finish examines what follows the last record.
func (s *scanner) finish() {
	s.last = s.at.Seq + s.bad
	if s.bad > 0 {
		s.damage.lost(s.part, s.at.Seq+1, s.at.Seq+s.bad)
		s.bad = 0
	}
	if s.cut {
		s.damage.CutOff = true
	}
}

// within returns whole records in a line that is not one: those whose line feed was damaged.
func within(line []byte) (found []record) {
	begin := 0
	for begin < len(line) {
		end := len(line)
		if i := bytes.Index(line[begin+1:], []byte(lineSeq)); i >= 0 {
			end = begin + 1 + i
		}
		part := line[begin:end]
		for range 2 { // with what was the end of the line, or without
			if r, err := parseLine(part); err == nil {
				found = append(found, r)
				break
			}
			if len(part) > 0 {
				part = part[:len(part)-1]
			}
		}
		begin = end
	}
	return found
}

// line returns the next line without its end. ended is false for the last line if it has no end.
func (s *scanner) line() (line []byte, ended, ok bool) {
	searched := s.begin
	for {
		if i := bytes.IndexByte(s.buf[searched:s.end], '\n'); i >= 0 {
			line = s.buf[s.begin : searched+i]
			s.at.Offset += int64(len(line) + 1)
			s.begin = searched + i + 1
			return line, true, true
		}
		searched = s.end
		if s.err != nil {
			line = s.buf[s.begin:s.end]
			if len(line) > 0 {
				s.begin = s.end
				if _, err := parseLine(line); err == nil {
					s.at.Offset += int64(len(line))
				}
				return line, false, true
			}
			return nil, false, false
		}
		if s.end-s.begin > maxLine {
			s.skipLine()
			s.bad++
			return nil, true, true
		}
		searched -= s.begin
		s.fill()
		searched += s.begin
	}
}

// fill reads more.
func (s *scanner) fill() {
	if s.begin > 0 {
		s.end = copy(s.buf, s.buf[s.begin:s.end])
		s.begin = 0
	}
	if s.end == len(s.buf) {
		s.buf = append(s.buf, make([]byte, max(s.step, len(s.buf)))...)
	}
	n, err := s.r.Read(s.buf[s.end:])
	s.end += n
	s.err = err
}

// skipLine skips the rest of a line that is too long.
func (s *scanner) skipLine() {
	for {
		if i := bytes.IndexByte(s.buf[s.begin:s.end], '\n'); i >= 0 {
			s.at.Offset += int64(i + 1)
			s.begin += i + 1
			return
		}
		s.at.Offset += int64(s.end - s.begin)
		s.begin, s.end = 0, 0
		if s.err != nil {
			return
		}
		s.fill()
	}
}

// failed returns why reading ended before the end of the log.
func (s *scanner) failed() error {
	if s.err == io.EOF || s.err == nil {
		return nil
	}
	return s.err
}
