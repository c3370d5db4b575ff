package sqlite

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/internal/long"
)

// childDir names the variable with the directory that a child process uses.
const childDir = "ACP_TEST_ENGINE_DIR"

const killWriters = 4

// An ack is what a session has by now, of which a child was sure.
type ack struct {
	ID    string
	Title int    // that many updates
	State int    // that many states
	Share int    // that many changes of a share
	Head  uint64 // the last record
	Hash  string
}

func (a *ack) role() string { return []string{"", "viewer", "owner"}[a.Share%3] }

// child creates sessions, updates, appends and shares them until it is killed, and says what it is sure of.
func child(dir string) {
	ctx := context.Background()
	e, err := Open(ctx, dir, "child", options)
	failed(err)
	lease, err := e.Lease(ctx, "child")
	failed(err)
	var out sync.Mutex
	say := func(a *ack) {
		line, err := json.Marshal(a)
		failed(err)
		out.Lock()
		defer out.Unlock()
		fmt.Println(string(line))
	}
	for i := range killWriters {
		go func() {
			for n := 0; ; n++ {
				a := &ack{ID: fmt.Sprintf("%d_%d_%d", os.Getpid(), i, n)}
				_, err := e.Create(ctx, engine.Session{ID: a.ID, Title: "0"})
				failed(err)
				say(a)
				for range 3 {
					a.lives(ctx, e, lease, func() { say(a) })
				}
			}
		}()
	}
	select {}
}

// lives has a session updated while nobody owns it, and then claimed and used.
func (a *ack) lives(ctx context.Context, e *engine.Engine, lease *engine.Lease, say func()) {
	update := func() {
		_, err := e.Update(ctx, a.ID, func(s *engine.Session) error { s.Title = fmt.Sprint(a.Title + 1); return nil })
		failed(err)
		a.Title++
		say()
	}
	update()
	o, err := e.Claim(ctx, a.ID, lease)
	failed(err)
	add := func(kind engine.Kind, v any) {
		data, err := json.Marshal(v)
		failed(err)
		recs, err := o.Append(ctx, engine.Record{Kind: journal.KindUpdate, Data: []byte(`"x"`)}, engine.Record{Kind: kind, Data: data})
		failed(err)
		a.Head, a.Hash = recs[1].Seq, fmt.Sprintf("%x", recs[1].Hash)
	}
	for range 3 {
		add(journal.KindUpdate, "piece")
		say()
		add(journal.KindEnd, fmt.Sprint("state ", a.State+1))
		a.State++
		say()
		add(journal.KindShared, engine.Share{User: "bob", Role: (&ack{Share: a.Share + 1}).role()})
		a.Share++
		say()
		update()
	}
	failed(o.Release(ctx))
}

// failed ends a child.
func failed(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

// TestKill: whenever the process is killed, what it was sure of is there, with the index or without it.
func TestKill(t *testing.T) {
	rounds := 20
	if !long.All() {
		rounds = 3
	}
	for range rounds {
		dir := t.TempDir()
		acks := map[string]ack{}
		for range 2 {
			n := 1 + rand.IntN(200)
			runChild(t, dir, n, func(a ack) { acks[a.ID] = a })
			without := saved(t, dir)
			remove(t, without, indexName)
			for _, dir := range []string{without, dir} {
				if wantAll(t, dir, acks); t.Failed() {
					return
				}
			}
		}
	}
}

// wantAll opens a directory and looks for all that was acknowledged.
func wantAll(t *testing.T, dir string, acks map[string]ack) {
	t.Helper()
	o := options
	o.Alarm = func(id string, err error) { t.Errorf("alarm of %s: %v", id, err) }
	e := opened(t, dir, "a", o)
	found := map[string]known{}
	for _, r := range rows(t, e) {
		found[r.Session.ID] = r
	}
	for _, a := range acks {
		r, there := found[a.ID]
		title, state := 0, 0
		_, e1 := fmt.Sscan(r.Session.Title, &title)
		if r.Session.State != "" {
			_, _ = fmt.Sscanf(r.Session.State, "state %d", &state)
		}
		role := ""
		for _, s := range r.Shares {
			role = s.Role
		}
		next := ack{Share: a.Share + 1}
		// One step of each kind may have been under way.
		if !there || e1 != nil || title < a.Title || title > a.Title+1 || state < a.State || state > a.State+1 || role != a.role() && role != next.role() {
			t.Errorf("acknowledged %+v, there is %+v", a, r)
		}
		hash := ""
		err := e.Read(t.Context(), a.ID, 0, func(r engine.Record) error {
			if r.Seq == a.Head {
				hash = fmt.Sprintf("%x", r.Hash)
			}
			return nil
		})
		if err != nil || hash != a.Hash {
			t.Errorf("session %s, record %d: %v", a.ID, a.Head, err)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// runChild starts a child and kills it after it has written some lines.
func runChild(t *testing.T, dir string, lines int, got func(ack)) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for in := bufio.NewScanner(out); in.Scan(); {
		var a ack
		if json.Unmarshal(in.Bytes(), &a) == nil {
			got(a)
		}
		if n++; n == lines {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait() // it was killed
	if n < lines {
		t.Fatalf("the child has ended after %d lines of %d", n, lines)
	}
}
