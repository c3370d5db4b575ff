//go:build unix

package cluster

import (
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/goacp/acp"
)

// Figures are what a fault has come to. Times are in seconds, from when it began. They are written down, not judged.
type figures struct {
	Fault    string         `json:"fault"`
	Lease    float64        `json:"lease"`
	Again    int            `json:"again"`    // clients that had to connect again
	Back     float64        `json:"back"`     // until the last of them had its session
	Moved    int            `json:"moved"`    // sessions that have another owner
	Owner    float64        `json:"owner"`    // until the last of them had
	Silence  float64        `json:"silence"`  // the longest that a watcher was sent nothing new
	Turns    map[string]int `json:"turns"`    // that were under way, by what their clients were answered
	Notices  int            `json:"notices"`  // of the gateway in the sessions since
	Prompts  int            `json:"prompts"`  // that have ended
	Failed   int            `json:"failed"`   // of those, otherwise than their agent has ended them
	Records  int            `json:"records"`  // in the log
	Seen     int            `json:"seen"`     // updates that clients were sent
	Lost     int            `json:"lost"`     // of those, not in the log
	Doubled  int            `json:"doubled"`  // things of the agent in the log, and prompts and answers in its ledger, beyond the first
	Sessions int            `json:"sessions"` // that there are

	begun time.Time
	mu    sync.Mutex
	moved map[acp.SessionID]time.Duration
	turn  map[*talk]string // under way as it began
	said  map[*talk]int    // notices before
}

// suffer has a fault happen, and watches what comes of it until the load is finished.
func (l *load) suffer(t *testing.T, f fault) {
	t.Helper()
	g := l.r.owner(t, l)
	before := l.r.owners(l.ctx, l.r.primary)
	for ; len(before) == 0 && l.ctx.Err() == nil; l.pause() { // the server was too busy to answer
		before = l.r.owners(l.ctx, l.r.primary)
	}
	l.figures = &figures{
		Fault: f.name, Lease: lease.Seconds(), Sessions: len(l.all), Turns: map[string]int{},
		moved: map[acp.SessionID]time.Duration{}, turn: map[*talk]string{}, said: map[*talk]int{},
	}
	for _, s := range l.all {
		s.mu.Lock()
		l.figures.turn[s] = s.prompt()
		s.mu.Unlock()
		s.watcher.mu.Lock()
		l.figures.said[s] = s.notices(s.watcher.seen)
		s.watcher.mu.Unlock()
	}
	l.figures.begun = time.Now()
	for _, s := range l.all {
		s.watcher.reset()
		s.prompter.reset()
	}
	// Standbys know it, too, when the primary is away.
	for i := range l.r.db {
		l.work.Go(func() { l.watchOwners(i, before) })
	}
	f.do(t, l.r, l, g)
}

// owners returns which gateway owns each session, as far as a database server knows and answers.
func (r *rig) owners(ctx context.Context, server int) map[acp.SessionID]string {
	db, err := sql.Open("pgx", r.db[server].DSN("acp"))
	if err != nil {
		return nil
	}
	defer db.Close()
	return ownersIn(ctx, db)
}

// ownersIn is owners over connections that are kept: each one is a process of the server's, and takes
// processor time from what is measured.
func ownersIn(ctx context.Context, db *sql.DB) map[acp.SessionID]string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	rows, err := db.QueryContext(ctx, `SELECT id, node FROM public.acp_head`)
	if err != nil {
		return nil
	}
	defer rows.Close()
	all := map[acp.SessionID]string{}
	for rows.Next() {
		var id, node string
		if rows.Scan(&id, &node) == nil {
			all[acp.SessionID(id)] = node
		}
	}
	return all
}

// watchOwners notes when sessions get another owner.
func (l *load) watchOwners(server int, before map[acp.SessionID]string) {
	db, err := sql.Open("pgx", l.r.db[server].DSN("acp"))
	if err != nil {
		l.t.Error(err)
		return
	}
	defer db.Close()
	for ; l.ctx.Err() == nil; l.pause() {
		for id, node := range ownersIn(l.ctx, db) {
			if was := before[id]; was == "" || node == "" || was == node {
				continue
			}
			l.figures.mu.Lock()
			if _, ok := l.figures.moved[id]; !ok {
				l.figures.moved[id] = time.Since(l.figures.begun)
			}
			l.figures.mu.Unlock()
		}
	}
}

// notices counts what the gateway has said.
func (s *talk) notices(history []string) (n int) {
	for _, text := range history {
		if !s.says(text) {
			n++
		}
	}
	return n
}

// absent counts what is seen and not in a history.
func absent(seen, history []string) (n int) {
	count := map[string]int{}
	for _, text := range history {
		count[text]++
	}
	for _, text := range seen {
		if count[text]--; count[text] < 0 {
			n++
		}
	}
	return n
}

// tally adds a session to the figures, once its clients have left.
func (l *load) tally(s *talk, history []string) {
	f := l.figures
	if f == nil {
		return
	}
	count := map[string]int{}
	for _, text := range history {
		if count[text]++; count[text] > 1 && s.says(text) {
			f.Doubled++
		}
	}
	f.Notices += s.notices(history) - f.said[s]
	f.Prompts += len(s.outcomes)
	for _, outcome := range s.outcomes {
		if outcome != string(acp.StopEndTurn) {
			f.Failed++
		}
	}
	if outcome, ok := s.outcomes[f.turn[s]]; ok {
		f.Turns[outcome]++
	} else {
		f.Turns["unanswered"]++
	}
	for _, v := range []*viewer{s.prompter, s.watcher} {
		f.Seen += len(v.seen)
		f.Lost += absent(v.seen, history)
		if v.again > 0 {
			f.Again++
			f.Back = max(f.Back, v.again.Seconds())
		}
	}
	f.Silence = max(f.Silence, s.watcher.gap().Seconds())
	if d, ok := f.moved[s.id]; ok {
		f.Moved++
		f.Owner = max(f.Owner, d.Seconds())
	}
}

// report notes the figures.
func (f *figures) report(t *testing.T) {
	t.Helper()
	note(t, f)
}

// note writes a measurement to the log of the test, and to the file that was asked for.
func note(t *testing.T, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", data)
	if *measure == "" {
		return
	}
	file, err := os.OpenFile(*measure, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(append(data, '\n')); err != nil {
		t.Fatal(err)
	}
}
