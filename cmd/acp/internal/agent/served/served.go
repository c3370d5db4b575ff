// Package served remembers what the model of a session knows of files: which lines it was
// shown, what it has written itself, and what of that has changed since.
//
// A [Record] is that of a session. The tools that show lines of files put them into it, and
// those that change files ask it, so that nothing is changed that the model has not seen as
// it is. The record is kept in the journal of the session as a [State] each time it changes:
// the hash of the file, and which lines of it are known. The texts are not in there. If a file
// is not as the journal says when a session is resumed, its lines count as not shown.
//
// Bounds: 16 MiB of texts and 4096 files for a session. What was used least recently is
// forgotten first, and counts as not shown then.
package served

import (
	"slices"
	"sync"
)

// Bounds of a record.
const (
	MaxSize  = 16 << 20 // bytes of texts
	MaxFiles = 4096
	// maxFile bounds a file that is remembered, in bytes.
	maxFile = MaxSize / 4
)

// A Record is what the model of a session knows of files. Paths are absolute, with links
// followed. Its methods may be called from any goroutine, and on nil, which remembers
// nothing. The zero value knows nothing.
type Record struct {
	// Keep is called with each new state, one at a time, unless it is nil. It is set before
	// the record is used.
	Keep func(State)

	mu    sync.Mutex
	files map[string]*entry
	size  int
	uses  int64
}

type entry struct {
	file *File
	size int
	used int64
}

// A State is what is known of a file, as it is kept.
type State struct {
	Path string  `json:"path"`
	Sum  string  `json:"sum,omitempty"` // the hash of its text; "" if nothing is known any more
	Of   int     `json:"of,omitempty"`  // lines
	Seen []Range `json:"seen,omitempty"`
	Made []Made  `json:"made,omitempty"`
	Lost bool    `json:"lost,omitempty"`
}

// File returns what is known of a file that has a text now.
func (r *Record) File(path, text string) *File {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.at(path, text)
	r.put(path, f, true)
	return f
}

// at returns what is known of a file that has a text now.
func (r *Record) at(path, text string) *File {
	e := r.files[path]
	if e == nil {
		return (*File)(nil).At(text)
	}
	return e.file.At(text)
}

// Show remembers that the model was shown lines of a file that has a text. An empty file
// is shown by no lines.
func (r *Record) Show(path, text string, lines ...Range) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.at(path, text)
	if f.of == 0 {
		lines = []Range{{1, 0}}
	}
	for _, l := range lines {
		f = f.Shown(l.From, l.N)
	}
	r.keep(path, f, true)
}

// Glimpse is Show for lines of a file that were found in passing. It is the first to be
// forgotten.
func (r *Record) Glimpse(path, text string, lines ...Range) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.files[path] == nil && (r.size+len(text) > MaxSize/2 || len(r.files) >= MaxFiles/2) {
		return
	}
	f := r.at(path, text)
	for _, l := range lines {
		f = f.Shown(l.From, l.N)
	}
	r.keep(path, f, false)
}

// Change remembers that the model has changed a file by edits, or, if there are none, has
// written all of it. A file that did not exist was empty.
func (r *Record) Change(path, before, after string, made ...Made) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep(path, r.at(path, before).Changed(after, len(made) == 0, made...), true)
}

// Move remembers that a file has another path now; Move to "" that there is none any more.
func (r *Record) Move(path, to string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.files[path]
	if e == nil {
		return
	}
	r.drop(path)
	r.say(State{Path: path})
	if to != "" {
		r.keep(to, e.file, true)
	}
}

// Restore takes a state that was kept, in the order in which they were.
func (r *Record) Restore(s State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Sum == "" {
		r.drop(s.Path)
		return
	}
	f := &File{sum: s.Sum, of: s.Of, lost: s.Lost, made: s.Made[max(0, len(s.Made)-maxMade):]}
	for _, l := range s.Seen {
		if l.From >= 1 && l.N >= 1 && l.From <= f.of && l.N <= f.of-l.From+1 {
			f.see(l)
		}
	}
	r.put(s.Path, f, true)
}

// keep puts a file into the record, and says so if that is new. What the model has not seen
// of the changes of others is not kept: after a restart it counts as lost.
func (r *Record) keep(path string, f *File, used bool) {
	was := r.files[path]
	r.put(path, f, used)
	lost := f.lost || f.Stale()
	if was != nil && was.file.sum == f.sum && (was.file.lost || was.file.Stale()) == lost &&
		slices.Equal(was.file.seen, f.seen) && slices.Equal(was.file.made, f.made) {
		return
	}
	r.say(State{Path: path, Sum: f.sum, Of: f.of, Seen: f.seen, Made: f.made, Lost: lost})
}

func (r *Record) say(s State) {
	if r.Keep != nil {
		r.Keep(s)
	}
}

// put puts a file into the record, and forgets others if there is too much in it.
func (r *Record) put(path string, f *File, used bool) {
	if r.files == nil {
		r.files = map[string]*entry{}
	}
	if f.size() > maxFile {
		f = f.forgotten()
	}
	e := &entry{file: f, size: f.size()}
	if was := r.files[path]; was != nil {
		e.used = was.used
		r.size -= was.size
	}
	if used {
		r.uses++
		e.used = r.uses
	}
	r.files[path] = e
	r.size += e.size
	for r.size > MaxSize || len(r.files) > MaxFiles {
		r.forget()
	}
}

// forget forgets what was used least recently: its lines, or, if there are too many files,
// that there were any.
func (r *Record) forget() {
	oldest, many := "", len(r.files) > MaxFiles
	for path, e := range r.files {
		if (many || e.size > emptySize) && (oldest == "" || e.used < r.files[oldest].used) {
			oldest = path
		}
	}
	e := r.files[oldest]
	r.drop(oldest)
	if !many {
		f := e.file.forgotten()
		r.files[oldest] = &entry{file: f, size: f.size(), used: e.used}
		r.size += f.size()
	}
}

// forgotten is a file of which is known that something was shown.
func (f *File) forgotten() *File { return &File{sum: "-", lost: f.lost || len(f.seen) > 0} }

func (r *Record) drop(path string) {
	if e := r.files[path]; e != nil {
		r.size -= e.size
		delete(r.files, path)
	}
}
