package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/shown"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/cmd/acp/internal/ui/plain"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/transcript"
)

const (
	// maxAnswer bounds the final text of --quiet and of the last line of --json, in bytes. The
	// bound that a conversation puts on a message is reached first.
	maxAnswer = 64 << 20
	// maxDenials bounds the lines about denied requests, and those about broken rules.
	maxDenials = 100
	// maxEarly bounds the notes that wait for the line of the session, which must come first.
	maxEarly = 256
)

// A report writes what happens in the turn, and derives the exit status from it. Its methods may be
// called from any goroutine; mu guards the fields below it, and the order of the output.
type report struct {
	app         *app.App
	json, quiet bool
	progress    bool // write progress to standard error
	show        Show
	suggest     func(acphost.Request) string
	limit       Cost
	stop        func(error) // cancels the turn

	mu       sync.Mutex
	main     acp.SessionID // "" before the prompt is sent; whatever comes earlier is not part of the turn
	out      plain.Stream
	lines    map[acp.SessionID]*lines
	err      error // the first failed write
	answer   strings.Builder
	answered uint64 // the entry that answer is copied from, if has is true
	has      bool   // there is an answer
	cut      bool   // answer is incomplete
	at       uint64 // the entry that was written last, if begun is true
	begun    bool
	read     map[uint64]int                // bytes written so far, by entry: messages and output of commands
	ended    map[uint64]bool               // tool calls whose result was written
	tools    map[string]acp.ToolCallStatus // the status in the last progress line
	costs    bool                          // the agent has reported a cost
	ruled
	missing
	none   error      // why the agent has no answer; nil if it has
	unheld string     // why rules cannot hold the agent, as reported to the user
	early  []noteLine // at most maxEarly
	place  place
}

// missing is what is not there in the output, or in what is stored.
type missing struct {
	unkept string // what of the conversation is not stored; "" for nothing
	lost   bool   // something was too long to be retained
	gaps   int    // bytes of the output of commands
}

// ruled is what rules have come to.
type ruled struct {
	denied int // requests
	broken int // rules that the agent did not keep
}

// newReport returns the report of a turn in the form that the flags ask for.
func newReport(o *Options) *report {
	return &report{
		app: o.App, json: o.JSON, quiet: o.Quiet,
		progress: !o.JSON && !o.Quiet && o.App.ErrTerminal,
		limit:    o.MaxCost,
		show:     o.Show,
		out:      plain.Stream{W: o.App.Out},
		lines:    map[acp.SessionID]*lines{},
		read:     map[uint64]int{},
		ended:    map[uint64]bool{},
		tools:    map[string]acp.ToolCallStatus{},
		place:    place{alone: o.NoWait},
	}
}

// begin writes the line of the session. From now on everything that happens is part of the turn.
func (r *report) begin(id acp.SessionID, line sessionLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.main, r.unheld = id, line.Unheld
	for _, note := range []string{line.Unheld, line.Unasked} {
		if note != "" && !r.json {
			fmt.Fprintln(r.app.Err, "acp: "+note)
		}
	}
	if r.json {
		r.writeLine(line)
		r.writeEarly()
	}
}

// writeEarly writes the notes that arrived before the line of the session.
func (r *report) writeEarly() {
	for _, line := range r.early {
		r.writeLine(line)
	}
	r.early = nil
}

// changed is [backend.Frontend]'s Changed.
func (r *report) changed(s *backend.Session, changes []transcript.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.main == "" || r.place.left {
		return
	}
	r.writeChanges(s.ID(), s.Snapshot(), changes)
}

// writeChanges writes what changed in a session. The caller holds mu.
func (r *report) writeChanges(id acp.SessionID, snap *transcript.Snapshot, changes []transcript.Change) {
	if r.place.alone {
		return
	}
	if r.json {
		l := r.lines[id]
		if l == nil {
			l = &lines{session: string(id)}
			r.lines[id] = l
		}
		data, err := l.appendBatch(nil, snap, answers(snap, changes))
		r.fail(err)
		r.write(data)
	}
	r.follow(id, snap, changes)
	if id == r.main {
		r.checkCost(snap)
	}
}

// follow writes a batch of changes as text, one after the other. Only the text of messages comes in
// pieces. For everything else the snapshot has just the final state, which is written at the place
// of the entry's last change in the batch.
func (r *report) follow(id acp.SessionID, snap *transcript.Snapshot, changes []transcript.Change) {
	last, whole := map[uint64]int{}, map[uint64]bool{}
	for i, ch := range changes {
		if ch.Op != transcript.OpSession {
			last[ch.Seq] = i
		}
	}
	for i, ch := range changes {
		if ch.Op == transcript.OpSession {
			continue
		}
		e := snap.Entry(ch.Seq)
		if id == r.main && r.isBefore(snap, e, ch.Seq) {
			continue
		}
		if none := noAnswer(snap, ch); none != nil {
			if id == r.main {
				r.none = none
			}
			continue
		}
		if id == r.main {
			if r.show.tools() && last[ch.Seq] == i {
				r.writeToolOutput(e)
			}
			if m, ok := e.(*transcript.Message); ok && m.Role == transcript.RoleAgent && !whole[ch.Seq] {
				whole[ch.Seq] = r.writeMessage(m, ch)
			} else if ok && m.Role == transcript.RoleThought && r.show == ShowAll {
				r.writeThought(m)
			}
		}
		if r.progress {
			r.showProgress(id, e, ch, last[ch.Seq] == i)
		}
	}
}

// writeMessage writes what a change adds to a message of the agent. It reports whether it has
// written all of the message, in which case later changes of the batch are already included.
func (r *report) writeMessage(m *transcript.Message, ch transcript.Change) (whole bool) {
	if !r.has || ch.Seq != r.answered {
		r.answer.Reset()
		r.answered, r.has, r.cut = ch.Seq, true, false
	}
	if m.Dropped() > 0 {
		r.cut, r.lost = true, true
	}
	if ch.Text != "" {
		r.addAnswer(ch.Seq, ch.Text)
		return false
	}
	// The agent has sent the message as a whole. What exceeds the written length is new; what was
	// written cannot be taken back, so a changed beginning only shows in the result.
	text := m.Text()
	if n := r.read[ch.Seq]; n < len(text) {
		r.addAnswer(ch.Seq, text[n:])
	}
	if r.answer.Len() != len(text) && len(text) <= maxAnswer && m.Dropped() == 0 {
		r.answer.Reset()
		r.answer.WriteString(text)
	}
	return true
}

// writeThought writes the new part of a thought of the agent.
func (r *report) writeThought(m *transcript.Message) {
	text, n := m.Text(), r.read[m.Seq()]
	if r.json || r.quiet || n >= len(text) {
		return
	}
	r.read[m.Seq()] = len(text)
	if n == 0 {
		text = "Thought: " + text
	} else {
		text = text[n:]
	}
	r.writePiece(m.Seq(), text)
}

// addAnswer appends text to the answer, and writes it unless another form of output is asked for.
func (r *report) addAnswer(seq uint64, text string) {
	r.read[seq] += len(text)
	if r.answer.Len()+len(text) > maxAnswer {
		r.cut = true
	} else {
		r.answer.WriteString(text)
	}
	if !r.json && !r.quiet && r.show.text() {
		r.writePiece(seq, text)
	}
}

// checkCost cancels the turn if the session has reached --max-cost. A limit in another currency
// than the agent's also cancels it, because such a limit would never be reached.
func (r *report) checkCost(snap *transcript.Snapshot) {
	usage := snap.Session().Usage
	if usage == nil || usage.Cost == nil {
		return
	}
	r.costs = true
	if !r.limit.Set || r.stop == nil {
		return
	}
	cost := usage.Cost
	switch {
	case r.limit.Currency != "" && !strings.EqualFold(r.limit.Currency, cost.Currency):
		r.stop(exitcode.Errorf(exitcode.Cost, "--max-cost is in %s but the agent counts in %s", r.limit.Currency, safetext.Line(cost.Currency, 20)))
	case cost.Amount >= r.limit.Amount:
		r.stop(exitcode.Errorf(exitcode.Cost, "the session has cost %g %s, the limit is %s", cost.Amount, safetext.Line(cost.Currency, 20), r.limit.String()))
	}
}

// showProgress writes progress to standard error. last means that no later change of the batch
// concerns e.
func (r *report) showProgress(id acp.SessionID, e transcript.Entry, ch transcript.Change, last bool) {
	switch e := e.(type) {
	case *transcript.ToolCall:
		key := string(id) + "\x00" + string(e.ID)
		if last && r.tools[key] != e.Status {
			r.tools[key] = e.Status
			r.progressLine(plain.ToolLine(e))
		}
	case *transcript.Notice:
		if ch.Op == transcript.OpCreated {
			r.progressLine(plain.NoticeLine(e))
		}
	}
}

// progressLine writes a line to standard error. If that is the same terminal as standard output, an
// unfinished line there is ended first.
func (r *report) progressLine(text string) {
	if r.app.OutTerminal {
		r.fail(r.out.EndLine())
	}
	fmt.Fprintln(r.app.Err, safetext.Line(text, 200))
}

// decided is [backend.Frontend]'s Decided.
func (r *report) decided(s *backend.Session, rec acphost.Record, req acphost.Request) {
	// The suggestion is made before mu is taken: it parses the policy once more.
	hint := ""
	denied := rec.Effect != acphost.EffectAllow && rec.By != acphost.ByCancelling
	if denied && rec.By != acphost.ByUser && r.suggest != nil {
		hint = r.suggest(req)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if denied {
		r.denied++
	}
	if r.json {
		command, _ := rec.Shows()
		r.writeLine(permissionLine{
			Type: "permission", Session: rec.Session, ToolCallID: rec.ToolCallID, Title: rec.Title, Kind: rec.Kind,
			Command: command, Certainty: certainty(rec), Paths: rec.Paths, Effect: string(rec.Effect), By: string(rec.By), Rule: rec.Rule,
			Reason: rec.Reason, Part: rec.Part,
			OptionID: rec.OptionID, OptionKind: rec.OptionKind, AllowWith: hint,
		})
	}
	switch {
	case denied && r.denied <= maxDenials:
		if r.app.OutTerminal && !r.json && !r.quiet {
			r.fail(r.out.EndLine())
		}
		fmt.Fprintln(r.app.Err, denial(rec, hint))
	case denied && r.denied == maxDenials+1:
		fmt.Fprintln(r.app.Err, "denied: further requests are not listed")
	case !denied && r.progress && rec.Effect == acphost.EffectAllow:
		r.progressLine("allowed: " + what(rec))
	}
}

// isUnheld is [backend.Frontend]'s Unheld.
func (r *report) isUnheld(_ *backend.Session, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unheld != "" { // reported at the beginning, or for another session
		return
	}
	r.unheld = why
	if r.json {
		r.writeLine(noteLine{Type: "note", Kind: "unheld", Text: why})
		return
	}
	fmt.Fprintln(r.app.Err, "acp: "+why)
}

// isBroken is [backend.Frontend]'s Broken.
func (r *report) isBroken(s *backend.Session, b backend.Breach) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken++
	if r.json {
		q := b.Request
		r.writeLine(brokenLine{
			Type: "broken", Session: string(s.ID()), ToolCallID: q.ToolCallID, Title: q.Title, Kind: q.Kind,
			Command: q.Command, Paths: q.Paths, Rule: b.Rule,
		})
	}
	switch {
	case r.broken <= maxDenials:
		if r.app.OutTerminal && !r.json && !r.quiet {
			r.fail(r.out.EndLine())
		}
		fmt.Fprintln(r.app.Err, "broken: "+b.Text())
	case r.broken == maxDenials+1:
		fmt.Fprintln(r.app.Err, "broken: further breaches are not listed")
	}
}

// note is [backend.Frontend]'s Note.
func (r *report) note(n backend.Note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.Kind == backend.NoteBegun {
		if n.Session == r.main {
			r.place.own = acp.MessageID(n.Text)
		}
		return
	}
	unkept := errors.Is(n.Err, backend.ErrUnkept)
	if unkept && r.unkept == "" {
		r.unkept = n.Text
	}
	if r.json {
		switch {
		case n.Kind == backend.NoteStarting || n.Kind == backend.NoteReady: // the line of the session says the same
			return
		case n.Text == "" || r.place.left: // such as that nobody else is attached
			return
		}
		line := noteLine{Type: "note", Kind: string(n.Kind), Text: n.Text}
		switch {
		case r.main != "":
			r.writeLine(line)
		case len(r.early) < maxEarly:
			r.early = append(r.early, line)
		}
		return
	}
	if unkept {
		return // finish says it
	}
	switch n.Kind {
	case backend.NoteLogin, backend.NoteBridged, backend.NoteStore, backend.NoteNoise, backend.NoteOutage:
		r.remark(n.Text)
	case backend.NoteSilent:
		if !r.progress { // progress shows the notice itself
			r.remark(n.Text)
		}
	case backend.NoteSlow:
		if r.progress {
			r.progressLine(n.Text)
		}
	}
}

// remark writes a line to standard error, as acp's own.
func (r *report) remark(text string) {
	if r.app.OutTerminal && !r.quiet {
		r.fail(r.out.EndLine())
	}
	fmt.Fprintln(r.app.Err, "acp: "+safetext.Line(text, 500))
}

// writeLine writes v as a line of JSON.
func (r *report) writeLine(v any) {
	data, err := appendLine(nil, v)
	r.fail(err)
	r.write(data)
}

// write writes to standard output. After a failure it does nothing.
func (r *report) write(data []byte) {
	if len(data) > 0 && r.err == nil {
		_, err := r.app.Out.Write(data)
		r.fail(err)
	}
}

// fail records that writing the output has failed, and cancels the turn: an agent must not keep
// changing files if its report is lost.
func (r *report) fail(err error) {
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("writing the output: %w", err)
		if r.stop != nil {
			r.stop(r.err)
		}
	}
}

// finish writes the result and returns the error that decides the exit status.
func (r *report) finish(s *backend.Session, res *acp.Result, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if (r.cut || r.lost) && err == nil {
		// The missing text is stored nowhere else, so this must not look like success.
		err = exitcode.Errorf(exitcode.Failed, "the text is cut: at most %d MiB of a message are retained", store.Bounds().EntryBytes>>20)
	} else if r.cut || r.lost {
		fmt.Fprintf(r.app.Err, "acp: the text is cut: at most %d MiB of a message are retained\n", store.Bounds().EntryBytes>>20)
	}
	if r.unkept != "" && err == nil {
		err = exitcode.Errorf(exitcode.Failed, "%s", r.unkept)
	} else if r.unkept != "" {
		r.remark(r.unkept)
	}
	switch {
	case r.json:
		r.writeEarly()
		r.writeLine(r.resultLine(s, res, err))
	case r.quiet:
		r.fail(r.out.Write(r.answer.String()))
		fallthrough
	default:
		r.fail(r.out.EndLine())
	}
	if r.gaps > 0 {
		fmt.Fprintf(r.app.Err, "acp: %d bytes of command output are missing: they arrived too fast\n", r.gaps)
	}
	if r.limit.Set && !r.costs && err == nil && r.main != "" {
		fmt.Fprintln(r.app.Err, "acp: --max-cost had no effect: the agent does not report its cost")
	}
	if r.err != nil && (err == nil || exitcode.Of(err) == exitcode.Cancelled) {
		return r.err
	}
	return err
}

// resultLine returns the last line of --json.
func (r *report) resultLine(s *backend.Session, res *acp.Result, err error) resultLine {
	line := resultLine{Type: "result", Text: r.answer.String(), Truncated: r.cut, Denied: r.denied, Broken: r.broken, ExitCode: int(exitcode.Of(err))}
	line.Steered = string(r.place.steered)
	if r.place.left {
		line.Waiting = true
	}
	if line.Waiting || line.Steered != "" {
		line.Text, line.Truncated = "", false
	}
	if res != nil {
		line.StopReason = string(res.StopReason)
		if res.Usage != nil {
			line.Usage, _ = res.Usage.AppendJSON(nil)
		}
		line.Models = shown.Models(res.Meta)
	}
	if s != nil {
		line.SessionID = string(s.ID())
		if usage := s.Snapshot().Session().Usage; usage != nil {
			line.Context = &contextInfo{Used: usage.Used, Size: usage.Size}
			if usage.Cost != nil {
				line.Cost, _ = usage.Cost.AppendJSON(nil)
			}
			line.Limit = limitOf(usage)
		}
	}
	if err != nil {
		line.Error = errorOf(err)
	}
	return line
}

// errorOf returns err for the result line. It separates errors that the agent has answered with
// from failures of acp.
func errorOf(err error) *errorInfo {
	info := &errorInfo{Message: err.Error(), From: "acp"}
	if said, ok := errors.AsType[*jsonrpc.Error](err); ok {
		info.From, info.Code = "agent", said.Code
		if json.Valid(said.Data) {
			info.Data = said.Data
		}
	}
	return info
}

// ends returns the error that carries the turn's exit status. The order of the checks is the
// precedence that package docs describes.
func (r *report) ends(ctx context.Context, res *acp.Result, err error, denyOK bool) error {
	r.mu.Lock()
	denied, broken, none := r.denied, r.broken, r.none
	r.mu.Unlock()
	if cause := context.Cause(ctx); cause != nil {
		if _, ok := errors.AsType[*exitcode.Error](cause); ok {
			return cause
		}
		if errors.Is(cause, context.Canceled) {
			return exitcode.With(exitcode.Cancelled, cause)
		}
		return cause
	}
	if err != nil {
		return err
	}
	if broken > 0 {
		return exitcode.With(exitcode.Broken, breaches(broken))
	}
	if none != nil {
		return none
	}
	denials := exitcode.With(exitcode.Denied, denials(denied))
	switch res.StopReason {
	case acpv2.StopReasonRefusal:
		return exitcode.Errorf(exitcode.Refused, "the agent refused the prompt")
	case acpv2.StopReasonMaxTokens:
		return exitcode.Errorf(exitcode.Incomplete, "the agent stopped at its limit of tokens")
	case acpv2.StopReasonMaxTurnRequests:
		return exitcode.Errorf(exitcode.Incomplete, "the agent stopped at its limit of requests")
	case acpv2.StopReasonCancelled:
		if denied > 0 {
			return denials
		}
		return exitcode.Errorf(exitcode.Cancelled, "the agent says that the turn was cancelled")
	case acpv2.StopReasonEndTurn, "":
	default:
		if strings.HasPrefix(string(res.StopReason), "_") { // a reason of the agent's own
			return exitcode.Errorf(exitcode.Incomplete, "the agent stopped: %s", safetext.Line(string(res.StopReason), 100))
		}
		return exitcode.Errorf(exitcode.Protocol, "the agent stopped for a reason that ACP does not have: %s", safetext.Line(string(res.StopReason), 100))
	}
	if denied > 0 && !denyOK {
		return denials
	}
	return nil
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
