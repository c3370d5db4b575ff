// Package at is what commands do with a gateway that the flag --at names: it lists its sessions, finds the one that a user
// means, and prints them. It reads at most [MaxSessions] sessions.
package at

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/jsonrpc"
)

// Open connects to the gateway that the value of --at means; "" means the user's own. The caller closes the host. It is for
// commands that look, or do one thing, and leave: questions of agents are for others to answer.
func Open(ctx context.Context, a *app.App, where string) (*backend.Host, roster.Agent, error) {
	agent, err := a.At(cmp.Or(where, app.Own))
	if err != nil {
		return nil, agent, err
	}
	h, err := a.Open(ctx, agent, backend.Frontend{Aside: func() bool { return true }})
	return h, agent, err
}

// maxRefusal bounds what a gateway says that refuses something, in cells.
const maxRefusal = 500

// Refusal returns the error of a request to a gateway as people read it: without the code, if the gateway has answered it.
func Refusal(err error) error {
	if said, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return exitcode.Errorf(exitcode.Of(err), "%s", safetext.Line(said.Message, maxRefusal))
	}
	return err
}

// MaxSessions bounds the sessions that are read from a gateway.
const MaxSessions = 10_000

// The states of a session.
const (
	Running = "running" // a turn runs; that of another program on the machine of the gateway is "elsewhere"
	Waiting = "waiting" // its agent waits for an answer
	Idle    = "idle"
	Failed  = "failed"  // its last turn did
	Stopped = "stopped" // its last turn was cancelled, or did not come to its end
)

// A Session is one that a gateway keeps.
type Session struct {
	ID      acp.SessionID `json:"id"`
	Agent   string        `json:"agent,omitempty"`
	State   string        `json:"state,omitempty"`   // "" if the server does not say it
	Waiting int           `json:"waiting,omitempty"` // questions that wait for an answer
	Here    int           `json:"here,omitempty"`    // clients that are attached
	Cwd     string        `json:"cwd,omitempty"`
	Title   string        `json:"title,omitempty"`
	Updated time.Time     `json:"updated,omitzero"`
	Row     int           `json:"row,omitempty"`     // by which @N means it; 0 if the list is a part only
	Snippet string        `json:"snippet,omitempty"` // the text around the first match of a search
}

// session returns what a gateway has said. What it does not say is left empty.
func session(info *acp.SessionInfo) Session {
	s := Session{ID: info.SessionID, Cwd: info.Cwd, Title: info.Title}
	s.Updated, _ = time.Parse(time.RFC3339, info.UpdatedAt)
	var said struct {
		Agent, State  string
		Waiting, Here int
	}
	if !ownmeta.Read(info.Meta, &said) {
		return s
	}
	s.Agent, s.State, s.Waiting, s.Here = said.Agent, said.State, max(said.Waiting, 0), max(said.Here, 0)
	if s.Waiting > 0 {
		s.State = Waiting
	}
	return s
}

// Active reports whether something happens in the session, or waits.
func (s *Session) Active() bool { return s.State == Running || s.State == Waiting }

// Sessions returns the sessions of a gateway, the latest first: those of a directory, or all with "".
func Sessions(ctx context.Context, c *acp.ClientConn, cwd string) (all []Session, err error) {
	for info, err := range c.ListSessions(ctx, acp.ListOptions{Cwd: cwd}) {
		if err != nil {
			if errors.Is(err, errors.ErrUnsupported) {
				return nil, exitcode.Errorf(exitcode.Protocol, "that server does not list its sessions: it is no gateway")
			}
			return nil, Refusal(err)
		}
		if all = append(all, session(&info)); len(all) >= MaxSessions {
			break
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[j].Updated.Before(all[i].Updated) })
	if cwd == "" { // the rows of a part of the list have no names
		for i := range all {
			all[i].Row = i + 1
		}
	}
	return all, nil
}

// Find returns the session that a user means: by its ID, the beginning of one, "-" for the latest of
// the directory cwd, or @N for row N of the list. where is what the user calls the gateway. Errors have the exit
// status of wrong usage.
func Find(ctx context.Context, c *acp.ClientConn, where, id, cwd string) (Session, error) {
	if id != "-" {
		cwd = ""
	}
	all, err := Sessions(ctx, c, cwd)
	if err != nil {
		return Session{}, err
	}
	return find(all, where, id, cwd)
}

// FindKept returns the ID of the session that a user means as [Find] does, among those that a log has.
func FindKept(ctx context.Context, log *engine.Engine, id, cwd string) (string, error) {
	if id != "-" {
		cwd = ""
	}
	var all []Session
	for q := (engine.Query{Limit: 500}); ; {
		page, err := log.List(ctx, q)
		if err != nil {
			return "", err
		}
		for _, s := range page.Sessions {
			if cwd == "" || s.Cwd == cwd {
				all = append(all, Session{ID: acp.SessionID(s.ID), Updated: s.Updated})
			}
		}
		if q.Cursor = page.Next; page.Next == "" || len(all) >= MaxSessions {
			break
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[j].Updated.Before(all[i].Updated) })
	s, err := find(all, app.Own, id, cwd)
	return string(s.ID), err
}

// find returns the session that a user means, of those of a gateway, the latest first.
func find(all []Session, where, id, cwd string) (Session, error) {
	bad := func(format string, args ...any) (Session, error) {
		return Session{}, exitcode.Errorf(exitcode.Usage, format, args...)
	}
	list := "acp sessions list --at " + safetext.Line(where, 200)
	if row, isRow := strings.CutPrefix(id, "@"); isRow {
		n, err := strconv.Atoi(row)
		if err != nil || n < 1 || n > len(all) {
			return bad("%q: after @ comes the number of a row of %s, from 1 to %d", safetext.Line(id, 100), list, len(all))
		}
		return all[n-1], nil
	}
	if id == "-" {
		if len(all) == 0 {
			return bad("there is no session of %s at %s", safetext.Line(cwd, 200), safetext.Line(where, 200))
		}
		return all[0], nil
	}
	var found []Session
	for _, s := range all {
		if string(s.ID) == id {
			return s, nil
		}
		if begins(string(s.ID), id) {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 0:
		return bad("there is no session %q at %s, or it is another user's; %s shows them", safetext.Line(id, 100), safetext.Line(where, 200), list)
	case 1:
		return found[0], nil
	}
	return bad("%q is the beginning of %d sessions: write more of it", safetext.Line(id, 100), len(found))
}

// prefix begins the IDs of a gateway. Users can leave it out.
const prefix = records.GatewayID

// begins reports whether a user can mean an ID by what is its beginning.
func begins(id, what string) bool {
	return what != "" && (strings.HasPrefix(id, what) || strings.HasPrefix(id, prefix+what))
}

// Short abbreviates an ID for a list, as far as it stays unambiguous there.
func Short(id acp.SessionID, among []Session) string {
	for n := len(prefix) + 6; n < len(id); n++ {
		count := 0
		for i := range among {
			if strings.HasPrefix(string(among[i].ID), string(id[:n])) {
				count++
			}
		}
		if count <= 1 {
			return string(id[:n])
		}
	}
	return string(id)
}

// Print prints sessions: as one JSON object per line, or as a table, which is as wide as the terminal.
func Print(a *app.App, all []Session, asJSON bool, now time.Time) error {
	if asJSON {
		for i := range all {
			data, err := json.Marshal(&all[i])
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(a.Out, "%s\n", safetext.JSON(data)); err != nil {
				return err
			}
		}
		return nil
	}
	width := Width(a)
	below := []string{""}
	table := [][]string{{"ROW", "ID", "AGENT", "STATE", "WHEN", "HERE", "DIRECTORY", "TITLE"}}
	home, _ := os.UserHomeDir()
	for i := range all {
		s := &all[i]
		id, here := string(s.ID), ""
		if width > 0 {
			id = Short(s.ID, all)
		}
		if s.Here > 0 {
			here = strconv.Itoa(s.Here)
		}
		row := ""
		if s.Row > 0 {
			row = "@" + strconv.Itoa(s.Row)
		}
		table = append(table, []string{
			row, safetext.Line(id, 100), safetext.Line(s.Agent, 24), safetext.Line(s.State, 12), Ago(now, s.Updated), here,
			safetext.Line(Tilde(s.Cwd, home), 300), safetext.Line(s.Title, 300),
		})
		below = append(below, safetext.Line(s.Snippet, 300))
	}
	return Table(a.Out, table, width, below...)
}

// Table prints a table, with a line below each row for which there is one. On a terminal, where width is not 0, lines are
// cut at its width.
func Table(w io.Writer, table [][]string, width int, below ...string) error {
	widths := make([]int, len(table[0]))
	for _, cells := range table {
		for i, c := range cells {
			widths[i] = max(widths[i], ansi.StringWidth(c))
		}
	}
	var b strings.Builder
	for row, cells := range table {
		line := ""
		for i, c := range cells {
			line += c + strings.Repeat(" ", widths[i]-ansi.StringWidth(c)+2)
		}
		line = strings.TrimRight(line, " ")
		if width > 0 {
			line = ansi.Truncate(line, width, "…")
		}
		b.WriteString(line + "\n")
		if row < len(below) && below[row] != "" {
			b.WriteString(Below(below[row], width))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Below returns the line of a text that belongs to the row above it, in a table of a width as that of [Table].
func Below(text string, width int) string {
	if width > 0 {
		text = ansi.Truncate(text, max(width-4, 1), "…")
	}
	return "    " + text + "\n"
}

// Width returns the width of the terminal on which a command prints, or 0 if its output is none.
func Width(a *app.App) int {
	f, ok := a.Out.(*os.File)
	if !ok || !a.OutTerminal {
		return 0
	}
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		w = 0
	}
	return cmp.Or(max(w, 0), 80)
}

// Ago returns how long ago t was, or its date if that is more than a month.
func Ago(now, t time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return "-"
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", d/time.Minute)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh ago", d/time.Hour)
	case d < 30*24*time.Hour:
		return fmt.Sprintf("%dd ago", d/(24*time.Hour))
	}
	return t.Local().Format("2006-01-02")
}

// Tilde abbreviates the home directory to ~.
func Tilde(path, home string) string {
	if rest, ok := strings.CutPrefix(path, home); ok && home != "" && (rest == "" || rest[0] == '/' || rest[0] == '\\') {
		return "~" + rest
	}
	return path
}

// completing bounds how long a completion may take.
const completing = time.Second

// Complete returns IDs of sessions for the shell. It starts nothing, and swallows errors: the shell would print them into the
// command line that the user is typing.
func Complete(ctx context.Context, a *app.App, where, begin string) (found []string) {
	ctx, cancel := context.WithTimeout(ctx, completing)
	defer cancel()
	h, _, err := Open(ctx, a, where)
	if err != nil {
		return nil
	}
	defer h.Close()
	all, err := Sessions(ctx, h.Conn(), "")
	if err != nil {
		return nil
	}
	for _, s := range all {
		if id := safetext.Line(string(s.ID), 100); id == string(s.ID) && strings.HasPrefix(id, begin) && len(found) < 50 {
			found = append(found, id+"\t"+safetext.Line(s.Agent+": "+s.State+" "+s.Title, 60))
		}
	}
	return found
}
