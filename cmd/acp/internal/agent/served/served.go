// Package served remembers what the model of a session knows of files: which lines it was
// shown, what it has written itself, and what of that has changed since.
//
// A [Record] is that of a session. The tools that show lines of files put them into it, and
// those that change files ask it, so that nothing is changed that the model has not seen as
// it is. The record is kept in the journal of the session as a [State] each time it changes:
// the hash of the file, which lines of it are known, and what of its text has changed since
// the state before. The text is not kept of files that are larger than 128 KiB or not UTF-8, nor
// once there are 8 MiB of texts: if such a file is not as its hash says when a session is
// resumed, what was shown of it is lost.
//
// Bounds: 32 MiB of texts and 4096 files for a session, 8 MiB for a file with what it was
// before. What was used least recently is forgotten first, and counts as not shown then.
package served

import (
	"slices"
	"sync"
	"unicode/utf8"
)

// Bounds of a record.
const (
	MaxSize  = 32 << 20 // bytes of texts
	MaxFiles = 4096
	// maxFile bounds a file that is remembered, in bytes.
	maxFile = MaxSize / 4
	// maxText bounds a file of which the text is kept, maxKept the texts of all, in bytes.
	maxText = 128 << 10
	maxKept = 8 << 20
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
	kept  int // bytes of texts
}

type entry struct {
	file *File
	size int
	used int64
	said string // the text that the states which were kept lead to; "" if they do not
}

// A State is what is known of a file, as it is kept.
type State struct {
	Path string  `json:"path"`
	Sum  string  `json:"sum,omitempty"` // the hash of its text; "" if nothing is known any more
	Of   int     `json:"of,omitempty"`  // lines
	Seen []Range `json:"seen,omitempty"`
	Made []Made  `json:"made,omitempty"`
	Lost bool    `json:"lost,omitempty"`
	// Text takes the place of a part of the text of the state before, in bytes, or of all of
	// it if To is -1. It is missing if the text has not changed, or is too large.
	Text *string `json:"text,omitempty"`
	From int     `json:"from,omitempty"`
	To   int     `json:"to,omitempty"`
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

// Done is Change for a change that was made just before the program was killed: before is the
// hash of the file before it. If that is not what the record has, somebody else has come in
// between.
func (r *Record) Done(path, before, after string, made ...Made) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.files[path]; e != nil && e.file.loaded && e.file.sum == before {
		r.keep(path, e.file.Changed(after, len(made) == 0, made...), true)
	}
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
	text := ""
	if was := r.files[s.Path]; was != nil {
		text = was.said
	}
	switch {
	case s.Text == nil:
	case s.To == -1:
		text = *s.Text
	case s.From >= 0 && s.From <= s.To && s.To <= len(text):
		text = text[:s.From] + *s.Text + text[s.To:]
	}
	if text != "" && Sum(text) == s.Sum && lines(text) == f.of {
		f.text, f.loaded = text, true
	} else {
		text = ""
	}
	r.put(s.Path, f, true)
	if e := r.files[s.Path]; e != nil {
		e.said = text
	}
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
	s := State{Path: path, Sum: f.sum, Of: f.of, Seen: f.seen, Made: f.made, Lost: lost}
	if e := r.files[path]; e != nil && e.said != f.text {
		from, to, piece := splice(e.said, f.text)
		if used && len(f.text) <= maxText && utf8.ValidString(f.text) && r.kept+len(*piece) <= maxKept {
			s.From, s.To, s.Text = from, to, piece
			e.said = f.text
			r.kept += len(*piece)
		} else {
			e.said = ""
		}
	}
	r.say(s)
}

// splice returns which part of a text has to be replaced, and by what, to make another.
func splice(old, new string) (from, to int, text *string) {
	if old == "" {
		return 0, -1, &new
	}
	for from < min(len(old), len(new)) && old[from] == new[from] {
		from++
	}
	end := len(new)
	for to = len(old); to > from && end > from && old[to-1] == new[end-1]; to-- {
		end--
	}
	piece := new[from:end]
	if !utf8.ValidString(piece) { // it was cut in the middle of a character
		return 0, -1, &new
	}
	return from, to, &piece
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
		f = &File{sum: "-"}
	}
	e := &entry{file: f, size: f.size()}
	if was := r.files[path]; was != nil {
		e.used, e.said = was.used, was.said
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
