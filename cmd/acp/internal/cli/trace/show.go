package trace

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/record/file"
	"github.com/goacp/acp/cmd/acp/internal/record/summary"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/cmd/acp/internal/ui/export"
	"github.com/goacp/acp/conformance"
	"github.com/goacp/acp/trace"
)

// A shown is a record as acp trace show --json prints it.
type shown struct {
	Line    int64           `json:"line"`             // of the file
	Number  int64           `json:"number,omitempty"` // of the frame, as in acp check trace
	Part    int             `json:"part"`             // of the file, from 1
	Time    string          `json:"time,omitempty"`   // RFC 3339
	At      seconds         `json:"at"`               // since the beginning of the part
	Type    summary.Type    `json:"type"`
	Hop     []string        `json:"hop,omitempty"`  // of a chain of proxies: the components that are its client and its agent
	From    string          `json:"from,omitempty"` // client or agent
	Method  string          `json:"method,omitempty"`
	Update  string          `json:"update,omitempty"`
	ID      json.RawMessage `json:"id,omitempty"`
	Session string          `json:"session,omitempty"`
	Size    int64           `json:"size,omitempty"`
	Latency *seconds        `json:"latency,omitempty"` // for answers, the time since the request
	Code    int             `json:"code,omitempty"`
	Summary string          `json:"summary,omitempty"`
	Frame   json.RawMessage `json:"frame,omitempty"` // with --full
	Text    string          `json:"text,omitempty"`  // with --full, if the record is not JSON
	Broken  []broken        `json:"broken,omitempty"`
}

// broken is a rule that a frame breaks.
type broken struct {
	Rule  string            `json:"rule"`
	Level conformance.Level `json:"level"`
	Why   string            `json:"why"`
	Path  string            `json:"path,omitempty"`
}

// A filter selects the records to show.
type filter struct {
	session, method string
	after           time.Duration
	from            time.Time // --since, if it is a time
}

// filter reads the flags that select records.
func (o *Options) filter() (*filter, error) {
	f := &filter{session: o.Session, method: o.Method}
	if _, err := path.Match(o.Method, ""); err != nil {
		return nil, exitcode.Errorf(exitcode.Usage, "--method %q is not a valid pattern", o.Method)
	}
	if o.Since == "" {
		return f, nil
	}
	var err error
	if f.after, err = time.ParseDuration(o.Since); err == nil {
		return f, nil
	}
	if f.from, err = time.Parse(time.RFC3339Nano, o.Since); err != nil {
		return nil, exitcode.Errorf(exitcode.Usage, "--since %q is neither a duration such as 90s nor a time such as 2026-01-31T10:00:00Z", o.Since)
	}
	return f, nil
}

// some reports whether the filter leaves anything out.
func (f *filter) some() bool {
	return f.session != "" || f.method != "" || f.after != 0 || !f.from.IsZero()
}

// shows reports whether a record is selected.
func (f *filter) shows(rec *trace.Record, item *summary.Item, h trace.Header) bool {
	if rec.At < f.after || !f.from.IsZero() && h.Started.Add(rec.At).Before(f.from) {
		return false
	}
	if f.session != "" && !strings.HasSuffix(item.Session, f.session) {
		return false
	}
	return f.method == "" || matches(f.method, item.Method) && item.Type != summary.Event
}

// matches is path.Match, except that * also matches slashes.
func matches(pattern, method string) bool {
	const slash = "\x00"
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", slash), strings.ReplaceAll(method, "/", slash))
	return err == nil && ok
}

// show prints a recording, a line for each record, while it is read.
func (o *Options) show(ctx context.Context) error {
	f, err := o.filter()
	if err != nil {
		return err
	}
	s, err := o.open(ctx, o.Files[0])
	if err != nil {
		return err
	}
	defer s.Close()
	out := bufio.NewWriter(o.App.Out)
	r := rowsFor(o.columns())
	part, follower, shown := 0, new(summary.Follower), false
	check := o.checker()
	headed := false // the line of the part was printed
	frames := int64(0)
	head := func() {
		if !headed && !o.JSON {
			headed = true
			o.printPart(out, s)
		}
	}
	for {
		rec, err := s.Record()
		if err != nil && err != io.EOF {
			_ = out.Flush()
			return err
		}
		check.Cuts(s.Cuts)
		if err == io.EOF || s.Part() != part {
			if part != 0 {
				// Some broken rules only show at the end of a part.
				if err := o.printEnd(out, r, f, check.End()); err != nil {
					return err
				}
			}
			if part != s.Part() {
				part, headed, follower = s.Part(), false, new(summary.Follower)
			}
			if !f.some() {
				head()
			}
		}
		if err == io.EOF {
			if f.some() && !shown {
				fmt.Fprintf(o.App.Err, "acp: nothing in %s matches\n", line(s.Name))
			}
			return out.Flush()
		}
		item := follower.Next(rec)
		findings := check.Add(rec)
		number := int64(0)
		if conformance.IsNumbered(rec) {
			frames++
			number = frames
		}
		if !f.shows(rec, &item, s.Header()) {
			continue
		}
		head()
		shown = true
		if o.JSON {
			err = o.printShown(out, s, number, rec, &item, findings)
		} else {
			err = o.printRow(out, r, number, rec, &item, findings)
		}
		if err == nil && o.Files[0] == "-" {
			err = out.Flush() // the recording may still be growing while the user watches
		}
		if err != nil {
			return err
		}
	}
}

// printPart prints the header of a part.
func (o *Options) printPart(w io.Writer, s *file.File) {
	h := s.Header()
	var words []string
	if s.Part() > 1 {
		words = append(words, fmt.Sprintf("part %d", s.Part()))
	}
	if hop := s.Hop(); hop != (trace.Hop{}) {
		words = append(words, hop.Client+" → "+hop.Agent)
	}
	if !h.Started.IsZero() {
		words = append(words, h.Started.Local().Format("2006-01-02 15:04:05 -0700"))
	}
	if h.Tool != "" {
		words = append(words, h.Tool)
	}
	if len(h.Command) > 0 {
		words = append(words, strings.Join(h.Command, " "))
	}
	if h.Redacted {
		words = append(words, "without secrets")
	}
	fmt.Fprintf(w, "# %s\n", safetext.Line(strings.Join(words, " · "), 200))
}

// arrow returns the sign for the direction of a record.
func arrow(rec *trace.Record) string {
	switch {
	case rec.Kind == trace.Stderr:
		return "·"
	case rec.Kind == trace.Event:
		return "*"
	case rec.Dir == trace.ToAgent:
		return "→"
	}
	return "←"
}

// from returns who sent a record, or "" for an event.
func from(rec *trace.Record) string {
	switch {
	case rec.Kind == trace.Event:
		return ""
	case rec.Kind == trace.Stderr || rec.Dir == trace.ToClient:
		return asAgent
	}
	return asClient
}

// what returns the name of a record: its method and id, or its type.
func what(item *summary.Item) string {
	method := item.Method
	if item.Update != "" {
		return "update " + item.Update
	}
	switch item.Type {
	case summary.Request:
		return method + " #" + item.ID
	case summary.Answer, summary.Failure:
		if method == "" {
			method = "?"
		}
		mark := "="
		if item.Type == summary.Failure {
			mark = "!"
		}
		return mark + " " + method + " #" + item.ID
	case summary.Notification, summary.Event:
		return method
	}
	return string(item.Type)
}

// printRow prints the line of a record and, with --full, all of the record.
func (o *Options) printRow(w *bufio.Writer, r rows, number int64, rec *trace.Record, item *summary.Item, findings []conformance.Finding) error {
	latency := ""
	if item.Asked > 0 {
		latency = span(item.Took)
	}
	volume := ""
	if rec.Kind != trace.Event {
		volume = size(length(rec))
	}
	err := r.writeRow(w, number, rec.At.Seconds(), arrow(rec), what(item), item.Session, volume, latency, item.Summary)
	if err == nil && o.Full && rec.Kind != trace.Event {
		whole := safetext.Line(string(rec.Data), len(rec.Data)+1)
		if rec.Kind == trace.Frame {
			whole = string(safetext.JSON(bytes.ToValidUTF8(rec.Data, []byte("\ufffd"))))
		}
		_, err = fmt.Fprintf(w, "%s\n", whole)
	}
	if err != nil {
		return err
	}
	return r.writeFindings(w, findings)
}

// writeFindings prints the rules that a frame breaks.
func (r rows) writeFindings(w io.Writer, findings []conformance.Finding) error {
	for _, f := range findings {
		where := ""
		if f.Path != "" && !strings.HasPrefix(f.Why, f.Path) {
			where = " at " + safetext.Line(f.Path, 100)
		}
		if err := r.writeBelow(w, fmt.Sprintf("! %s: %s%s (%s)", f.Rule.Level, safetext.Line(f.Why, 300), where, f.Rule.ID)); err != nil {
			return err
		}
	}
	return nil
}

// printEnd prints the findings at the end of the recording, unless only a session or a method is
// shown.
func (o *Options) printEnd(w io.Writer, r rows, f *filter, findings []conformance.Finding) error {
	if len(findings) == 0 || f.session != "" || f.method != "" {
		return nil
	}
	if o.JSON {
		return printJSON(w, &struct {
			Type   string   `json:"type"`
			Broken []broken `json:"broken"`
		}{"end", brokens(findings)})
	}
	return r.writeFindings(w, findings)
}

func brokens(findings []conformance.Finding) (list []broken) {
	for _, f := range findings {
		list = append(list, broken{f.Rule.ID, f.Rule.Level, f.Why, f.Path})
	}
	return list
}

// length returns the size of a frame as it was sent, even if only its beginning was recorded.
func length(rec *trace.Record) int64 { return max(rec.Size, int64(len(rec.Data))) }

// printShown prints a record as JSON.
func (o *Options) printShown(w io.Writer, s *file.File, number int64, rec *trace.Record, item *summary.Item, findings []conformance.Finding) error {
	row := &shown{
		Line: s.Line(), Number: number, Part: s.Part(), At: seconds(rec.At), Type: item.Type, From: from(rec), Method: item.Method,
		Update: item.Update, Session: item.Session, Code: item.Code, Summary: item.Summary, Broken: brokens(findings),
	}
	if rec.Hop != (trace.Hop{}) {
		row.Hop = []string{rec.Hop.Client, rec.Hop.Agent}
	}
	if started := s.Header().Started; !started.IsZero() {
		row.Time = started.Add(rec.At).Format(time.RFC3339Nano)
	}
	if json.Valid([]byte(item.ID)) {
		row.ID = json.RawMessage(item.ID)
	}
	if item.Asked > 0 {
		took := seconds(item.Took)
		row.Latency = &took
	}
	if rec.Kind != trace.Event {
		row.Size = length(rec)
	}
	if o.Full && rec.Kind == trace.Frame {
		row.Frame = json.RawMessage(bytes.ToValidUTF8(rec.Data, []byte("\ufffd")))
	} else if o.Full && rec.Kind != trace.Event {
		row.Text = string(rec.Data)
	}
	return printJSON(w, row)
}

// transcripts prints the conversation of each session.
func (o *Options) transcripts(ctx context.Context) error {
	f, err := o.filter()
	if err != nil {
		return err
	}
	if f.method != "" || o.Since != "" || o.Full || o.Check {
		return exitcode.Errorf(exitcode.Usage, "--transcript can only be combined with --session and --json")
	}
	s, err := o.open(ctx, o.Files[0])
	if err != nil {
		return err
	}
	defer s.Close()
	wanted := func(id string) bool { return strings.HasSuffix(id, f.session) }
	following := func() *summary.Follower {
		follower := new(summary.Follower)
		if f.session != "" {
			follower.Prefer(wanted)
		}
		return follower
	}
	part, follower := 0, following()
	header := s.Header()
	shown, all := 0, int64(0)
	for {
		rec, err := s.Record()
		if err != nil && err != io.EOF {
			return err
		}
		if err == io.EOF || s.Part() != part {
			for _, session := range follower.Sessions() {
				if !wanted(session.ID) {
					continue
				}
				shown++
				if err := o.printTranscript(header, follower, session); err != nil {
					return err
				}
			}
			all += follower.Opened()
			part, follower, header = s.Part(), following(), s.Header()
		}
		if err == io.EOF {
			break
		}
		follower.Next(rec)
	}
	if f.session == "" && int64(shown) < all {
		fmt.Fprintf(o.App.Err, "acp: %d of %d sessions are shown, those that changed last; --session ID shows another one\n", shown, all)
	}
	if f.session != "" && shown == 0 {
		return exitcode.Errorf(exitcode.Failed, "%s has no session %q", line(s.Name), o.Session)
	}
	return nil
}

// printTranscript prints what was said, session by session.
func (o *Options) printTranscript(h trace.Header, follower *summary.Follower, session summary.Session) error {
	snapshot, _ := follower.Transcript(session.ID)
	if snapshot == nil {
		return nil
	}
	info := store.Session{Key: store.Key{ID: session.ID}, Title: session.Title, Command: h.Command, Created: h.Started}
	format := export.Text
	if o.JSON {
		format = export.JSON
	}
	if err := export.Write(o.App.Out, format, info, snapshot); err != nil {
		return err
	}
	if !o.JSON {
		fmt.Fprintln(o.App.Out)
	}
	return nil
}
