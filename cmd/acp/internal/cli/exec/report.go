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
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/cmd/acp/internal/ui/plain"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/transcript"
)

const (
	// maxAnswer bounds the final text that --quiet and the last line of --json have, in bytes. The
	// bounds of conversations are lower.
	maxAnswer = 64 << 20
	// maxDenials bounds the lines that tell of denied permissions.
	maxDenials = 100
	// maxEarly bounds the notes that are told after the session is there.
	maxEarly = 256
)

// A report writes what happens. Its methods may be called from any goroutine.
type report struct {
	app         *app.App
	json, quiet bool
	progress    bool // on standard error
	show        Show
	suggest     func(acphost.Request) string
	limit       Cost
	stop        func(error) // cancels the turn

	mu       sync.Mutex
	main     acp.SessionID // "" before the prompt is sent: what comes earlier is not part of it
	out      plain.Stream
	lines    map[acp.SessionID]*lines
	err      error // of writing
	answer   strings.Builder
	answered uint64 // entry the answer is in
	has      bool   // there is an answer
	cut      bool   // and not all of it
	lost     bool   // something was too long to be kept, and is missing in what was written
	gaps     int    // bytes of the output of commands that are missing
	at       uint64 // entry that was written last, if begun
	begun    bool
	read     map[uint64]int // bytes that were written of messages and the output of commands
	ended    map[uint64]bool
	tools    map[string]acp.ToolCallStatus
	costs    bool
	denied   int
	broken   int    // rules
	unheld   string // why rules cannot hold the agent, as it was told
	early    []noteLine
}

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
	}
}

// begin says which session it is; from now on what happens is part of the turn.
func (r *report) begin(id acp.SessionID, line sessionLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.main, r.unheld = id, line.Unheld
	if line.Unheld != "" && !r.json {
		fmt.Fprintln(r.app.Err, "acp: "+line.Unheld)
	}
	if r.json {
		r.line(line)
		r.notes()
	}
}

// notes writes the notes that came before the line of the session, which is the first.
func (r *report) notes() {
	for _, line := range r.early {
		r.line(line)
	}
	r.early = nil
}

// changed is the hook of that name of a frontend.
func (r *report) changed(s *backend.Session, changes []transcript.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.main == "" {
		return
	}
	r.changes(s.ID(), s.Snapshot(), changes)
}

// changes writes what changed in a session, with mu held.
func (r *report) changes(id acp.SessionID, snap *transcript.Snapshot, changes []transcript.Change) {
	if r.json {
		l := r.lines[id]
		if l == nil {
			l = &lines{session: string(id)}
			r.lines[id] = l
		}
		data, err := l.update(nil, snap, changes)
		r.fail(err)
		r.write(data)
	}
	r.follow(id, snap, changes)
	if id == r.main {
		r.cost(snap)
	}
}

// follow writes a batch of changes, one after the other. Of what is not text only what has become of it
// is known: that belongs where it was changed last.
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
		if id == r.main {
			if r.show.tools() && last[ch.Seq] == i {
				r.work(e)
			}
			if m, ok := e.(*transcript.Message); ok && m.Role == transcript.RoleAgent && !whole[ch.Seq] {
				whole[ch.Seq] = r.text(m, ch)
			} else if ok && m.Role == transcript.RoleThought && r.show == ShowAll {
				r.thought(m)
			}
		}
		if r.progress {
			r.tell(id, e, ch, last[ch.Seq] == i)
		}
	}
}

// text writes what a change adds to what the agent says. It reports whether that is all of the message:
// then later changes of the batch are in it already.
func (r *report) text(m *transcript.Message, ch transcript.Change) (whole bool) {
	if !r.has || ch.Seq != r.answered {
		r.answer.Reset()
		r.answered, r.has, r.cut = ch.Seq, true, false
	}
	if m.Dropped() > 0 {
		r.cut, r.lost = true, true
	}
	if ch.Text != "" {
		r.say(ch.Seq, ch.Text)
		return false
	}
	// It is said as a whole: what goes beyond what was said of it is new.
	text := m.Text()
	if n := r.read[ch.Seq]; n < len(text) {
		r.say(ch.Seq, text[n:])
	}
	if r.answer.Len() != len(text) && len(text) <= maxAnswer && m.Dropped() == 0 {
		r.answer.Reset()
		r.answer.WriteString(text)
	}
	return true
}

// thought writes what is new of what the agent thinks.
func (r *report) thought(m *transcript.Message) {
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
	r.piece(m.Seq(), text)
}

func (r *report) say(seq uint64, text string) {
	r.read[seq] += len(text)
	if r.answer.Len()+len(text) > maxAnswer {
		r.cut = true
	} else {
		r.answer.WriteString(text)
	}
	if !r.json && !r.quiet && r.show.text() {
		r.piece(seq, text)
	}
}

// cost cancels the turn when the session has cost what it may.
func (r *report) cost(snap *transcript.Snapshot) {
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

// tell writes progress to standard error. last says that e is not changed again in the batch.
func (r *report) tell(id acp.SessionID, e transcript.Entry, ch transcript.Change, last bool) {
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

func (r *report) progressLine(text string) {
	if r.app.OutTerminal {
		r.fail(r.out.EndLine())
	}
	fmt.Fprintln(r.app.Err, safetext.Line(text, 200))
}

// decided is the hook of that name of a frontend.
func (r *report) decided(s *backend.Session, rec acphost.Record, req acphost.Request) {
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
		r.line(permissionLine{
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
		fmt.Fprintln(r.app.Err, "denied: more, which are not listed")
	case !denied && r.progress && rec.Effect == acphost.EffectAllow:
		r.progressLine("allowed: " + what(rec))
	}
}

// isUnheld is the hook Unheld of a frontend.
func (r *report) isUnheld(_ *backend.Session, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unheld != "" { // of the agent, or for another session
		return
	}
	r.unheld = why
	if r.json {
		r.line(noteLine{Type: "note", Kind: "unheld", Text: why})
		return
	}
	fmt.Fprintln(r.app.Err, "acp: "+why)
}

// isBroken is the hook Broken of a frontend.
func (r *report) isBroken(s *backend.Session, b backend.Breach) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken++
	if r.json {
		q := b.Request
		r.line(brokenLine{
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
		fmt.Fprintln(r.app.Err, "broken: more, which are not listed")
	}
}

// note is the hook of that name of a frontend.
func (r *report) note(n backend.Note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.json {
		if n.Kind == backend.NoteStarting || n.Kind == backend.NoteReady {
			return // the line of the session says as much
		}
		line := noteLine{Type: "note", Kind: string(n.Kind), Text: n.Text}
		switch {
		case r.main != "":
			r.line(line)
		case len(r.early) < maxEarly:
			r.early = append(r.early, line)
		}
		return
	}
	switch n.Kind {
	case backend.NoteLogin, backend.NoteBridged, backend.NoteStore, backend.NoteNoise:
		r.remark(n.Text)
	case backend.NoteSilent:
		if !r.progress { // which has the notice
			r.remark(n.Text)
		}
	case backend.NoteSlow:
		if r.progress {
			r.progressLine(n.Text)
		}
	}
}

// remark writes a line to standard error.
func (r *report) remark(text string) {
	if r.app.OutTerminal && !r.quiet {
		r.fail(r.out.EndLine())
	}
	fmt.Fprintln(r.app.Err, "acp: "+safetext.Line(text, 500))
}

// line writes a line of JSON.
func (r *report) line(v any) {
	data, err := appendLine(nil, v)
	r.fail(err)
	r.write(data)
}

func (r *report) write(data []byte) {
	if len(data) > 0 && r.err == nil {
		_, err := r.app.Out.Write(data)
		r.fail(err)
	}
}

// fail notes that output is lost, which ends the turn: nobody would know what it did.
func (r *report) fail(err error) {
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("writing the output: %w", err)
		if r.stop != nil {
			r.stop(r.err)
		}
	}
}

// finish writes the end: the result.
func (r *report) finish(s *backend.Session, res *acp.Result, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if (r.cut || r.lost) && err == nil {
		// What is missing here is nowhere else: that must not look like success.
		err = exitcode.Errorf(exitcode.Failed, "the text is cut: of a message at most %d MiB are kept", store.Bounds().EntryBytes>>20)
	} else if r.cut || r.lost {
		fmt.Fprintf(r.app.Err, "acp: the text is cut: of a message at most %d MiB are kept\n", store.Bounds().EntryBytes>>20)
	}
	switch {
	case r.json:
		r.notes()
		r.line(r.resultLine(s, res, err))
	case r.quiet:
		r.fail(r.out.Write(r.answer.String()))
		fallthrough
	default:
		r.fail(r.out.EndLine())
	}
	if r.gaps > 0 {
		fmt.Fprintf(r.app.Err, "acp: %d bytes of the output of commands are left out: they came too fast\n", r.gaps)
	}
	if r.limit.Set && !r.costs && err == nil && r.main != "" {
		fmt.Fprintln(r.app.Err, "acp: --max-cost has had no effect: the agent does not tell what it costs")
	}
	if r.err != nil && (err == nil || exitcode.Of(err) == exitcode.Cancelled) {
		return r.err
	}
	return err
}

func (r *report) resultLine(s *backend.Session, res *acp.Result, err error) resultLine {
	line := resultLine{Type: "result", Text: r.answer.String(), Truncated: r.cut, Denied: r.denied, Broken: r.broken, ExitCode: int(exitcode.Of(err))}
	if res != nil {
		line.StopReason = string(res.StopReason)
		if res.Usage != nil {
			line.Usage, _ = res.Usage.AppendJSON(nil)
		}
	}
	if s != nil {
		line.SessionID = string(s.ID())
		if usage := s.Snapshot().Session().Usage; usage != nil {
			line.Context = &contextInfo{Used: usage.Used, Size: usage.Size}
			if usage.Cost != nil {
				line.Cost, _ = usage.Cost.AppendJSON(nil)
			}
		}
	}
	if err != nil {
		line.Error = errorOf(err)
	}
	return line
}

// errorOf tells what the agent said from what failed here.
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

// ends says with what status a turn ends.
func (r *report) ends(ctx context.Context, res *acp.Result, err error, denyOK bool) error {
	r.mu.Lock()
	denied, broken := r.denied, r.broken
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
	}
	if denied > 0 && !denyOK {
		return denials
	}
	return nil
}

// denials is the error of a turn in which so many requests were denied.
type denials int

// Error says how many there were.
func (n denials) Error() string {
	return fmt.Sprintf("%d permission %s denied", n, plural(int(n), "request was", "requests were"))
}

// Silent reports whether every one of them was told.
func (n denials) Silent() bool { return n <= maxDenials }

// breaches is the error of a turn in which the agent has broken so many rules.
type breaches int

// Error says how many there were.
func (n breaches) Error() string {
	return fmt.Sprintf("%d %s broken", n, plural(int(n), "rule was", "rules were"))
}

// Silent reports whether every one of them was told.
func (n breaches) Silent() bool { return n <= maxDenials }

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
