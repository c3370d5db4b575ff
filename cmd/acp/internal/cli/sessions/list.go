package sessions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/at"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/cmd/acp/internal/ui/export"
)

const (
	// maxRemote bounds how many sessions are read from an agent.
	maxRemote = 10_000
	// minID is the minimum length of an abbreviated id.
	minID = 8
	// maxAgent bounds the column of agents in a terminal, in cells: a name can be a long command
	// line.
	maxAgent = 24
)

// The values of the column FROM: who knows a session.
const (
	fromStored = "stored"
	fromAgent  = "agent"
	fromBoth   = "both"
)

// A row is a session in a list.
type row struct {
	store.Match
	from        string
	interrupted bool // the program ended in the middle of the last turn
}

// errCannotList is the error for an agent that cannot list its sessions. It is a normal answer, not
// a failure: the command still succeeds.
var errCannotList = errors.New("cannot list sessions")

// hasWord reports whether s contains anything that can be searched for.
func hasWord(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
}

// limit returns the maximum number of rows; a negative number means all.
func (o *Options) limit() int {
	if o.All || o.Limit == 0 {
		return -1
	}
	return o.Limit
}

func (o *Options) query() store.Query {
	q := store.Query{Agent: o.agent(), Text: o.Words, Limit: o.limit()}
	if o.Here {
		q.Cwd = o.App.Cwd
	}
	return q
}

// list prints the stored sessions and, if the agent is asked, those that it knows.
func (o *Options) list(ctx context.Context) error {
	st, err := o.App.Store(ctx)
	if err != nil {
		return err
	}
	var rows []row
	if st != nil {
		q := o.query()
		if o.asks() {
			q.Limit = -1 // the agent's sessions are matched against all stored ones
		}
		found, err := st.List(ctx, q)
		if err != nil {
			return err
		}
		for _, m := range found {
			rows = append(rows, row{Match: m, from: fromStored})
		}
	}
	asked := false
	var askErr error
	if o.asks() {
		more, told, err := o.mergeRemote(ctx, rows)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if exitcode.Of(err) == exitcode.Usage {
			return err
		}
		switch {
		case errors.Is(err, errCannotList):
			fmt.Fprintf(o.App.Err, "acp: the agent's own sessions are not listed: %s\n", safetext.Line(err.Error(), 500))
		case err != nil && told:
			rows, asked = more, true
			askErr = exitcode.With(exitcode.Of(err), fmt.Errorf("there may be more of the agent's own sessions: %w", err))
		case err != nil:
			// The stored sessions are listed nevertheless.
			askErr = exitcode.With(exitcode.Of(err), fmt.Errorf("the agent's own sessions are not listed: %w", err))
		default:
			rows, asked = more, true
		}
	}
	total := len(rows)
	if n := o.limit(); n >= 0 && len(rows) > n {
		rows = rows[:n]
	} else if n == len(rows) && !asked && st != nil {
		if total, err = st.Count(ctx, o.query()); err != nil {
			return err
		}
	}
	if err := o.print(ctx, st, rows, asked); err != nil {
		return err
	}
	return cmp.Or(o.printMore(len(rows), total, "sessions"), askErr)
}

// asks reports whether the agent is asked for its sessions.
func (o *Options) asks() bool { return !o.Local && (o.Remote || o.agent() != "") }

// mergeRemote returns rows merged with the sessions that the agent knows, the latest first. For a
// session that both know, the later time counts. With an error told says whether there are some of the agent's
// nevertheless.
func (o *Options) mergeRemote(ctx context.Context, rows []row) (_ []row, told bool, _ error) {
	whole := ctx
	if o.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Wait)
		defer cancel()
	}
	name := o.agent()
	if name == "" {
		// The name under which the agent's sessions are stored.
		agent, err := o.App.Agent("")
		if err != nil {
			return rows, false, err
		}
		name = agent.Name
	}
	r, err := o.connect(ctx, name)
	if err == nil {
		defer r.Close()
		cwd := ""
		if o.Here {
			cwd = o.App.Cwd // an agent may return the latest ones only
		}
		var infos []acp.SessionInfo
		if infos, err = r.Sessions(ctx, cwd); err == nil || len(infos) > 0 {
			rows = o.merged(name, rows, infos)
			told = true
		}
	}
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && whole.Err() == nil:
		err = exitcode.Errorf(exitcode.Timeout, "%s did not answer within %v; give it more time with --wait", name, o.Wait)
	case errors.Is(err, errors.ErrUnsupported):
		err = fmt.Errorf("%s %w", name, errCannotList)
	}
	return rows, told, err
}

// merged returns rows and what the agent of a name knows, the latest first.
func (o *Options) merged(name string, rows []row, infos []acp.SessionInfo) []row {
	known := map[store.Key]int{}
	for i, v := range slices.Backward(rows) {
		known[v.Key] = i // the latest one, if the agent has used an id twice
	}
	for _, info := range infos {
		k := store.Key{Agent: name, ID: string(info.SessionID)}
		updated, _ := time.Parse(time.RFC3339, info.UpdatedAt)
		i, ok := known[k]
		if !ok {
			if o.Here && info.Cwd != o.App.Cwd {
				continue
			}
			known[k] = len(rows)
			rows = append(rows, row{Match: store.Match{Session: store.Session{Key: k, Cwd: info.Cwd, Title: info.Title, Updated: updated}}, from: fromAgent})
			continue
		}
		if rows[i].from == fromStored {
			rows[i].from = fromBoth
		}
		if rows[i].Title == "" {
			rows[i].Title = info.Title
		}
		if updated.After(rows[i].Updated) {
			rows[i].Updated = updated
		}
	}
	sort.SliceStable(rows, func(i, j int) bool { return rows[j].Updated.UnixNano() < rows[i].Updated.UnixNano() })
	return rows
}

// search lists the sessions that contain the words.
func (o *Options) search(ctx context.Context) error {
	st, err := o.store(ctx)
	if err != nil {
		return err
	}
	found, err := st.List(ctx, o.query())
	if err != nil {
		return err
	}
	var rows []row
	for _, m := range found {
		rows = append(rows, row{Match: m, from: fromStored})
	}
	total := len(rows)
	if total == o.limit() {
		if total, err = st.Count(ctx, o.query()); err != nil {
			return err
		}
	}
	if err := o.print(ctx, st, rows, false); err != nil {
		return err
	}
	return o.printMore(len(rows), total, "matches")
}

// printMore says that a list has been cut, below the list for people, and otherwise beside what a program reads.
func (o *Options) printMore(printed, total int, what string) error {
	if printed >= total {
		return nil
	}
	return o.printBelow(fmt.Sprintf("%d of %d %s; --all lists all of them", printed, total, what))
}

func (o *Options) printBelow(line string) error {
	w := o.App.Err
	if o.width() > 0 && !o.JSON {
		w = o.App.Out
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

// An Item is a session in the output of --json.
type Item struct {
	export.Session
	From    string `json:"from"`            // stored, agent or both
	State   string `json:"state,omitempty"` // of the last turn: running, idle, failed or stopped
	Events  int64  `json:"events,omitempty"`
	Snippet string `json:"snippet,omitempty"` // the text around the first match of a search
	// Interrupted reports that the program ended in the middle of the last turn.
	Interrupted bool `json:"interrupted,omitempty"`
}

// print prints a list, as a table or as JSON. A table on a terminal is as wide as that.
func (o *Options) print(ctx context.Context, st *store.Store, rows []row, asked bool) error {
	for i := range rows {
		if v := &rows[i]; st != nil {
			v.interrupted = st.IsInterrupted(ctx, v.Session)
		}
	}
	if o.JSON {
		for _, v := range rows {
			data, err := json.Marshal(Item{export.SessionOf(v.Session), v.from, v.State, v.Events, v.Snippet, v.interrupted})
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(o.App.Out, "%s\n", safetext.JSON(data)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(rows) == 0 {
		what := "no sessions"
		if o.Verb == Search {
			what = "no matches"
		}
		_, err := fmt.Fprintln(o.App.Err, what)
		return err
	}
	width := o.width()
	names := new(store.Names)
	if st != nil {
		var err error
		if names, err = st.Names(ctx); err != nil {
			return err
		}
	}
	short := func(id string) string { return id }
	if width > 0 {
		all := slices.Clone(names.All())
		for _, v := range rows {
			all = append(all, v.ID)
		}
		short = shortener(all)
	}
	now := o.now()
	header := []string{"ID", "AGENT", "STATE", "WHEN", "TURNS", "DIRECTORY", "TITLE"}
	if asked {
		header = slices.Insert(header, 5, "FROM")
	}
	table := [][]string{header}
	home, _ := os.UserHomeDir()
	for _, v := range rows {
		state := v.State
		if v.interrupted {
			state = "interrupted"
		}
		turns := ""
		if v.from != fromAgent {
			turns = fmt.Sprint(v.Turns)
		}
		cells := []string{safetext.Line(short(names.Of(v.Session)), 200), safetext.Line(v.Agent, 60), state, at.Ago(now, v.Updated), turns, safetext.Line(at.Tilde(v.Cwd, home), 300), safetext.Line(v.Title, 300)}
		if asked {
			cells = slices.Insert(cells, 5, v.from)
		}
		table = append(table, cells)
	}
	lines := columns(table, width)
	var b strings.Builder
	for i, l := range lines {
		b.WriteString(l + "\n")
		if i > 0 && rows[i-1].Snippet != "" {
			b.WriteString(at.Below(safetext.Line(rows[i-1].Snippet, 300), width))
		}
	}
	_, err := fmt.Fprint(o.App.Out, b.String())
	return err
}

// width returns the width of the terminal in cells, or 0 if the output is not a terminal. Then
// nothing is abbreviated, because a program may read it.
func (o *Options) width() int {
	if o.Width > 0 {
		return o.Width
	}
	if f, ok := o.App.Out.(*os.File); ok && o.App.OutTerminal {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
		return 80
	}
	return 0
}

// shortener returns a function that abbreviates an id as far as it stays unambiguous among ids, but
// not below minID.
func shortener(ids []string) func(string) string {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return func(id string) string {
		i, ok := slices.BinarySearch(ids, id)
		if !ok {
			return id
		}
		n := minID
		for _, j := range []int{i - 1, i + 1} {
			if j >= 0 && j < len(ids) {
				n = max(n, shared(id, ids[j])+1)
			}
		}
		for n < len(id) && id[n]&0xc0 == 0x80 { // do not cut within a character
			n++
		}
		if n >= len(id) {
			return id
		}
		return id[:n]
	}
}

// shared returns the length of the common prefix of a and b.
func shared(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// columns aligns a table. In a terminal, where width is not 0, the directory and the title share
// the space that the other columns leave; if that is too little, the directory is left out. Agents
// and directories are cut at their beginning, because their end says more; titles are cut at their
// end.
func columns(table [][]string, width int) []string {
	n := len(table[0])
	agent, dir, title := 1, n-2, n-1
	widths := make([]int, n)
	for _, cells := range table {
		for i, c := range cells {
			widths[i] = max(widths[i], ansi.StringWidth(c))
		}
	}
	if width > 0 {
		widths[agent] = min(widths[agent], maxAgent)
		left := width
		for i := range dir {
			left -= widths[i] + 2
		}
		if left < 30 {
			widths[dir] = 0
		} else {
			widths[dir] = min(widths[dir], max(left*2/5, left-2-widths[title]))
			left -= widths[dir] + 2
		}
		widths[title] = max(min(widths[title], left), 0)
	}
	var lines []string
	for _, cells := range table {
		var b strings.Builder
		for i, c := range cells {
			if width > 0 && widths[i] == 0 {
				continue
			}
			if over := ansi.StringWidth(c) - widths[i]; over > 0 {
				if i == dir || i == agent {
					c = ansi.TruncateLeft(c, over+1, "…")
				} else {
					c = ansi.Truncate(c, widths[i], "…")
				}
			}
			b.WriteString(c)
			if i < title {
				b.WriteString(strings.Repeat(" ", max(widths[i]-ansi.StringWidth(c), 0)+2))
			}
		}
		l := strings.TrimRight(b.String(), " ")
		if width > 0 {
			l = ansi.Truncate(l, width, "…")
		}
		lines = append(lines, l)
	}
	return lines
}
