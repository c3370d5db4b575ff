package sqlite

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// BenchmarkMany measures what is done with 10,000 sessions of 20 records of 500 bytes, in files, and with rows of a database as
// the gateway had them before: to open them, with the index and without it, and to list 50.
func BenchmarkMany(b *testing.B) {
	const sessions = 10_000
	dir := b.TempDir()
	o := options
	o.LeaseTTL = time.Hour
	inFiles := func() (*engine.Engine, error) { return Open(b.Context(), dir, "a", o) }
	inRows := func() (*engine.Engine, error) {
		d, err := OpenDatabase(b.Context(), filepath.Join(dir, "log.db"), 0)
		if err != nil {
			return nil, err
		}
		w, err := OpenWitness(b.Context(), filepath.Join(dir, "rows.db"))
		if err != nil {
			return nil, err
		}
		return engine.New(d, w, o), nil
	}
	for _, at := range []struct {
		name string
		open func() (*engine.Engine, error)
	}{{"files", inFiles}, {"rows", inRows}} {
		opens := func(b testing.TB) *engine.Engine {
			e, err := at.open()
			if err != nil {
				b.Fatal(err)
			}
			return e
		}
		closes := func(b testing.TB, e *engine.Engine) {
			if err := e.Close(); err != nil {
				b.Fatal(err)
			}
		}
		e := opens(b)
		begun := time.Now()
		fillMany(b, e, sessions)
		b.Logf("%s: made in %v", at.name, time.Since(begun))
		b.Run(at.name+"/list", func(b *testing.B) {
			for b.Loop() {
				if page, err := e.List(b.Context(), engine.Query{Limit: 50}); err != nil || len(page.Sessions) != 50 {
					b.Fatal(err)
				}
			}
		})
		closes(b, e)
		b.Run(at.name+"/open", func(b *testing.B) {
			for b.Loop() {
				closes(b, opens(b))
			}
		})
		if at.name == "files" {
			b.Run("files/open without index", func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					remove(b, dir, indexName)
					b.StartTimer()
					closes(b, opens(b))
				}
			})
		}
	}
}

// fillMany makes so many sessions.
func fillMany(b *testing.B, e *engine.Engine, sessions int) {
	b.Helper()
	text := []byte(`"` + strings.Repeat("x", 500) + `"`)
	l, err := e.Lease(b.Context(), "a")
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			recs := make([]engine.Record, 20)
			for i := range recs {
				recs[i] = engine.Record{Kind: journal.KindUpdate, Data: text}
			}
			for i := w; i < sessions; i += 8 {
				id := fmt.Sprint("s_", i)
				if _, err := e.Create(b.Context(), engine.Session{ID: id, Owner: "ann", Title: "A title of some length", Cwd: "/home/ann/project", Agent: "acp agent"}); err != nil {
					b.Error(err)
					return
				}
				o, err := e.Claim(b.Context(), id, l)
				if err == nil {
					_, err = o.Append(b.Context(), recs...)
				}
				if err == nil {
					err = o.Release(b.Context())
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
