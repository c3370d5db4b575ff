package backend

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/internal/cursors"
	"github.com/goacp/acp/transcript"
)

const (
	// maxQueued bounds what waits to be shown, in bytes as in the store. At the bound the agent has
	// to wait. A single update may be larger.
	maxQueued = 8 << 20
	// maxBatch and maxBatchBytes bound what is written, and shown, at once.
	maxBatch      = 2048
	maxBatchBytes = 4 << 20
	// maxHeldBack bounds what is held back of a session in which nothing was said yet.
	maxHeldBack = 64
	// entryBytes is what an item counts in addition to its text.
	entryBytes = 128
)

// An item is something to be written and then shown.
type item struct {
	event store.Event // of no kind if there is nothing to write
	// One of these says what is to be shown.
	update acpv2.SessionUpdate
	asked  *question
	answer *question
	chosen acpv2.RequestPermissionOutcome // of answer
	turn   *transcript.TurnEnd            // the end of a turn
	last   bool                           // nothing follows for now
	done   chan struct{}                  // closed when all this was done; nil if nothing waits for it
}

// A question is a request for permission, as of when it was written.
type question struct {
	req   *acpv2.RequestPermissionRequest
	ref   string // its id in the store
	rule  bool   // a rule has answered it
	entry uint64 // its number in conv
}

func (it *item) size() int {
	if it.event.Data == nil {
		if size := textSize(it.update); size >= 0 {
			return size + entryBytes
		}
	}
	return len(it.event.Data) + entryBytes
}

// textSize returns the size of the updates that are frequent, or -1.
func textSize(u acpv2.SessionUpdate) int {
	var content acpv2.ContentBlock
	switch u := u.(type) {
	case *acpv2.AgentMessageChunk:
		content = u.Content
	case *acpv2.AgentThoughtChunk:
		content = u.Content
	case *acpv2.TerminalOutputChunk:
		return len(u.Data)
	}
	if text, ok := content.(*acpv2.TextContent); ok {
		return len(text.Text)
	}
	return -1
}

// A recording writes what happens in one session to the store and then shows it: what was shown
// survives the end of the program. If the disk fails or does not answer, that delays showing by no
// more than a tenth of a second; it is written later then. What arrives while something is written
// is written together next time.
type recording struct {
	keeper  *keeper
	about   func() store.Session // returns what is known of the session apart from its events
	changed func([]transcript.Change)
	killed  <-chan struct{}

	mu     sync.Mutex
	rec    *store.Recorder // nil if nothing is kept
	conv   *transcript.Conversation
	cursor cursors.List // under the ids that conv has
	queue  []item
	bytes  int
	writer chan struct{} // closed when the writer has ended; nil if none runs
	closed bool          // nothing more is accepted
	room   chan struct{} // closed when there is room again; nil if nothing waits for that

	// Of the writer alone.
	begun   bool          // something was said
	held    []store.Event // of earlier, not written yet
	outputs outputs
}

// put queues an item. It blocks while too much waits to be shown: either the frontend is slow, or
// the disk has not answered for so long that the log is at its bound, [journal.MaxBacklog]. Callers
// hold the session's order meanwhile, so at that bound the whole session waits, and so does its
// agent. A cancel still gets through, and closing the host ends the wait: see finish. Journals of
// other sessions do not wait. The other sessions of the connection continue until
// [jsonrpc.Settings.MaxQueued] of messages wait for this session; then the connection is not read,
// since one stream carries them all. put drops the item when the journal is closed or the host was
// killed.
func (j *recording) put(it item) {
	size := it.size()
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.bytes > 0 && j.bytes+size > maxQueued && !j.closed {
		if j.room == nil {
			j.room = make(chan struct{})
		}
		room := j.room
		j.mu.Unlock()
		select {
		case <-room:
		case <-j.killed:
			// The writer may be stuck in the frontend; the item is kept all the same.
			j.mu.Lock()
			j.add(it, size)
			return
		}
		j.mu.Lock()
	}
	j.add(it, size)
}

// add merges a change with the preceding one if both add to the same entry.
func (j *recording) add(it item, size int) {
	if j.closed {
		if it.done != nil {
			close(it.done)
		}
		return
	}
	j.queue = append(j.queue, it)
	j.bytes += size
	if j.writer == nil {
		j.writer = make(chan struct{})
		go j.work()
	}
}

// sync waits until everything that was put is written and shown.
func (j *recording) sync() { j.await(item{}) }

// safe waits until everything that was put is safe on the disk, but no longer than limit.
func (j *recording) safe(ctx context.Context, limit time.Duration) error {
	j.sync()
	rec := j.recorder()
	if rec == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return rec.Sync(ctx)
}

// await puts an item and waits until it is written and shown, or until the host is killed.
func (j *recording) await(it item) {
	it.done = make(chan struct{})
	j.put(it)
	j.wait(it.done)
}

// wait waits for the writer to have done something, or until the host is killed.
func (j *recording) wait(done <-chan struct{}) {
	select {
	case <-done:
	case <-j.killed:
		// The writer needs no longer than the store does, unless the frontend delays it.
		t := time.NewTimer(killGrace)
		defer t.Stop()
		select {
		case <-done:
		case <-t.C:
		}
	}
}

// killGrace is how long a host that was killed waits for its frontend.
const killGrace = 2 * time.Second

// finish makes nothing of the journal wait for a disk that does not answer, since it will be
// closed.
func (j *recording) finish() {
	if rec := j.recorder(); rec != nil {
		rec.Finish()
	}
}

// close accepts nothing more. It waits until everything that was put is shown, and written if that
// is possible, and the writer has ended.
func (j *recording) close() {
	j.finish()
	j.await(item{last: true}) // those that wait for room are let in
	j.mu.Lock()
	j.closed = true
	if j.room != nil {
		close(j.room)
		j.room = nil
	}
	writer := j.writer
	j.mu.Unlock()
	if writer != nil {
		j.wait(writer)
	}
	if rec := j.recorder(); rec != nil {
		j.keeper.closed(rec)
	}
}

// recorder returns what writes the session, or nil if nothing is kept.
func (j *recording) recorder() *store.Recorder {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rec
}

// conversationID returns the id of the session in the store, or "" if nothing is kept.
func (j *recording) conversationID() string {
	if rec := j.recorder(); rec != nil {
		return rec.Conversation()
	}
	return ""
}

// resume continues a conversation that the store has, or shows one that can only be read. It is called before anything is put
// that is not held back.
func (j *recording) resume(was store.Resumed) {
	j.mu.Lock()
	j.conv = was.Snapshot.Continue(store.Bounds())
	before := j.rec
	if was.Recorder != nil {
		j.rec, j.begun = was.Recorder, true
	}
	j.mu.Unlock()
	if was.Recorder != nil && before != nil {
		j.keeper.closed(before)
	}
}

// work writes and shows until there is nothing left.
func (j *recording) work() {
	for {
		batch, bytes := j.take()
		if batch == nil {
			return
		}
		j.write(batch)
		if changes := j.apply(batch); changes != nil && j.changed != nil {
			j.changed(changes)
		}
		for i := range batch {
			if done := batch[i].done; done != nil {
				close(done)
			}
		}
		j.mu.Lock()
		j.bytes -= bytes
		if j.room != nil {
			close(j.room)
			j.room = nil
		}
		j.mu.Unlock()
	}
}

// take returns what is next, or nil after the last.
func (j *recording) take() (batch []item, bytes int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.queue) == 0 {
		close(j.writer)
		j.queue, j.writer = nil, nil
		return nil, 0
	}
	n := 0
	for n < len(j.queue) && n < maxBatch && (n == 0 || bytes < maxBatchBytes) {
		bytes += j.queue[n].size()
		n++
	}
	batch = j.queue[:n:n]
	if n == len(j.queue) {
		j.queue = nil
	} else {
		j.queue = j.queue[n:]
	}
	return batch, bytes
}

// write writes a batch.
func (j *recording) write(batch []item) {
	rec := j.recorder()
	if rec == nil {
		return
	}
	var events []store.Event
	for i := range batch {
		it := &batch[i]
		switch {
		case it.event.Kind != "":
			events = j.outputs.events(events, it)
			j.begun = j.begun || said(it)
		case it.last:
			events = j.outputs.flush(events)
		}
	}
	if !j.begun && len(j.held)+len(events) <= maxHeldBack {
		// A session that was only opened leaves nothing behind.
		j.held = append(j.held, events...)
		return
	}
	j.begun = true
	rec.Put(j.about())
	if len(j.held) > 0 {
		events = append(j.held, events...)
		j.held = nil
	}
	rec.Append(events...)
}

// said reports whether an item is part of what is said in a session.
func said(it *item) bool {
	switch it.update.(type) {
	case *acpv2.ConfigOptionUpdate, *acpv2.AvailableCommandsUpdate, *acpv2.SessionInfoUpdate, *acpv2.UsageUpdate, acpv2.StateUpdate,
		*acpv2.PromptSuggestionsUpdate, *acpv2.CursorUpdate, *acpv2.ReplayComplete:
		return false
	}
	return true
}

// apply folds a batch into the conversation and returns what changed.
func (j *recording) apply(batch []item) []transcript.Change {
	var m merger
	conv := j.conversation()
	for i := range batch {
		it := &batch[i]
		switch {
		case it.asked != nil:
			entry, changes := conv.Asked(it.asked.req)
			it.asked.entry = entry
			for _, ch := range changes {
				m.add(ch)
			}
		case it.answer != nil:
			m.add(conv.Answered(it.answer.entry, it.chosen))
		case it.turn != nil:
			end := records.EndOf(it.turn)
			for _, ch := range end.Apply(conv) {
				m.add(ch)
			}
		case it.update != nil:
			m.add(conv.Apply(it.update))
			switch u := it.update.(type) { // which are not in the conversation
			case *acpv2.PromptSuggestionsUpdate:
				m.add(transcript.Change{Op: transcript.OpSession})
			case *acpv2.CursorUpdate:
				m.add(j.moves(u))
			}
		}
	}
	m.finish()
	return m.list
}

func (j *recording) conversation() *transcript.Conversation {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.conv
}

// A merger makes one change of consecutive pieces of one entry.
type merger struct {
	list []transcript.Change
	text []byte // of the last change, if pieces were added to it
}

// add merges a change with the one before if both add text to the same entry.
func (m *merger) add(ch transcript.Change) {
	if ch.Op == transcript.OpNone && !ch.Trimmed {
		return
	}
	if n := len(m.list) - 1; n >= 0 {
		last := &m.list[n]
		if ch.Op == transcript.OpAppended && last.Op == ch.Op && last.Seq == ch.Seq && (ch.Text == "") == (last.Text == "") {
			if ch.Text != "" {
				if m.text == nil {
					m.text = []byte(last.Text)
				}
				m.text = append(m.text, ch.Text...)
			}
			last.Trimmed = last.Trimmed || ch.Trimmed
			return
		}
	}
	m.finish()
	m.list = append(m.list, ch)
}

// finish completes the text of the last change.
func (m *merger) finish() {
	if m.text != nil {
		m.list[len(m.list)-1].Text, m.text = string(m.text), nil
	}
}

// updateEvent returns the event of an update. What cannot be encoded could not be sent either.
func updateEvent(u acpv2.SessionUpdate) store.Event {
	e, err := records.DraftOf(u)
	if err != nil {
		return store.Event{}
	}
	e.At = time.Now()
	return e
}

// answerItem is an answer for a journal.
func answerItem(q *question, chosen acpv2.RequestPermissionOutcome) item {
	it := item{answer: q, chosen: chosen}
	decided := records.DecidedOf(q.ref, q.req, chosen)
	decided.Rule = q.rule
	data, err := json.Marshal(decided)
	if err != nil {
		return it
	}
	it.event = store.Event{At: time.Now(), Kind: journal.KindDecided, Data: data}
	return it
}
