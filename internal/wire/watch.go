package wire

// A Watch collects what a decoder lets pass though a sender should not have
// sent it, for those who judge senders. It keeps the first few notes of each
// text; Reset of the decoder does not empty it.
type Watch struct {
	Notes []Note
}

// keepNotes bounds the notes of one text.
const keepNotes = 8

// A Note is one such thing.
type Note struct {
	Kind   NoteKind
	Name   string // of the member, or the tag of the variant, as it was sent
	Reason string // of what was salvaged, in words

	at   int
	name string // member of the object at `at`, or empty
}

// A NoteKind says what a note is about.
type NoteKind uint8

// The kinds of notes.
const (
	NoteSalvaged NoteKind = iota // a malformed value was reset or dropped (S67–S70)
	NoteVariant                  // a variant the schema does not know (S84)
	NoteMember                   // a member the schema does not know (S13)
	NoteMeta                     // _meta that is neither an object nor null (S75)
	NoteSpelling                 // an integer written as 1.0 or 1e2 (S73)
)

// Path names the value that the note is about. The decoder must still have the
// text the note is from.
func (d *Decoder) Path(n *Note) string {
	p := d.path(n.at)
	if n.name != "" {
		p = join(p, n.name)
	}
	return p
}

func (d *Decoder) note(n Note) {
	w := d.Watch
	if w == nil || len(w.Notes) >= keepNotes {
		return
	}
	for i := range w.Notes {
		if w.Notes[i].at == n.at && w.Notes[i].Kind == n.Kind {
			return // some values are read twice
		}
	}
	w.Notes = append(w.Notes, n)
}

// noteVariant notes the tag whose value is next. Names that begin with _ are
// for everybody.
func (d *Decoder) noteVariant() {
	at := d.keyAt
	if tag := d.noteText(); tag != "" && tag[0] != '_' {
		d.note(Note{Kind: NoteVariant, Name: tag, at: at})
	}
}

// noteText returns the string at the cursor, which stays.
func (d *Decoder) noteText() string {
	if d.Peek() != '"' {
		return ""
	}
	pos, replaced := d.pos, d.replaced
	owned := d.NotOwned()
	t := d.text()
	s := string(t[:min(len(t), nameMax)])
	d.Owned(owned)
	if d.err == nil {
		d.pos, d.replaced = pos, replaced
	}
	return s
}

// noteMember notes the member whose key was just read.
func (d *Decoder) noteMember() {
	if key := d.data[d.keyAt+1:]; len(key) > 0 && key[0] != '_' {
		d.note(Note{Kind: NoteMember, at: d.keyAt})
	}
}
