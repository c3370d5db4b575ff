package store

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// many makes logs of sessions of ten messages of 40 words each, of a vocabulary of 24 words; one
// session in a hundred has a rare one.
func many(b *testing.B, dir string, sessions int) {
	b.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	at := time.Unix(1_700_000_000, 0)
	for i := range sessions {
		id := namedID("bench", fmt.Sprint(i))
		f, err := os.OpenFile(filepath.Join(dir, id+".jsonl"), os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			b.Fatal(err)
		}
		w := bufio.NewWriter(f)
		var last journal.Head
		var line []byte
		put := func(e Event) {
			e.At = at.Add(time.Duration(i*100+int(last.Seq)) * time.Second)
			r, err := journal.Next(id, last, 1, e)
			if err != nil {
				b.Fatal(err)
			}
			line, last = journal.AppendLine(line[:0], &r), journal.Head{Seq: r.Seq, Hash: r.Hash}
			_, _ = w.Write(line)
		}
		put(sessionEvent(Session{Key: Key{"bench", fmt.Sprint("session-", i)}, Cwd: "/p", Title: fmt.Sprint("Session ", i), Protocol: 2}))
		for m := range 10 {
			text := ""
			for range 40 {
				text += fmt.Sprintf("w%d ", random.IntN(24))
			}
			if i%100 == 0 && m == 5 {
				text += "rarity"
			}
			put(chunk([]string{"user", "agent"}[m%2], fmt.Sprint("m", m), text))
		}
		put(Event{Kind: journal.KindEnd})
		if err := w.Flush(); err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSessions lists and searches 10,000 sessions.
func BenchmarkSessions(b *testing.B) {
	dir := b.TempDir()
	many(b, dir, 10_000)
	s := openTest(b, dir)
	begin := time.Now()
	if err := s.index.use(b.Context(), time.Minute, s.refresh); err != nil {
		b.Fatal(err)
	}
	b.Logf("the index was made in %v", time.Since(begin))
	for _, q := range []struct {
		name string
		q    Query
	}{
		{"list50", Query{Limit: 50}},
		{"list", Query{Limit: -1}},
		{"common2", Query{Text: "w7 w8", Limit: 50}},
		{"rare", Query{Text: "rarity", Limit: 50}},
		{"letter", Query{Text: "w", Limit: 50}},
	} {
		b.Run(q.name, func(b *testing.B) {
			for b.Loop() {
				if found, err := s.List(b.Context(), q.q); err != nil || len(found) < 50 {
					b.Fatal(len(found), err)
				}
			}
		})
	}
	b.Run("withoutIndex", func(b *testing.B) {
		for b.Loop() {
			if found, err := s.listLogs(b.Context(), Query{Limit: 50}, nil); err != nil || len(found) != 50 {
				b.Fatal(len(found), err)
			}
		}
	})
}

// BenchmarkAppend appends events, one or a hundred at once.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := openTest(b, b.TempDir())
			rec := s.Record(Session{Key: key}, RecordOptions{})
			e := chunk("agent", "m", "some words of an answer ")
			for b.Loop() {
				batch := make([]Event, n)
				for i := range batch {
					batch[i] = e
				}
				rec.Append(batch...)
			}
			if err := rec.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkRead reads a conversation of 10,000 events.
func BenchmarkRead(b *testing.B) {
	s := openTest(b, b.TempDir())
	events := make([]Event, 10_000)
	for i := range events {
		events[i] = chunk("agent", "m", "some words of an answer ")
	}
	rec := s.Record(Session{Key: key}, RecordOptions{})
	rec.Append(events...)
	if err := rec.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		n := 0
		if _, err := s.read(b.Context(), rec.Conversation(), func(*journal.Record) bool { n++; return true }); err != nil || n != 10_001 {
			b.Fatal(n, err)
		}
	}
}
