package sqlite

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/engine/enginetest"
)

func BenchmarkSuite(b *testing.B) { enginetest.Benchmark(b, fresh) }

// BenchmarkInsert says how many records one statement should insert: transactions of 256 records of 500
// bytes.
func BenchmarkInsert(b *testing.B) {
	for _, rows := range []int{1, 4, 16, 64, 256} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			db, err := OpenDatabase(b.Context(), filepath.Join(b.TempDir(), logName), 0)
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			seq := int64(0)
			for b.Loop() {
				err := db.transact(b.Context(), func(w *writer) error {
					if w.insert == nil {
						stmt, err := w.conn.PrepareContext(b.Context(), insertSQL+strings.Repeat(`, (?, ?, ?, ?, ?, ?, ?)`, rows-1))
						if err != nil {
							return err
						}
						w.insert = stmt
					}
					for range 256 / rows {
						var args []any
						for range rows {
							seq++
							args = append(args, seq%100, seq, 1, seq, "frame", make([]byte, 500), make([]byte, 32))
						}
						if _, err := w.insert.ExecContext(b.Context(), args...); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
